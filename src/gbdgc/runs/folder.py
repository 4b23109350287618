"""Run folders: ``runs/<command>/<name>-<n>/``, each with what is needed to repeat the run."""

import glob
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from gbdgc.errors import InputError, as_input_error
from gbdgc.files import AnyPath, claim, make_folder, sweep_parts, write_json
from gbdgc.runs.environment import ENVIRONMENT, write_environment

Resume = bool | Literal["auto"]
"""Start a run, resume one, or ("auto") resume it where there is one."""

CONFIG = "config.yaml"
_SETTINGS = {"eval": "settings.json"}
"""The file that says a run has begun, and how; elsewhere `CONFIG`. An evaluation may lie in its training's folder."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, claimed by this process."""

    path: Path
    command: str
    resumed: bool
    """True if the run had begun before."""

    @classmethod
    @contextmanager
    def open(
        cls,
        command: str,
        name: str,
        settings: Mapping[str, Any] | Callable[[Path], None],
        out: AnyPath | None = None,
        resume: Resume = False,
        *,
        products: Sequence[str] = (),
        changed: Callable[[Path], Sequence[str]] | None = None,
    ) -> Iterator["RunFolder"]:
        """Create a run's folder, or resume the one in ``out`` or the newest of this name, and lock it.

        Parameters
        ----------
        command, name : of the run; without ``out`` its folder is the next free ``runs/<command>/<name>-<n>``.
        settings : the settings of the run, or a function that writes them to a file.
        out : the folder.
        resume : whether a run that has begun is to be continued, with the same settings.
        products : files that the run writes; if they exist in a folder without a run, they belong to something else.
        changed : returns what differs from the settings in a file; by default the keys of ``settings`` that do.
            Required if ``settings`` is a function.
        """
        file = _SETTINGS.get(command, CONFIG)
        folder = Path(out) if out else (newest_run_folder(command, name) if resume else None)
        with as_input_error(OSError, folder, "this folder cannot be used ({error})", "choose another"):
            begun = folder is not None and (folder / file).exists()
        if resume is True and not begun:
            missing = folder or Path("runs") / command / name
            raise InputError(missing, "no run to resume", "start it without resuming")
        if begun and not resume:
            raise InputError(folder, "holds a run already", "resume it, or choose another folder")
        folder = new_run_folder(command, name) if folder is None else make_folder(folder)
        with claim(folder):
            sweep_parts(folder, spare=(CONFIG, *_SETTINGS.values()))
            if begun:
                compare = changed or partial(changed_keys, settings=cast("Mapping[str, Any]", settings))
                if differ := compare(folder / file):
                    reason = f"was started with other settings ({', '.join(differ)})"
                    raise InputError(folder, reason, "resume with the same ones, or start a new run")
            else:
                if strange := next((product for product in products if (folder / product).exists()), None):
                    raise InputError(folder, f"has a {strange} that is not of a run", "choose another folder")
                write_environment(folder)
                # Last: where it is, a run has begun and may be resumed.
                if isinstance(settings, Mapping):
                    write_json(folder / file, settings)  # JSON is YAML too
                else:
                    try:
                        settings(folder / file)
                    except InputError:
                        _take_back(folder, ENVIRONMENT)
                        raise
            yield cls(folder, command, begun)

    def forget(self) -> None:
        """Undo a run that could not start, so that it is never the one to be resumed; a resumed run is kept."""
        if not self.resumed:
            _take_back(self.path, _SETTINGS.get(self.command, CONFIG), ENVIRONMENT)


def _take_back(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()
    with suppress(OSError):  # whatever else lies there is the user's
        folder.rmdir()


def changed_keys(file: Path, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that differ from those in a run's file; others in the file do not matter."""
    now = json.loads(json.dumps(settings))
    with as_input_error((ValueError, AttributeError), file, "not the settings of such a run", "choose another folder"):
        before = json.loads(file.read_text(encoding="utf-8"))
        return [key for key in now if before.get(key) != now[key]]


def new_run_folder(command: str, name: str) -> Path:
    """Create and return the next free numbered folder; safe when several processes do so at once."""
    parent = make_folder(Path("runs") / command)
    check_run_name(name)
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        cannot = as_input_error(OSError, folder, "this folder cannot be made ({error})", "work in another")
        with cannot, suppress(FileExistsError):
            folder.mkdir()
            return folder
        number += 1


def newest_run_folder(command: str, name: str) -> Path | None:
    """Return the run of that name with the highest number; a folder without settings was never begun."""
    check_run_name(name)
    numbered = {}
    for folder in (Path("runs") / command).glob(f"{glob.escape(name)}-*"):
        number = folder.name.removeprefix(f"{name}-")
        if number.isdigit() and (folder / _SETTINGS.get(command, CONFIG)).exists():
            numbered[int(number)] = folder
    return numbered[max(numbered)] if numbered else None


def check_run_name(name: str) -> None:
    """Refuse a name that is empty or would lead out of the folder of runs."""
    if name.strip() in {"", ".", ".."} or any(mark in name for mark in ("/", "\0", os.sep, os.altsep or "/")):
        raise InputError(f"name {name!r}", "not a name for a run", "choose one word, such as my-street")
