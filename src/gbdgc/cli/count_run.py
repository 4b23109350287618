"""The run folder of `gbdgc count`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gbdgc.counting.sinks import COUNTS, ERRORS, VIDEOS, ResultsFolder, Sink
from gbdgc.errors import InputError
from gbdgc.files import atomic_write, make_folder
from gbdgc.runs import claim, new_run_folder, newest_run_folder, write_environment

CONFIG = "config.yaml"
_SAME = ("weights", "zones", "every", "seconds", "tile")
"""Settings that must not change within one table."""


@contextmanager
def open_run(
    name: str, settings: Mapping[str, Any], out: Path | None, sinks: Sequence[Sink] = (), *, resume: bool
) -> Iterator[ResultsFolder]:
    """Make a run folder, or go on with the one in ``out`` or the newest of this name, and keep others out of it."""
    folder = out or (newest_run_folder("count", name) if resume else None)
    begun = folder is not None and (folder / CONFIG).exists()
    if folder is None:
        folder = new_run_folder("count", name)
    elif begun and not resume:
        raise InputError(f"--out {folder}", "has counts in it", "go on with them by --resume, or choose another folder")
    elif begun:
        _require_same(folder, settings)
    elif strange := next((file for file in (COUNTS, VIDEOS, ERRORS) if (folder / file).exists()), None):
        raise InputError(f"--out {folder}", f"has a {strange} that is not of a run", "choose another folder")
    make_folder(folder)
    with claim(folder), closing(ResultsFolder(folder, tuple(settings["zones"] or ()), sinks)) as run:
        if not begun:
            write_environment(folder)
            with atomic_write(folder / CONFIG, "w") as file:
                json.dump(settings, file, indent=2)  # JSON is YAML too
        yield run


def _require_same(folder: Path, settings: Mapping[str, Any]) -> None:
    try:
        before = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        now = json.loads(json.dumps(settings))
        changed = [name for name in _SAME if before[name] != now[name]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(str(folder), f"its {CONFIG} is not one of `gbdgc count`", "choose another folder") from error
    if changed:
        options = ", ".join(f"--{name}" for name in changed)
        raise InputError(
            str(folder), f"was begun with another {options}", "give the same, or start anew without --resume"
        )
