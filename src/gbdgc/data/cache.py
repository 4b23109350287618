"""Decoded pictures kept in memory, up to a limit."""

from collections.abc import Callable, Hashable
from threading import Lock

from gbdgc.data.images import RGB, read_image
from gbdgc.data.sample import Sample
from gbdgc.data.transforms import limit_side, resized
from gbdgc.errors import InputError


class ImageCache:
    """Reads pictures and keeps what comes first, until ``limit`` bytes are full; safe to share between threads.

    Nothing is ever evicted. Each epoch reads every picture once, in a new order, so with room for a share p of them the
    hit rate is p. Evicting the least recently used would give about p^2 / 2 for small p: nearly all pictures would be
    gone before their turn in the next epoch.
    """

    def __init__(self, limit: int = 0, *, max_side: int | None = None) -> None:
        self.limit = limit
        self.max_side = max_side
        self.size = 0
        self._kept: dict[Hashable, RGB] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def read(self, sample: Sample) -> RGB:
        """Return the sample's picture, read-only, shrunk if a side is over ``max_side``."""
        return self._get(sample.id, lambda: self._decode(sample))

    def read_resized(self, sample: Sample, width: int, height: int) -> RGB:
        """Return the whole picture at a size.

        Only the result is kept: it saves as much decoding as the full picture, for a fraction of the memory.
        """

        def make() -> RGB:
            full = self._kept.get(sample.id)
            return resized(self._decode(sample) if full is None else full, width, height)

        return self._get((sample.id, width, height), make)

    def _get(self, key: Hashable, make: Callable[[], RGB]) -> RGB:
        if (kept := self._kept.get(key)) is not None:
            return kept
        image = make()
        image.flags.writeable = False
        with self._lock:
            if key not in self._kept and self.size + image.nbytes <= self.limit:
                self._kept[key] = image
                self.size += image.nbytes
        return image

    def _decode(self, sample: Sample) -> RGB:
        # In full, also for a small result: JPEGs decode faster at half their size, but to other pixels, and what is
        # seen must not depend on what happens to be in memory.
        image = read_image(sample.image)
        height, width = image.shape[:2]
        if (width, height) != (sample.width, sample.height):
            reason = f"{width} x {height} pixels, but its sample {sample.id} says {sample.width} x {sample.height}"
            raise InputError(sample.image, reason, "if the picture was changed, load the data set again")
        return limit_side(image, self.max_side)
