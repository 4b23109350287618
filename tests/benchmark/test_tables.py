"""The paper's layouts, with its numbers beside ours."""

import csv
import io
from typing import Any

import numpy as np
import pytest
import scipy.stats
from rich.console import Console

from gbdgc import published
from gbdgc.benchmark import FORMS, build_tables
from gbdgc.benchmark.layout import Table, Value, over_seeds
from gbdgc.benchmark.tables.partition import PARTITION_ROWS
from gbdgc.benchmark.text import to_rich
from gbdgc.errors import InputError


def cell(
    source: str, target: str | None, variant: str, seed: int = 0, mae: float = 50.0, **more: Any
) -> dict[str, Any]:
    """Make a result as the grid writes it."""
    return {
        "source": source,
        "target": target,
        "variant": variant,
        "seed": seed,
        "config": "sha",
        "backbone": "vgg16",
        "epochs": 200,
        "selection": "last epoch",
        "settings": {"train.epochs": 200},
        "split": "test",
        "max_side": 1920 if target == "QNRF" else None,
        "images": 316,
        "unreadable": 0,
        "mae": {"value": mae},
        "rmse": {"value": 2 * mae},
    } | more


def test_seeds_trained_in_different_ways_are_not_averaged() -> None:
    cells = [cell("SHA", "SHB", "GBDGC", seed) for seed in (0, 1)]
    build_tables("transfer", cells)
    cells[1]["settings"] = {"train.epochs": 100}
    with pytest.raises(InputError, match="GBDGC on SHA: seeds 0 and 1 were trained with different settings"):
        build_tables("transfer", cells)


def test_the_note_says_where_cells_have_different_numbers_of_seeds_and_sizes() -> None:
    cells = [cell("SHA", "SHB", "GBDGC", seed) for seed in (0, 1)] + [cell("QNRF", "SHB", "GBDGC", max_side=1920)]
    (table,) = build_tables("transfer", cells)
    assert "means of 1 to 2 seeds" in table.notes[0]
    assert "SHB 316 (test, full size)" in table.notes[2]
    assert "SHB 316 (test, longer side up to 1920)" in table.notes[2]


PAIRS = [("SHA", "SHB"), ("SHA", "QNRF"), ("SHB", "SHA"), ("SHB", "QNRF"), ("QNRF", "SHA"), ("QNRF", "SHB")]


def value(table: Table, label: str, numbers: str, *column: str) -> float:
    line = next(line for line in table.lines if label in line.labels and numbers in line.labels)
    return line.values[column].mean


def test_the_transfer_table_has_six_pairs_twelve_methods_and_ours_last() -> None:
    (table,) = build_tables("transfer", [cell(*pair, "GBDGC") for pair in PAIRS])
    assert table.columns == [(*pair, metric) for pair in PAIRS for metric in ("MAE", "RMSE")]
    assert [line.labels[0] for line in table.lines] == [
        *("DMCount", "D2CNet", "SASNet", "MAN", "DG-MAN", "DGCC"),
        *("MPCount", "UGSDA", "MAHE", "SinCount", "ADG", "GBDGC", "GBDGC"),
    ]
    assert table.lines[0].labels == ("DMCount", "published", "NeurIPS'20")
    assert table.lines[-1].labels == ("GBDGC", "ours", "")
    assert value(table, "GBDGC", "published", "SHA", "SHB", "RMSE") == 15.7
    assert value(table, "GBDGC", "ours", "SHA", "SHB", "RMSE") == 100.0
    assert ("QNRF", "SHA", "MAE") not in table.lines[1].values


def test_nwpu_stands_in_a_table_of_its_own_with_the_joint_source() -> None:
    cells = [cell(source, "NWPU", "GBDGC") for source in ("SHA+SHB", "SHB", "SHA")]
    (table,) = build_tables("transfer", cells)
    assert table.columns[::2] == [("SHA", "NWPU", "MAE"), ("SHB", "NWPU", "MAE"), ("SHA+SHB", "NWPU", "MAE")]
    assert value(table, "DGCC", "published", "SHA+SHB", "NWPU", "RMSE") == 553.6


@pytest.mark.parametrize("benchmark", ["partition", "components"])
def test_each_row_of_an_ablation_stands_beside_the_published_one(benchmark: str) -> None:
    names = list(dict.fromkeys(row.method for row in published.transfers(benchmark)))
    (table,) = build_tables(benchmark, [cell(*pair, name) for pair in PAIRS for name in names])
    assert [line.labels for line in table.lines] == [
        (name, numbers) for name in names for numbers in ("published", "ours")
    ]


def test_sources_with_other_ks_have_a_table_of_their_own_as_in_the_paper() -> None:
    ks = {"SHA": (3, 4, 5), "SHB": (3, 4, 5), "QNRF": (5, 6, 7)}
    first, second = build_tables("k", [cell(*pair, f"K={k}") for pair in PAIRS for k in ks[pair[0]]])
    assert [line.labels[0] for line in first.lines[::2]] == ["K=3", "K=4", "K=5"]
    assert [line.labels[0] for line in second.lines[::2]] == ["K=5", "K=6", "K=7"]
    assert {column[0] for column in second.columns} == {"QNRF"}
    assert value(second, "K=6", "published", "QNRF", "SHA", "MAE") == 64.1


def test_rows_of_k_stand_in_the_order_of_their_numbers() -> None:
    (table,) = build_tables("k", [cell("mine", "yours", f"K={k}") for k in (10, 11, 9)])
    assert [line.labels[0] for line in table.lines] == ["K=9", "K=10", "K=11"]


def separation(source: str, partition: str, delta: float) -> dict[str, Any]:
    spread = {"delta_median": delta, "sigma_median": delta / 2}
    return cell(source, None, partition, before=spread, after=spread)


def test_separation_has_a_section_for_each_source_and_the_largest_is_best() -> None:
    (table,) = build_tables("separation", [separation("SHB", "k-means", 999), separation("SHA", "k-means", 1)])
    assert [line.labels[:2] for line in table.lines if line.section == "SHA"] == [
        ("SHA", "random"),
        ("SHA", "k-means"),
        ("SHA", "k-means"),
        ("SHA", "granular balls"),
    ]
    best = [line.labels for line in table.lines if table.is_best(line, ("after training", "Δ_med"))]
    assert best == [("SHA", "granular balls", "published"), ("SHB", "k-means", "ours")]


def test_a_change_is_paired_by_seed_and_picture_and_as_wide_as_seeds_and_pictures_make_it() -> None:
    random = np.random.default_rng(0)
    hard = random.uniform(5, 50, 200)  # how far off everybody is on each picture

    def rows(variant: str, factor: float, seeds: int, spread: float = 0.0) -> list[dict[str, Any]]:
        factors = factor * (1 + spread * random.standard_normal(seeds))
        return [cell("SHA", "SHB", variant, seed, errors=list(each * hard)) for seed, each in enumerate(factors)]

    def change(*parts: list[dict[str, Any]]) -> Value:
        (table,) = build_tables("domains", [row for part in parts for row in part])
        return table.lines[-1].values[table.columns[-1]]

    baseline = rows("plain regression", 1.0, 3)
    paired = change(baseline, rows("GBDGC", 0.9, 3))
    assert (paired.mean, paired.low, paired.high) == pytest.approx((-10, -10, -10))
    unsteady = change(baseline, rows("GBDGC", 0.9, 3, spread=0.2))
    assert unsteady.low is not None
    assert unsteady.high is not None
    assert unsteady.high - unsteady.low > 5
    (table,) = build_tables("domains", baseline)
    assert table.columns[-1] not in table.lines[0].values, "nothing is compared with itself"
    worse = [*baseline, *rows("GBDGC", 1.1, 3)]
    (table,) = build_tables("domains", worse)
    assert not any(table.is_best(line, column) for line in table.lines for column in table.columns)


def test_stability_is_shown_in_per_cent_for_each_source() -> None:
    followed = {name: {"churn": 0.1, "ari": 0.8, "nmi": 0.7, "ari_to_paper": 0.6} for name in PARTITION_ROWS}
    cells = [cell(source, None, "plain regression", partitions=followed) for source in ("SHB", "SHA")]
    (table,) = build_tables("stability", cells)
    assert [line.labels for line in table.lines] == [(s, name) for s in ("SHA", "SHB") for name in PARTITION_ROWS]
    assert [value.mean for value in table.lines[0].values.values()] == pytest.approx([10, 80, 70, 60])


def test_numbers_that_look_the_same_are_equally_good() -> None:
    (table,) = build_tables("transfer", [cell("QNRF", "SHA", "GBDGC", mae=64.13)])
    best = [line.labels[:2] for line in table.lines if table.is_best(line, ("QNRF", "SHA", "MAE"))]
    assert best == [("ADG", "published"), ("GBDGC", "published"), ("GBDGC", "ours")]


def test_only_columns_that_we_have_are_shown_and_drawn_data_gets_no_published_numbers() -> None:
    (table,) = build_tables("partition", [cell("SHA", "SHB", "random")])
    assert table.columns == [("SHA", "SHB", "MAE"), ("SHA", "SHB", "RMSE")]
    (table,) = build_tables("partition", [cell("drawn A", "drawn B", "random")])
    assert [line.labels for line in table.lines] == [("random", "ours")]
    assert any("drawn data" in note for note in table.notes)


def test_seeds_give_both_ends_for_two_and_a_t_interval_for_more() -> None:
    assert over_seeds([3.0]).low is None
    two = over_seeds([3.0, 5.0])
    assert (two.mean, two.low, two.high) == (4.0, 3.0, 5.0)
    values = [3.0, 5.0, 4.5, 4.0]
    three = over_seeds(values)
    low, high = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (three.low, three.high) == pytest.approx((low, high))


def test_every_table_says_how_models_were_chosen_what_was_counted_and_what_the_interval_is() -> None:
    cells = [cell("SHA", target, "GBDGC", seed, mae=50 + seed) for target in ("SHB", "QNRF") for seed in (0, 1)]
    cells[0]["unreadable"] = cells[1]["unreadable"] = 2
    (table,) = build_tables("transfer", cells)
    notes = "\n".join(table.notes)
    assert "models chosen by: last epoch" in notes
    assert "mean of 2 seeds, and both ends (0, 1)" in notes
    assert "SHB 316 (test, full size, 2 NOT READ), QNRF 316 (test, longer side up to 1920)" in notes
    assert 'call "MSE"' in notes
    for make in FORMS.values():
        if make is not FORMS["csv"]:
            assert "last epoch" in make([table])


def test_every_form_has_the_same_numbers() -> None:
    cells = [cell("SHA", "SHB", "GBDGC", seed, mae=10.0 + seed) for seed in (0, 1)]
    (table,) = build_tables("transfer", cells)
    lines = list(csv.DictReader(io.StringIO(FORMS["csv"]([table]))))
    ours = [line for line in lines if line["numbers"] == "ours" and line["measure"] == "MAE"]
    assert [(line["source"], line["target"], line["value"], line["low"]) for line in ours] == [
        ("SHA", "SHB", "10.5", "10.0")
    ]
    markdown = FORMS["markdown"]([table])
    assert "| Method | Numbers | Venue | SHA → SHB MAE | SHA → SHB RMSE |" in markdown
    assert "| GBDGC | ours |  | **10.5 (10.0–11.0)** | 21.0 (20.0–22.0) |" in markdown
    latex = FORMS["latex"]([table])
    assert r"Source &  &  & \multicolumn{2}{c}{SHA} \\" in latex
    assert r"\cmidrule(lr){4-5}" in latex
    assert r"GBDGC & ours &  & \textbf{10.5 (10.0--11.0)} & 21.0 (20.0--22.0) \\" in latex
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(to_rich(table))
    shown = console.export_text()
    assert "10.5 / 21.0" in shown
    assert "(10.0–11.0) / (20.0–22.0)" in shown


def test_latex_has_as_many_cells_in_each_row_as_columns() -> None:
    cells = [cell(*pair, "GBDGC") for pair in PAIRS]
    cells += [cell("SHA", "NWPU", "GBDGC")]
    for table in build_tables("transfer", cells):
        width = len(table.heads) + len(table.columns)
        rows = [row for row in FORMS["latex"]([table]).splitlines() if row.endswith(r"\\") and "multicolumn" not in row]
        assert {row.replace(r"\&", "").count("&") + 1 for row in rows} == {width}
