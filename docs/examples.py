"""Draw what the pages here count: `python docs/examples.py FOLDER`, then run their commands in that folder."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from gbdgc.counting.video.writing import VideoWriter
from gbdgc.synthetic import draw_scene

SIZE = (640, 480)
STREET = {"cam1.jpg": ("plaza-day", 3), "cam2.jpg": ("park-fog", 11), "cam3.jpg": ("stadium-dense", 5)}
ZONES = (
    '{"relative": true, "zones": {"gate": [[0, 0.4], [0.5, 0.4], [0.5, 1], [0, 1]], '
    '"road": [[0.5, 0.4], [1, 0.4], [1, 1], [0.5, 1]]}}\n'
)


def main(folder: Path) -> None:
    """Write street/, gate.mp4 and zones.json, and say how many people were drawn."""
    (folder / "street").mkdir(parents=True)
    for name, (domain, seed) in STREET.items():
        scene, heads = draw_scene(domain, np.random.default_rng(seed), SIZE)[:2]
        Image.fromarray(scene).save(folder / "street" / name, quality=90)
        print(f"street/{name}: {len(heads)} people")
    whole = (folder / "street" / "cam2.jpg").read_bytes()
    (folder / "street" / "cam2-copy.jpg").write_bytes(whole[: len(whole) // 2])
    wide = draw_scene("plaza-day", np.random.default_rng(12), (800, 480))[0]
    with VideoWriter(folder / "gate.mp4", fps=25, size=SIZE) as film:
        for left in range(100):  # four seconds of a camera that turns
            film.write(wide[:, left : left + SIZE[0]])
    (folder / "zones.json").write_text(ZONES)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
