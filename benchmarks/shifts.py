"""How a model counts its own source when that is made to look different: what settings are chosen by.

    python benchmarks/shifts.py RUN... [--pictures N] [--scales FACTOR...]

RUN is a folder of `gbdgc train`. Its validation part, which training never saw, is counted as it is and under strong
changes of light, colour, sharpness and scale: stand-ins for cameras that nobody has shown it. With --scales it is
counted at these sizes instead. No target is looked at.
An error is relative to the mean count, so that runs on different sources can be read side by side.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gbdgc import checkpoint
from gbdgc.config import load_config
from gbdgc.counting.engines import TorchEngine
from gbdgc.counting.tiling import count_cells
from gbdgc.data import transforms
from gbdgc.data.images import RGB, read_image
from gbdgc.progress import stdout, track
from gbdgc.training.state import load_source


def scaled(factor: float) -> Callable[[RGB], RGB]:
    return lambda image: transforms.resized(image, *(max(32, round(factor * side)) for side in image.shape[1::-1]))


def exposed(gain: float, gamma: float) -> Callable[[RGB], RGB]:
    curve = (255 * np.clip(gain * (np.arange(256) / 255) ** gamma, 0, 1)).astype(np.uint8)
    return lambda image: curve[image]


def hazed(image: RGB) -> RGB:
    return (0.45 * image + 0.55 * np.array([200, 205, 215])).astype(np.uint8)


def tinted(image: RGB) -> RGB:
    return np.clip(image * np.array([1.25, 1.0, 0.65]), 0, 255).astype(np.uint8)


Shifts = dict[str, Callable[[RGB], RGB]]
AS_IT_IS: Shifts = {"as it is": lambda image: image}
SHIFTS: Shifts = {
    "half size": scaled(0.5),
    "double size": scaled(2.0),
    "dark": exposed(0.7, 1.8),
    "bright": exposed(1.2, 0.6),
    "haze": hazed,
    "evening light": tinted,
    "grey": transforms.grey,
    "blurred": lambda image: transforms.blur(image, 2.0),
    "noisy": lambda image: transforms.noise(image, 20.0, np.random.default_rng(0)),
}


def errors(run: Path, shifts: Shifts, pictures: int | None) -> NDArray[np.float64]:
    """Relative error under each shift."""
    config = load_config(run / "config.yaml")
    _, validation = load_source(config)
    if validation is None:
        raise SystemExit(f"{run}: kept no validation part")
    network, *_ = checkpoint.load_model(run / "checkpoints" / checkpoint.BEST)
    engine = TorchEngine(network)
    samples = list(validation)[:pictures]
    missed = np.zeros((len(samples), len(shifts)))
    for row, sample in enumerate(track(samples, run.name, unit="pictures")):
        image = transforms.limit_side(read_image(sample.image), config.data.max_side)
        for column, shift in enumerate(shifts.values()):
            cells = count_cells(engine, [np.ascontiguousarray(shift(image))], tile=max(image.shape))
            missed[row, column] = cells.sum(dtype=np.float64) - (sample.count or 0)
    return np.abs(missed).mean(axis=0) / np.mean([sample.count or 0 for sample in samples])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--pictures", type=int, help="only the first N of the validation part")
    parser.add_argument("--scales", nargs="+", type=float, metavar="FACTOR", help="only these changes of size")
    given = parser.parse_args()
    chosen = {f"{factor:g} x the size": scaled(factor) for factor in given.scales} if given.scales else SHIFTS
    shifts = AS_IT_IS | chosen
    found = {run.name: errors(run, shifts, given.pictures) for run in given.runs}
    table = Table("shift", *found, title="error / mean count, on the source's validation part")
    for index, name in enumerate(shifts):
        table.add_row(name, *(f"{error[index]:.3f}" for error in found.values()))
    table.add_section()
    table.add_row("mean over shifts", *(f"{error[1:].mean():.3f}" for error in found.values()))
    stdout.print(table)
