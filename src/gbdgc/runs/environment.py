"""The environment of a run: versions, machine, command and commit."""

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gbdgc.files import write_json

ENVIRONMENT = "environment.json"
_PACKAGES = ("gbdgc", "torch", "lightning-fabric", "numpy", "scipy", "scikit-learn", "numba", "pillow")
_SECRET = r"((?:pass?|passw(?:or)?d|passphrase|pwd|psw|token|key|secret|auth|sig|signature)=)"
_SECRET_IN_PATH = re.compile(_SECRET + r"[^/&]*?(?=_[a-z]+=|[/&]|$)", re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(_SECRET + r"[^&]*", re.IGNORECASE)


def write_environment(folder: Path) -> None:
    """Write ``environment.json``: versions, machine, command and commit."""
    write_json(folder / ENVIRONMENT, environment())


def environment() -> dict[str, object]:
    """Return the versions, machine, command and commit of this process."""
    return {
        "command": [without_password(word) for word in sys.argv],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "commit": _commit(),
        "packages": {name: package_version(name) for name in _PACKAGES},
    }


def without_password(address: str) -> str:
    """Return an address without user and password, which end at the last @, as FFmpeg parses them.

    Cameras also accept them as ``?user=a&pwd=b`` or ``/user=a_password=b_channel=1.sdp``: such values are hidden too.
    """
    if "://" not in address:
        return address
    path, mark, query = re.sub(r"(?<=://)[^/?#]*@", "***@", address).partition("?")
    return _SECRET_IN_PATH.sub(r"\1***", path) + mark + _SECRET_IN_QUERY.sub(r"\1***", query)


def package_version(package: str) -> str | None:
    """Return the version of an installed package, None where it is not."""
    with suppress(PackageNotFoundError):
        return version(package)
    return None


def _commit() -> str | None:
    """The commit of the working copy this package runs from, if it runs from one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip() or None
    return None
