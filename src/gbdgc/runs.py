"""Run folders: ``runs/<command>/<name>-<n>/``, each with what is needed to repeat the run."""

import glob
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gbdgc.errors import InputError
from gbdgc.files import atomic_write, make_folder

_PACKAGES = ("gbdgc", "torch", "lightning-fabric", "numpy", "scipy", "scikit-learn", "numba", "pillow")
_SECRET = r"((?:pass?|passw(?:or)?d|passphrase|pwd|psw|token|key|secret|auth|sig|signature)=)"
_SECRET_IN_PATH = re.compile(_SECRET + r"[^/&]*?(?=_[a-z]+=|[/&]|$)", re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(_SECRET + r"[^&]*", re.IGNORECASE)


def new_run_folder(command: str, name: str, root: str | os.PathLike[str] = "runs") -> Path:
    """Make and return the next free numbered folder; safe when several processes ask at once."""
    parent = make_folder(Path(root) / command)
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
        except OSError as error:
            raise InputError(f"{folder}: this folder cannot be made ({error.strerror}); work in another") from error


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Keep other processes from working in a run's folder; where the system has no such lock, nothing is kept.

    The system lets go of it when the process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{folder}: another process is at work there; wait for it, or choose another folder"
            ) from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def newest_run_folder(
    command: str, name: str, root: str | os.PathLike[str] = "runs", *, marker: str = "config.yaml"
) -> Path | None:
    """Return the run of that name with the highest number; a folder without the ``marker`` file was never begun."""
    numbered = {}
    for folder in (Path(root) / command).glob(f"{glob.escape(name)}-*"):
        number = folder.name.removeprefix(f"{name}-")
        if number.isdigit() and (folder / marker).exists():
            numbered[int(number)] = folder
    return numbered[max(numbered)] if numbered else None


def write_environment(folder: Path) -> None:
    """Write ``environment.json``: versions, machine, command and commit."""
    with atomic_write(folder / "environment.json", "w") as file:
        json.dump(environment(), file, indent=2)


def environment() -> dict[str, object]:
    """What this process runs on."""
    return {
        "command": [without_password(word) for word in sys.argv],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "commit": _commit(),
        "packages": {name: package_version(name) for name in _PACKAGES},
    }


def without_password(address: str) -> str:
    """Return an address without user and password, which end at the last @, as FFmpeg reads them.

    Cameras also take them as ``?user=a&pwd=b`` or ``/user=a_password=b_channel=1.sdp``: what such names give is hidden.
    """
    if "://" not in address:
        return address
    path, mark, query = re.sub(r"(?<=://)[^/?#]*@", "***@", address).partition("?")
    return _SECRET_IN_PATH.sub(r"\1***", path) + mark + _SECRET_IN_QUERY.sub(r"\1***", query)


def package_version(package: str) -> str | None:
    """Return the version of an installed package, None where it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the working copy this package runs from, if it runs from one."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None
