"""Connecting to Ray. Nothing here imports it before it is asked for."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from gbdgc.errors import InputError, as_input_error, install_advice

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
    options: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(address, num_cpus=cores, logging_level=logging.ERROR, log_to_driver=False, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:  # no answer, other versions, not an address
        reason = f"cannot be reached ({str(error).strip().splitlines()[0]})"
        advice = "`ray status` says what is running; the head and every node need the same versions of Python and Ray"
        raise InputError(f"cluster {address}", reason, advice) from error
    try:
        yield ray
    finally:
        ray.shutdown()
