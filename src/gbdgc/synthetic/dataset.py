"""Drawn crowds: data sets whose latent domains are known, because they were drawn that way.

A source data set mixes several domains. The pictures do not say which is which; the truth is kept aside, in a column of
``tags.csv``. Targets are domains that the source does not have.
"""

import csv
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from gbdgc.errors import InputError
from gbdgc.files import AnyPath, atomic_write
from gbdgc.progress import track
from gbdgc.synthetic.domains import DOMAINS, SOURCE_DOMAINS, TARGET_DOMAINS, SceneDomain, find_domain
from gbdgc.synthetic.painting import draw_scene
from gbdgc.synthetic.sprites import atlas

_MAT_HEADER = b"MATLAB 5.0 MAT-file, drawn by gbdgc"
_MAT_HEADER_SIZE = 116


def draw_dataset(
    dest: AnyPath,
    *,
    images: Mapping[str, int] | None = None,
    domains: Sequence[SceneDomain | str] = SOURCE_DOMAINS,
    seed: int = 0,
    size: tuple[int, int] = (640, 480),
    workers: int | None = None,
    empty: bool = False,
) -> Path:
    """Draw a data set in the layout of ShanghaiTech and return its folder.

    Each split is a folder ``<split>_data`` with ``images/IMG_1.jpg``, ``ground-truth/GT_IMG_1.mat`` and so on, and
    ``tags.csv``, which tells the domain of each picture. The same arguments give the same bytes, whatever the number of
    workers, and a picture does not change when more are drawn after it.

    Parameters
    ----------
    dest : the folder; created if necessary.
    images : how many pictures each split has; 48 for train and 12 for test by default.
    domains : what the pictures are mixed from, in equal shares.
    seed : a different seed draws different pictures.
    size : width and height of the pictures.
    workers : how many pictures are drawn at a time; by default a few more than there are cores.
    empty : draw the places without people.
    """
    dest = Path(dest)
    splits = {"train": 48, "test": 12} if images is None else images
    mixed = [find_domain(domain) for domain in domains]
    if not mixed:
        raise InputError("a data set needs at least one domain", next_step=f"there are: {', '.join(DOMAINS)}")
    pictures = {split: _plan(split, number, mixed, seed) for split, number in splits.items()}
    for split, planned in pictures.items():
        # Pictures that this data set does not have would silently become part of it.
        folder = dest / f"{split}_data/images"
        expected = {f"IMG_{number}.jpg" for number in range(1, len(planned) + 1)}
        if strangers := sorted(path.name for path in folder.glob("*") if path.name not in expected):
            raise InputError(folder, f"has other pictures, such as {strangers[0]}", "choose another folder")
    for wardrobe in {domain.wardrobe for domain in mixed}:
        atlas(wardrobe)

    def draw(picture: tuple[str, int, SceneDomain, tuple[int, int]]) -> None:
        split, number, domain, key = picture
        folder, rng = dest / f"{split}_data", np.random.default_rng(key)
        image, points = draw_scene(domain, rng, size, empty=empty)
        with atomic_write(folder / f"images/IMG_{number}.jpg") as file:
            Image.fromarray(image).save(file, "JPEG", quality=int(rng.integers(*domain.quality, endpoint=True)))
        with atomic_write(folder / f"ground-truth/GT_IMG_{number}.mat") as file:
            file.write(_shanghaitech_labels(points))

    # Threads, since nearly all the work is in compiled code that runs side by side; and they share the sprites.
    orders = [picture for planned in pictures.values() for picture in planned]
    with ThreadPoolExecutor(workers) as pool:
        for _ in track(pool.map(draw, orders), f"drawing {dest.name}", total=len(orders)):
            pass
    for split, planned in pictures.items():
        rows = [[f"IMG_{number}.jpg", domain.name] for _, number, domain, _ in planned]
        with atomic_write(dest / f"{split}_data/tags.csv", "w") as file:
            csv.writer(file, lineterminator="\n").writerows([["image", "domain"], *rows])
    return dest


def draw_demo(
    dest: AnyPath,
    *,
    seed: int = 0,
    train: int = 48,
    test: int = 12,
    size: tuple[int, int] = (640, 480),
) -> Path:
    """Draw a source data set and unseen targets: ``DEST/source`` and ``DEST/targets/<domain>``; return DEST.

    The source has ``train`` and ``test`` pictures of all source domains together, each target has ``test`` of its own.
    """
    dest = Path(dest)
    draw_dataset(dest / "source", images={"train": train, "test": test}, seed=seed, size=size)
    for name in TARGET_DOMAINS:
        folder = dest / "targets" / name
        draw_dataset(folder, images={"test": test}, domains=[name], seed=seed, size=size)
    return dest


def _plan(
    split: str, number: int, domains: Sequence[SceneDomain], seed: int
) -> list[tuple[str, int, SceneDomain, tuple[int, int]]]:
    """Which picture is of which domain: each run of as many pictures as there are domains has all of them, shuffled."""
    pictures = []
    for index in range(number):
        deck = np.random.default_rng([seed, zlib.crc32(split.encode()), index // len(domains)])
        domain = domains[deck.permutation(len(domains))[index % len(domains)]]
        key = zlib.crc32(f"{split}/{index}/{domain.name}".encode())
        pictures.append((split, index + 1, domain, (seed, key)))
    return pictures


def _shanghaitech_labels(points: NDArray[np.float32]) -> bytes:
    """The official nest: a cell of a struct whose location is the points and whose number their count."""
    info = np.empty((1, 1), [("location", object), ("number", object)])
    info[0, 0] = (points.astype(np.float64), np.array([[len(points)]], np.min_scalar_type(len(points))))
    cell = np.empty((1, 1), object)
    cell[0, 0] = info
    # scipy writes to streams as well, which its type stubs do not know.
    buffer: Any = BytesIO()
    savemat(buffer, {"image_info": cell}, do_compression=True)
    # The header that scipy writes tells the time, and so would differ from run to run.
    content: bytes = buffer.getvalue()
    return _MAT_HEADER.ljust(_MAT_HEADER_SIZE) + content[_MAT_HEADER_SIZE:]
