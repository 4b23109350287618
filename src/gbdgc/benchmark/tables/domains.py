"""The test of whether pseudo-domains help: ours and the paper's method against plain regression, by partition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gbdgc.benchmark.declaration import Benchmark, Cell
from gbdgc.benchmark.layout import ERRORS, Column, Line, Table, Value, by_pair, notes, pair_columns, pair_values
from gbdgc.benchmark.measures import errors_by_picture
from gbdgc.benchmark.protocol import to_every_other
from gbdgc.benchmark.tables.partition import PARTITION_ROWS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BASELINE = "plain regression"
_MEASURES = {"MAE": ERRORS["MAE"]}
_CHANGE: Column = ("all", "all", "change, %")
_DRAWS = 2000
_MIXING = "method.name=mixing"
_STABLE = PARTITION_ROWS["granular balls, stable"]


def relative_change(cells: Sequence[Cell], baseline: Sequence[Cell]) -> Value | None:
    """Return the change of the MAE against the baseline in per cent, mean over the transfers, with its 95 % interval.

    Rows are paired by seed and picture. The interval comes from a hierarchical bootstrap: seeds are drawn, then
    pictures within each of them, so that it is as wide as the fewer seeds make it.
    """
    import numpy as np  # here, as the help lists the tables

    pairs = []
    for pair, group in by_pair(cells).items():
        others = {cell["seed"]: cell["errors"] for cell in by_pair(baseline).get(pair, [])}
        if both := [(cell["errors"], others[cell["seed"]]) for cell in group if cell["seed"] in others]:
            pairs.append(np.abs(np.array(both)))  # (seeds, 2, pictures)
    if not pairs:
        return None
    random = np.random.default_rng(0)
    replicates = []
    for _ in range(_DRAWS):
        changes = []
        for errors in pairs:
            seeds = random.integers(len(errors), size=len(errors))
            pictures = random.integers(errors.shape[2], size=errors.shape[2])
            changes.append(_change(errors[seeds][:, :, pictures]))
        replicates.append(np.mean(changes))
    low, high = np.percentile(replicates, [2.5, 97.5])
    return Value(float(np.mean([_change(errors) for errors in pairs])), float(low), float(high))


def _change(errors_S2N: "NDArray[np.float64]") -> float:
    ours, theirs = errors_S2N.mean(axis=(0, 2))
    return float(100 * (ours / theirs - 1))


def layout(benchmark: Benchmark, cells: Sequence[Cell]) -> list[Table]:
    """Show the MAE of each transfer, and the change against plain regression over all of them."""
    rows = benchmark.rows(cells)
    lines = []
    for label, own in rows.items():
        values = pair_values(own, _MEASURES)
        change = relative_change(own, rows.get(_BASELINE, [])) if label != _BASELINE else None
        if change is not None:
            values[_CHANGE] = change
        lines.append(Line((label,), values))
    about_change = (
        "change: of the MAE against plain regression, paired by seed and picture, mean over the transfers, with a "
        "95 % interval of a bootstrap over seeds and pictures; better only where the whole interval is below 0"
    )
    columns = [*pair_columns(cells, _MEASURES), _CHANGE]
    shown = [*notes(cells), about_change]
    # The lowest number is not marked: without its interval it would say more than is known.
    return [Table(benchmark.name, benchmark.caption, columns, lines, shown, marks_best=False)]


USE_OF_DOMAINS = Benchmark(
    name="domains",
    caption="Whether pseudo-domains help",
    variants={
        _BASELINE: ["method.name=erm"],
        "GBDGC": ["method.name=gbdgc"],
        **{f"mixing, {name}": [_MIXING, *overrides] for name, overrides in PARTITION_ROWS.items()},
        "balanced, granular balls, stable": [_MIXING, "method.mix=0", "data.balanced=true", *_STABLE],
        "mixing and L_equal": [_MIXING, "method.equal_density=0.1", *_STABLE],
        "L_equal alone": [_MIXING, "method.mix=0", "method.equal_density=0.1", *_STABLE],
    },
    pairs=to_every_other,
    measure=errors_by_picture,
    layout=layout,
)
