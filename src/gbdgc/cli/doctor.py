"""`gbdgc doctor`: what this installation can do, and what is missing for everything else."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from gbdgc import runs
from gbdgc.errors import InputError, install_advice
from gbdgc.progress import stdout

EXTRAS = {
    "torch": "to train, and to count with the bundled model",
    "onnx": "to count with exported models, without torch",
    "video": "to count in videos and streams",
    "serve": "for gbdgc serve",
    "export": "for gbdgc export",
    "openvino": "for --engine openvino",
    "parquet": "to read parquet",
    "ray": "for --cluster: counting and benchmarks on many machines",
    "track": "for train.tensorboard=true",
}
"""The purpose of each extra; its packages are listed in the metadata of the installed package."""


class Check(NamedTuple):
    """The result of one check."""

    what: str
    found: str
    advice: str = ""
    """The next step; empty where all is well."""
    is_fault: bool = False
    """True if counting or training does not work without it."""


def doctor() -> None:
    """Check what works on this machine, and how to fix what does not. Exit code 1 if something essential is missing."""
    findings = list(examine())
    table = Table("", "found", "to do", show_header=True, box=None)
    for finding in findings:
        mark = "[red]✗[/]" if finding.is_fault else "[yellow]–[/]" if finding.advice else "[green]✓[/]"
        table.add_row(f"{mark} {finding.what}", escape(finding.found), escape(finding.advice))
    stdout.print(table)
    if any(finding.is_fault for finding in findings):
        sys.exit(1)
    stdout.print("ready: gbdgc count SOURCE")


def examine() -> Iterator[Check]:
    """Check everything that a command may need."""
    from gbdgc import __version__
    from gbdgc.config import presets

    here = runs.environment()
    commit = f", commit {here['commit']}" if here["commit"] else ""
    yield Check("gbdgc", f"{__version__} on Python {here['python']}{commit}")
    yield Check("machine", f"{here['platform']}, {here['cores']} cores")
    torch = _torch()
    yield torch
    if not torch.is_fault:
        from gbdgc.models.weights import WEIGHTS, cache_path, is_intact

        yield _bundled()
        for name in WEIGHTS:
            what = f"ImageNet weights, {name}"
            if not cache_path(name).exists():
                yield Check(what, "not in the cache", f"training fetches them; or now: gbdgc weights fetch {name}")
            elif not is_intact(name):
                yield Check(what, "damaged", f"gbdgc weights fetch {name}")
            else:
                yield Check(what, "in the cache")
    for extra, use in EXTRAS.items():
        versions = {package: runs.package_version(package) for package in packages_of(extra)}
        found = ", ".join(f"{package} {version or 'not installed'}" for package, version in versions.items())
        lacks = not versions or None in versions.values()
        yield Check(f"extra {extra}", found or "not known", f"{use}: {install_advice(extra)}" if lacks else "")
    ready = presets()
    yield Check("presets", ", ".join(ready) or "none", "" if ready else "install the package again", not ready)
    folder = os.environ.get("GBDGC_DATA")
    advice = "" if folder and Path(folder).is_dir() else "to train by the presets: the folder that holds ShanghaiTech"
    yield Check("GBDGC_DATA", folder or "not set", advice)


def _torch() -> Check:
    try:
        import torch
    except (ImportError, OSError) as error:  # the second where a shared library is missing or broken
        advice = "pip install --force-reinstall torch"
        return Check("torch", f"does not import ({error})", advice, is_fault=True)
    card = f"graphics card {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "CPU only"
    return Check("torch", f"{torch.__version__}, {torch.get_num_threads()} threads, {card}")


def _bundled() -> Check:
    from gbdgc.counting import Counter

    try:
        counter = Counter.load()
    except InputError as error:
        return Check("bundled model", "not usable", str(error), is_fault=True)
    return Check("bundled model", str(counter.info.get("name", "there")))


def packages_of(extra: str) -> list[str]:
    """Return the packages that an extra brings; none where gbdgc runs without being installed."""
    wanted: list[str] = []
    with suppress(PackageNotFoundError):
        wanted = requires("gbdgc") or []
    matches = (re.match(rf"([\w.-]+).*;.*extra == ['\"]{extra}['\"]", requirement) for requirement in wanted)
    return [match[1] for match in matches if match]
