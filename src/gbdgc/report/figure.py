"""A figure for papers: pictures, their ground truth and the densities of models, on one scale."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gbdgc.counting import Counter
from gbdgc.counting.overlay import density_palette
from gbdgc.data import Dataset, Sample
from gbdgc.data.images import read_image
from gbdgc.data.statistics import at_equal_steps
from gbdgc.errors import InputError
from gbdgc.files import AnyPath, atomic_write
from gbdgc.report.pictures import levels_on_one_scale

_WIDTH = 2.6  # inches of a picture: five of them fill the width of a page
_FORMATS = ("png", "pdf")


def write_figure(counters: Mapping[str, Counter], samples: Sequence[Sample], out: AnyPath) -> list[Path]:
    """Draw a row per picture: itself, the truth, and the density of each model with its count; as PNG and as PDF."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    colours = ListedColormap(np.frombuffer(density_palette(), np.uint8).reshape(-1, 3) / 255)
    heights = [_WIDTH * sample.height / sample.width for sample in samples]
    columns = 2 + len(counters)
    figure = Figure(figsize=(_WIDTH * columns, sum(heights) + 0.3 * (len(samples) + 1)), layout="constrained")
    rows = figure.subplots(len(samples), columns, squeeze=False, height_ratios=heights)
    for number, (axes, sample) in enumerate(zip(rows, samples, strict=True)):
        if sample.points is None:
            raise InputError(sample.id, "it has no labelled heads", "choose pictures that have a truth to compare with")
        results = {name: counter(sample.image) for name, counter in counters.items()}
        truth, *seen = levels_on_one_scale(sample, list(results.values()))
        labels = [sample.id, f"truth: {sample.count:,}", *(f"{result.count:,.0f}" for result in results.values())]
        heads = ["Picture", "Ground truth", *results] if number == 0 else [""] * columns
        for ax, head, label in zip(axes, heads, labels, strict=True):
            ax.set(xticks=[], yticks=[], title=head, xlabel=label)
        axes[0].imshow(read_image(sample.image))
        for ax, levels in zip(axes[1:], [truth, *seen], strict=True):
            ax.imshow(np.sqrt(levels), cmap=colours, vmin=0, vmax=1, interpolation="bilinear")
    written = [Path(out).with_suffix(f".{format}") for format in _FORMATS]
    for path in written:
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=path.suffix[1:], dpi=200)
    return written


def choose(dataset: Dataset, ids: Sequence[str]) -> list[Sample]:
    """Return the pictures of these ids; without any, four from the sparsest to the densest."""
    if ids:
        return [dataset.by_id(id) for id in ids]
    return at_equal_steps(sorted(dataset.labelled, key=lambda sample: (sample.count or 0, sample.id)), 4)
