"""The parts of a job. A part's name is derived from the list of what it counts, which identifies finished parts."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from gbdgc.cluster.storage import Place
from gbdgc.errors import as_input_error

SUFFIX = ".parquet"
ITEMS = b"gbdgc.items"
"""Under this name a part's file lists what it covers, also what gave no row."""
_READ_AT_ONCE = 16


@dataclass(frozen=True)
class Item:
    """A picture, or a stretch of a video, to be counted by one worker."""

    source: str
    """Its name in the table: a path or a URI, without password."""
    address: str
    """Where to read it."""
    moving: bool = False
    start: float = 0.0
    """For a video: the second at which the stretch begins, and the one before which it ends."""
    end: float | None = None
    problem: str | None = None
    """Why it cannot be counted, where that is known already."""

    @property
    def key(self) -> str:
        """Its identity among all items of a job."""
        return f"{self.source}@{self.start:g}-{self.end}" if self.moving else self.source


@dataclass(frozen=True)
class Part:
    """Items that are counted by one task and written as one file."""

    items: tuple[Item, ...]

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"part-{hashlib.sha256(self.covers.encode()).hexdigest()[:20]}{SUFFIX}"

    @property
    def covers(self) -> str:
        """The keys of its items, as JSON."""
        return json.dumps([item.key for item in self.items])


def left_to_count(items: Sequence[Item], out: Place, size: int) -> list[Part]:
    """Return the parts that have no file yet; a file that is there must be whole.

    Where the folder holds parts of another division, because sources were added since, what those cover is left out.
    """
    there = {name for name in out.names() if name.startswith("part-") and name.endswith(SUFFIX)}
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:  # each waits for the network, where they lie there
        covered = {key for keys in pool.map(_covered, (out / name for name in sorted(there))) for key in keys}
    parts = list(_grouped(items, size))
    if not there <= {part.file for part in parts}:
        parts = list(_grouped((item for item in items if item.key not in covered), size))
    return [part for part in parts if part.file not in there]


def _grouped(items: Iterable[Item], size: int) -> Iterator[Part]:
    """Group items into parts; a stretch of video is one of its own, as it takes as long as many pictures."""
    items = list(items)
    pictures = (item for item in items if not item.moving)
    while some := tuple(islice(pictures, size)):
        yield Part(some)
    yield from (Part((item,)) for item in items if item.moving)


def _covered(file: Place) -> list[str]:
    import pyarrow.parquet as pq

    damaged = (OSError, ValueError, KeyError, RecursionError)  # pyarrow's own are among them
    reason, advice = "not a whole part of a table ({error})", "delete it, and what it held is counted again"
    with as_input_error(damaged, file.path, reason, advice), file.system.open_input_file(file.path) as opened:
        keys = json.loads((pq.read_schema(opened).metadata or {})[ITEMS])
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ValueError("it does not list what it covers")
        return keys
