"""Drawn data sets that stand in for the paper's four, under their own names."""

from pathlib import Path

from gbdgc.files import AnyPath
from gbdgc.synthetic import SOURCE_DOMAINS, TARGET_DOMAINS, draw_dataset

STAND_INS = {
    "drawn A": (SOURCE_DOMAINS[0::2], 0),
    "drawn B": (SOURCE_DOMAINS[1::2], 1),
    "drawn Q": (TARGET_DOMAINS, 2),
    "drawn N": ((*SOURCE_DOMAINS[0::2], *TARGET_DOMAINS), 3),
}
"""The domains and the seed of each. A, B and Q have no domain in common, as the real three have no camera in common."""


def draw_benchmark_data(
    dest: AnyPath, *, train: int = 48, test: int = 24, size: tuple[int, int] = (640, 480)
) -> dict[str, Path]:
    """Draw those of the four data sets that do not exist yet, and return all folders by name."""
    images = {"train": train, "test": test}
    folders = {}
    for name, (domains, seed) in STAND_INS.items():
        folder = Path(dest) / f"{name.replace(' ', '_')}-{train}+{test}-{size[0]}x{size[1]}"
        # The tags are written last: where they are, everything is.
        if not all((folder / f"{split}_data" / "tags.csv").exists() for split in images):
            draw_dataset(folder, images=images, domains=domains, seed=seed, size=size)
        folders[name] = folder
    return folders
