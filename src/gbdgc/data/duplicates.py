"""Finding duplicates of a picture, even if it was resized, recompressed, marked or slightly cropped.

Candidates are pairs with nearly equal perceptual hashes. A candidate is a duplicate if every part of one is found in
the other, near the same place. The second step tells apart two frames of a fixed camera: they mostly agree, but where
somebody walked, nothing nearby looks alike.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.fft import dctn
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gbdgc.data.images import RGB

_SIDE = 64  # of the grey thumbnail
_BLOCK = 8  # side of the parts of the thumbnail that are searched for
_SHIFTS = (0, -1, 1, -2, 2)  # where they are searched for, nearest first
# Both limits were set on ShanghaiTech. Copies of one picture differ there in at most 2 bits and by 0.72, different
# pictures in at least 10 bits; other moments of one camera differ by 2 and more.
_MAX_BITS = 12
_MAX_DIFFERENCE = 0.8
_MAX_BRIGHTNESS = 64  # so that black is not the same as white once contrasts are made equal

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Portrait:
    """The identity of a picture: a hash of its pixels, and a small grey copy."""

    digest: bytes
    thumbnail: NDArray[np.uint8]


def portrait(image: RGB) -> Portrait:
    """Return the portrait of an upright picture."""
    digest = hashlib.sha256(str(image.shape).encode())
    digest.update(image.tobytes())
    grey = Image.fromarray(image).convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return Portrait(digest.digest(), np.asarray(grey))


def same_pictures(portraits: Sequence[Portrait]) -> list[list[int]]:
    """Return groups of positions that hold the same picture."""
    if not portraits:
        return []
    originals: dict[bytes, int] = {}
    copies = [(originals.setdefault(each.digest, index), index) for index, each in enumerate(portraits)]
    distinct = list(originals.values())
    thumbnails = np.stack([portraits[index].thumbnail for index in distinct]).astype(np.float32)
    brightness, contrast = thumbnails.mean((1, 2)), thumbnails.std((1, 2))
    levelled = (thumbnails - brightness[:, None, None]) * (50 / np.maximum(contrast, 10))[:, None, None]
    hashes = _perceptual_hashes(thumbnails)
    for first, own in enumerate(hashes):
        similar = np.bitwise_count(hashes[first + 1 :] ^ own) <= _MAX_BITS
        similar &= np.abs(brightness[first + 1 :] - brightness[first]) <= _MAX_BRIGHTNESS
        for second in (np.flatnonzero(similar) + first + 1).tolist():
            if _same(levelled[first], levelled[second]):
                copies.append((distinct[first], distinct[second]))
    links = coo_array((np.ones(len(copies), np.bool_), np.transpose(copies)), shape=(len(portraits),) * 2)
    _, group = connected_components(links, directed=False)
    order = np.argsort(group, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return sorted(run.tolist() for run in runs if len(run) > 1)


def _perceptual_hashes(thumbnails: Floats) -> NDArray[np.uint64]:
    """Return 64 bits per picture: which of its slowest waves lie above their median."""
    halved = thumbnails.reshape(len(thumbnails), _SIDE // 2, 2, _SIDE // 2, 2).mean((2, 4))
    waves = dctn(halved, axes=(1, 2))[:, :8, :8].reshape(len(thumbnails), 64)
    waves[:, 0] = np.median(waves[:, 1:], axis=1)  # the mean brightness tells nothing
    bits = waves > np.median(waves[:, 1:], axis=1, keepdims=True)
    return np.packbits(bits, axis=1).view(np.uint64)[:, 0]


@numba.njit(cache=True)
def _same(first: Floats, second: Floats) -> bool:
    """Return whether every part of the first thumbnail is found near its place in the second."""
    for top in range(0, _SIDE, _BLOCK):
        for left in range(0, _SIDE, _BLOCK):
            part = first[top : top + _BLOCK, left : left + _BLOCK]
            # Relative to the part's own contrast, and to five grey levels of noise where it has none.
            limit = (_MAX_DIFFERENCE * (part.std() + 5)) ** 2 * part.size
            if not _found(part, second, top, left, limit):
                return False
    return True


@numba.njit(cache=True)
def _found(part: Floats, picture: Floats, top: int, left: int, limit: float) -> bool:
    """Return whether the squared differences from the picture stay within the limit somewhere near (top, left)."""
    for down in _SHIFTS:
        for right in _SHIFTS:
            total = 0.0
            for i in range(_BLOCK):
                y = min(max(top + down + i, 0), _SIDE - 1)
                for j in range(_BLOCK):
                    x = min(max(left + right + j, 0), _SIDE - 1)
                    total += (part[i, j] - picture[y, x]) ** 2
            if total <= limit:
                return True
    return False
