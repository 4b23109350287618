"""The run folder of `gbdgc count`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gbdgc.counting.sinks import COUNTS, ERRORS, VIDEOS, ResultsFolder, Sink
from gbdgc.runs import RunFolder, changed_keys

_SAME = ("weights", "zones", "every", "seconds", "tile")
"""Settings that must not change within one table."""


@contextmanager
def open_run(
    name: str, settings: Mapping[str, Any], out: Path | None, sinks: Sequence[Sink] = (), *, resume: bool
) -> Iterator[ResultsFolder]:
    """Make a run folder, or continue the one in ``out`` or the newest of this name, and keep others out of it."""
    same = {key: settings[key] for key in _SAME}
    with (
        RunFolder.open(
            "count",
            name,
            settings,
            out,
            "auto" if resume else False,
            products=(COUNTS, VIDEOS, ERRORS),
            changed=lambda file: [f"--{key}" for key in changed_keys(file, same)],
        ) as run,
        closing(ResultsFolder(run.path, tuple(settings["zones"] or ()), sinks)) as results,
    ):
        yield results
