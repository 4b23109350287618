"""Connecting to Ray. Nothing here imports it before it is asked for."""

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from gbdgc import __version__
from gbdgc.errors import InputError, as_input_error, install_advice
from gbdgc.progress import stderr

LOCAL = "local"
"""The address that stands for a cluster of this machine alone, started for the call and ended with it."""

_OBJECT_STORE_BYTES = 100_000_000  # only names and totals travel between processes; pictures never do


@contextmanager
def connected(address: str = LOCAL, *, cores: int | None = None) -> Iterator[ModuleType]:
    """Connect to a cluster and yield `ray`; a connection that the caller already has is used and left open.

    The address is "local", "auto" for the cluster that this machine belongs to, or HOST:PORT of its head; a local
    cluster has so many cores, all unless given.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports usage to its makers unless told not to
    with as_input_error(ImportError, "", "a cluster needs Ray, which is not installed", install_advice("ray")):
        import ray
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == LOCAL:  # a cluster that is there has resources of its own
        options |= {"num_cpus": cores, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
    try:
        ray.init(address, **options)
    # No answer, other versions, not an address, another token; and plain exceptions where a busy machine is too slow.
    except Exception as error:
        first, *_ = str(error).strip().splitlines() or [type(error).__name__]  # some say nothing
        reason = f"cannot be reached ({first})"
        advice = "`ray status` says what is running; every node needs the same Python, Ray and token of Ray's"
        raise InputError(f"cluster {address}", reason, advice) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def warn_if_no_node_fits(ray: ModuleType, *, cores: int, gpus: float) -> None:
    """Tell the user if no node has what one task needs: Ray waits for such a node, as a cluster may grow."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cores and node.get("GPU", 0) >= gpus for node in nodes):
        stderr.print(f"waiting for a node with {cores} cores and {gpus:g} GPUs: the cluster has none so far")


def check_version(callers: str) -> None:
    """Refuse to work, on a node, for a caller with another version of gbdgc."""
    if callers != __version__:
        reason = f"has gbdgc {__version__}, and the job comes from {callers}"
        raise InputError(f"node {platform.node()}", reason, "install the same version on every node")
