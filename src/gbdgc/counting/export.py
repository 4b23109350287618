"""Exporting a model for other runtimes, in 32 or 8 bits, and measuring how its counts differ from torch's."""

import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.checkpoint import load_model, model_file
from gbdgc.counting.counter import Counter
from gbdgc.counting.engines import EXPORT_SUFFIXES, TorchEngine, exported_for, pack, seal_holds
from gbdgc.counting.graph import WRITERS, scale_density, write_graph
from gbdgc.counting.rounding import in_8_bits
from gbdgc.counting.tiling import TILE, count_cells, stack
from gbdgc.data.images import RGB
from gbdgc.data.transforms import limit_side
from gbdgc.errors import InputError, as_input_error
from gbdgc.files import file_digest, folder_beside
from gbdgc.models.weights import cache_folder

_FORMAT = 4
"""Part of the names of cached exports; increase it when the graph changes."""
_KEPT_EXPORTS = 16
_DRAWN, DRAWN_CHECKED = 20, 4
"""Drawn scenes to calibrate on if there are no pictures, four per domain, as the largest values are rare; and how many
others to check on."""
MAX_DRIFT = 0.02
"""The largest drift of 8-bit counts that is accepted, as a share of the count."""
_log = logging.getLogger(__name__)


class Drift(NamedTuple):
    """How an engine's counts differ from torch's on the same pictures, and how fast each is."""

    images: int
    relative: float
    """The mean of the differences without their signs, as a share of the mean count."""
    bias: float
    """The mean difference, as a share of the mean count."""
    milliseconds: float
    """Per image, the minimum over all, to reduce the effect of a busy machine; the same for torch."""
    torch_milliseconds: float

    @property
    def speedup(self) -> float:
        """How many times as fast as torch."""
        return self.torch_milliseconds / self.milliseconds


def export(weights: str | Path, out: Path, *, calibration: Sequence[RGB] | None = None) -> None:
    """Write a model for the engine that the suffix of ``out`` implies; in 8 bits if calibration pictures are given.

    The file takes any batch and any sides that are multiples of 16, and carries the model's description in it.
    """
    engine = exported_for(out)
    if engine is None:
        raise InputError(str(out), f"exported files end in {' or '.join(EXPORT_SUFFIXES.values())}")
    network, info, arrays = load_model(weights)
    description = pack(info, arrays)
    write = WRITERS[engine]
    with folder_beside(out) as folder:
        graph = write_graph(network, folder / "graph.onnx")
        if calibration is not None:
            inputs = calibration_windows(calibration, info.get("max_side"), info.get("test_scale", 1.0))
            graph = in_8_bits(graph, inputs)
            # What drift is left is nearly one factor for all pictures. The head, which stays in 32 bits, takes it back.
            write(graph, trial := folder / f"trial{out.suffix}", description)
            engines = (Counter.load(trial).engine, TorchEngine(network, device="cpu"))
            rounded, exact = (sum(float(run(images).sum(dtype=np.float64)) for images in inputs) for run in engines)
            scale_density(graph, exact / rounded if rounded > 0 and exact > 0 else 1.0)
        write(graph, out, description)


def export_to_cache(weights: Path, engine: str, *, int8: bool = False) -> Path:
    """Return the cached export of a model, creating it if needed; 8 bits are calibrated on drawn scenes."""
    file = model_file(weights)
    with as_input_error(OSError, file, "cannot be read ({error})", "name a run's folder or a model file"):
        digest = file_digest(file)[:16]
    path = cache_folder() / "exported" / f"{digest}-{_FORMAT}{'-int8' if int8 else ''}{EXPORT_SUFFIXES[engine]}"
    if path.exists() and not seal_holds(path):  # nobody but us writes there: it is not as we wrote it
        _log.warning("%s: damaged; exporting the model again", path)
        path.unlink(missing_ok=True)
    if not path.exists():
        _log.info("%s: exporting for %s, once", weights, engine)
        export(weights, path, calibration=drawn_scenes() if int8 else None)
        # On scenes that it was not calibrated on.
        if (
            int8
            and (drift := measure_drift(weights, path, drawn_scenes(DRAWN_CHECKED, first=_DRAWN))).relative > MAX_DRIFT
        ):
            _delete(path)
            reason = f"in 8 bits its counts of drawn scenes drift by {drift.relative:.1%}, over {MAX_DRIFT:.0%}"
            advice = "export it with calibration pictures like those to be counted"
            raise InputError(str(weights), reason, advice)
        # Only the newest exports are kept; older ones are recreated when needed.
        exports = [each for each in path.parent.iterdir() if exported_for(each)]
        with suppress(FileNotFoundError):  # another process may be at it too
            for old in sorted(exports, key=lambda each: -each.stat().st_mtime)[_KEPT_EXPORTS:]:
                _delete(old)
    return path


def _delete(export: Path) -> None:
    export.unlink()
    export.with_suffix(".bin").unlink(missing_ok=True)  # OpenVINO's weights


def drawn_scenes(count: int | None = None, first: int = 0) -> list[RGB]:
    """Return drawn crowds from the source domains in turn, deterministic for the same arguments."""
    from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene  # here: its compiled code is slow to import

    numbers = range(first, first + (_DRAWN if count is None else count))
    return [draw_scene(SOURCE_DOMAINS[n % len(SOURCE_DOMAINS)], np.random.default_rng(n))[0] for n in numbers]


def measure_drift(weights: str | Path, exported: Path, images: Sequence[RGB]) -> Drift:
    """Count pictures with torch and with an exported file, alternately."""
    network, info, _ = load_model(weights)
    engines = (TorchEngine(network, device="cpu"), Counter.load(exported).engine)
    counts = np.zeros((2, len(images)))
    fastest = [math.inf, math.inf]
    for column, image in enumerate(images):
        seen = limit_side(image, info.get("max_side"), info.get("test_scale", 1.0))
        for row, engine in enumerate(engines):
            counts[row, column] = count_cells(engine, [seen]).sum(dtype=np.float64)  # also warms up for this size
            started = time.perf_counter()
            count_cells(engine, [seen])
            fastest[row] = min(fastest[row], 1000 * (time.perf_counter() - started))
    difference = counts[1] - counts[0]
    mean = max(float(counts[0].mean()), 1.0)
    relative, bias = float(np.abs(difference).mean()) / mean, float(difference.mean()) / mean
    return Drift(len(images), relative, bias, fastest[1], fastest[0])


def calibration_windows(
    images: Sequence[RGB], max_side: int | None = None, scale: float = 1.0
) -> list[NDArray[np.float32]]:
    """Return pictures as an engine receives them, each cropped to at most one window."""
    seen = [limit_side(image, max_side, scale)[:TILE, :TILE] for image in images]
    return [np.ascontiguousarray(stack([image])) for image in seen]
