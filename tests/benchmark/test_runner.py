"""Cells: run once, skipped when done, taken up when broken off."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gbdgc.benchmark import BENCHMARKS, Benchmark, Settings, build_tables, read_cells, run_benchmark
from gbdgc.benchmark.declaration import Cell
from gbdgc.benchmark.drawn import draw_benchmark_data
from gbdgc.benchmark.layout import one_error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import to_itself
from gbdgc.benchmark.runner import Interrupted, finished_cell, plan_benchmark
from gbdgc.benchmark.tables.partition import PARTITION_ROWS
from gbdgc.cli.benchmark import benchmark as command
from gbdgc.errors import InputError
from gbdgc.training import run as training

Data = dict[str, Path]


def test_a_cell_is_one_small_file_and_is_not_run_twice(settings: Callable[..., Settings], tmp_path: Path) -> None:
    cells = run_benchmark("transfer", settings())
    files = sorted((tmp_path / "out" / "transfer" / "cells").iterdir())
    assert [file.name for file in files] == [
        "drawn_A-drawn_N-GBDGC-seed0.json",
        "drawn_A-drawn_N-plain_regression-seed0.json",
    ]
    assert all(file.stat().st_size < 4000 for file in files)
    assert not any(str(tmp_path.parent) in file.read_text() for file in files)
    assert cells[0]["images"] == 3
    assert cells[0]["selection"] == "source validation"
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}
    assert run_benchmark("transfer", settings()) == cells
    assert sorted(cells, key=lambda cell: cell["variant"]) == read_cells(tmp_path / "out", "transfer")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")} == before


@pytest.mark.slow
@pytest.mark.usefixtures("finished")
def test_a_training_is_shared_by_all_tables_that_need_it(settings: Callable[..., Settings], tmp_path: Path) -> None:
    assert len(list((tmp_path / "runs").iterdir())) == 2
    shared = next(cell for cell in run_benchmark("separation", settings()) if cell["variant"] == "granular balls")
    assert len(list((tmp_path / "runs").iterdir())) == 6
    assert shared["before"].keys() == {"delta_median", "sigma_median"}


def test_a_new_table_is_one_declaration_and_one_line(
    settings: Callable[..., Settings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dropout = Benchmark(
        name="dropout",
        caption="How much dropout the head has",
        variants={"dropout 0.5": ["model.dropout=0.5"], "dropout 0": ["model.dropout=0"]},
        pairs=to_itself,
        measure=errors_on_target,
        layout=one_error_table,
    )
    monkeypatch.setitem(BENCHMARKS, "dropout", dropout)
    cells = run_benchmark("dropout", settings())
    assert [cell["settings"]["model.dropout"] for cell in cells] == [0.5, 0.0]
    command("dropout", tables_only=True, out=tmp_path / "out", format="markdown")
    table = capsys.readouterr().out
    assert "### How much dropout the head has" in table
    assert table.index("| dropout 0.5 | ours |") < table.index("| dropout 0 | ours |")


@pytest.mark.usefixtures("finished")
def test_results_of_other_settings_are_not_mixed_into_a_table(settings: Callable[..., Settings]) -> None:
    with pytest.raises(InputError, match=r"train\.epochs: 1 then, 2 now.*another folder of results"):
        run_benchmark("transfer", settings(epochs=2))
    run_benchmark("transfer", settings(overrides=["data.workers=0"]))


@pytest.mark.usefixtures("finished")
def test_a_setting_that_came_after_a_result_had_its_default_in_it(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    before = {path: json.loads(path.read_text()) for path in (tmp_path / "out" / "transfer" / "cells").iterdir()}
    for path, cell in before.items():
        del cell["settings"]["model.dropout"]
        path.write_text(json.dumps(cell))
    run_benchmark("transfer", settings())
    assert {path: json.loads(path.read_text()) for path in before} == before
    with pytest.raises(InputError, match=r"model\.dropout: 0\.5 then, 0\.0 now"):
        run_benchmark("transfer", settings(overrides=["model.dropout=0"]))


def test_a_benchmark_that_was_interrupted_goes_on_and_ends_with_the_same_numbers(
    finished: list[Cell], settings: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = settings(out=tmp_path / "new", runs=tmp_path / "new runs")
    run_epoch = training.run_epoch
    with monkeypatch.context() as patch:

        def interrupted(*arguments: Any) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return run_epoch(*arguments)

        patch.setattr(training, "run_epoch", interrupted)
        with pytest.raises(Interrupted):
            run_benchmark("transfer", anew)
    assert not (tmp_path / "new").exists()
    assert sorted_errors(run_benchmark("transfer", anew)) == sorted_errors(finished)


def sorted_errors(cells: list[Cell]) -> list[object]:
    return [cell["mae"] for cell in sorted(cells, key=lambda cell: cell["variant"])]


@pytest.mark.usefixtures("finished")
def test_tables_are_made_again_from_the_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command("transfer", tables_only=True, out=tmp_path / "out", format="markdown")
    assert "drawn A → drawn N MAE" in capsys.readouterr().out
    written = {path.name for path in (tmp_path / "out" / "transfer").iterdir()}
    assert written == {"cells", "table.csv", "table.md", "table.tex"}
    with pytest.raises(InputError, match="no results yet"):
        command("k", tables_only=True, out=tmp_path / "out")


def test_the_command_says_what_is_wrong_with_what_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--drawn"):
        command("transfer")
    with pytest.raises(InputError, match="NAME=PATH"):
        command("transfer", data=["SHA"])
    with pytest.raises(InputError, match="no such file"):
        command("transfer", data=[f"SHA={tmp_path / 'nowhere'}"])
    with pytest.raises(InputError, match="whole numbers"):
        command("transfer", data=[f"SHA={tmp_path}"], seeds="one")


def test_only_the_sources_and_rows_asked_for_are_run(drawn: Data, settings: Callable[..., Settings]) -> None:
    two = {name: drawn[name] for name in ("drawn A", "drawn B")}
    cells = run_benchmark("within", settings(data=two, sources=["drawn B"]))
    assert {(cell["source"], cell["target"]) for cell in cells} == {("drawn B", "drawn B")}
    with pytest.raises(InputError, match="no source drawn C; there are: drawn A; drawn B"):
        run_benchmark("within", settings(data=two, sources=["drawn C"]))
    (cell,) = run_benchmark("transfer", settings(variants=["plain regression"]))
    assert cell["variant"] == "plain regression"
    with pytest.raises(InputError, match="no variant GB; there are: plain regression; GBDGC"):
        run_benchmark("transfer", settings(variants=["GB"]))


@pytest.mark.parametrize("content", ["", "3", "{}", '{"settings": 3}', '{"settings": {}}', "[" * 100_000])
def test_a_damaged_result_is_named(settings: Callable[..., Settings], content: str) -> None:
    task, *_ = plan_benchmark("transfer", settings())
    task.path.parent.mkdir(parents=True)
    task.path.write_text(content)
    for read in (partial(finished_cell, task), partial(read_cells, task.settings.out, "transfer")):
        with pytest.raises(InputError, match=r"seed0\.json: not a result .*; delete it"):
            read()


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["transfer", "within", "partition", "k", "components", "separation"])
def test_each_of_the_papers_tables_can_be_filled(
    benchmark: str, drawn: Data, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = tmp_path_factory.getbasetemp() / "papers-tables"
    names = ["drawn A", "drawn B", "drawn N"] if benchmark == "transfer" else ["drawn A", "drawn B"]
    data = {name: drawn[name] for name in names}
    # Tables with a row per setting are filled from one source: each row is a training.
    sources = [] if benchmark in ("transfer", "within") else ["drawn A"]
    cells = run_benchmark(
        benchmark, Settings(data=data, config=tiny, sources=sources, out=shared / "out", runs=shared / "runs")
    )
    tables = build_tables(benchmark, cells)
    assert len(tables) == (2 if benchmark == "transfer" else 1)
    for table in tables:
        assert all(line.values.keys() == set(table.columns) for line in table.lines)
        assert all(value.mean >= 0 for line in table.lines for value in line.values.values())
    rows = {"transfer": 2, "within": 2, "partition": 5, "k": 3, "components": 6, "separation": 5}
    assert len(tables[0].lines) == rows[benchmark]


@pytest.mark.slow
def test_the_tables_of_domains_pair_pictures_and_follow_the_labels_over_epochs(
    drawn: Data, settings: Callable[..., Settings]
) -> None:
    two = {"data": {name: drawn[name] for name in ("drawn A", "drawn B")}, "sources": ["drawn A"]}
    rows = ["plain regression", "mixing, granular balls, stable"]
    cells = run_benchmark("domains", settings(**two, variants=rows))
    for cell in cells:
        assert len(cell["errors"]) == cell["images"]
        assert sum(map(abs, cell["errors"])) / cell["images"] == pytest.approx(cell["mae"]["value"], abs=0.01)
    (table,) = build_tables("domains", cells)
    change = table.lines[1].values[table.columns[-1]].mean
    first, second = (cell["mae"]["value"] for cell in cells)
    assert change == pytest.approx(100 * (second / first - 1), abs=0.1)
    (cell,) = run_benchmark("stability", settings(**two, epochs=5))
    assert cell["epochs"] == 5
    followed = cell["partitions"]
    assert list(followed) == list(PARTITION_ROWS)
    assert followed["granular balls"]["ari_to_paper"] == 1
    assert followed["random"]["ari_to_paper"] < followed["granular balls, stable"]["ari_to_paper"]


@pytest.mark.slow
def test_the_epoch_spread_counts_the_target_after_each_of_the_last_epochs(
    drawn: Data, settings: Callable[..., Settings], tmp_path: Path
) -> None:
    two = {"data": {name: drawn[name] for name in ("drawn A", "drawn B")}, "sources": ["drawn A"], "epochs": 4}
    cells = run_benchmark("epoch_spread", settings(**two))
    assert [list(cell["by_epoch"]) for cell in cells] == [["epoch_002", "epoch_003", "epoch_004"]] * 4
    gbdgc = next(cell for cell in cells if cell["variant"] == "GBDGC")
    errors = [each["mae"] for each in gbdgc["by_epoch"].values()]
    assert len(set(errors)) == 3
    with pytest.raises(InputError, match="the last 3 epochs, and there are 2"):
        run_benchmark("epoch_spread", settings(**(two | {"epochs": 2})))
    (table,) = build_tables("epoch_spread", cells)
    line = next(line for line in table.lines if line.labels == ("GBDGC",))
    mean, spread = (line.values[column].mean for column in table.columns)
    assert (mean, spread) == (pytest.approx(sum(errors) / 3), pytest.approx(max(errors) - min(errors)))
    # The training is that of the other tables.
    trained = set((tmp_path / "runs").iterdir())
    run_benchmark("transfer", settings(**two))
    assert set((tmp_path / "runs").iterdir()) == trained
    for model in (tmp_path / "runs").glob("*/checkpoints/epoch_*"):
        model.unlink()
    with pytest.raises(InputError, match="keeps 0 of its last 3 epochs"):
        run_benchmark("epoch_spread", settings(**two, out=tmp_path / "again"))


def test_targets_can_be_counted_by_another_engine(
    finished: list[Cell], settings: Callable[..., Settings], tmp_path: Path
) -> None:
    torch = run_benchmark("transfer", settings())
    assert sorted_errors(torch) == sorted_errors(finished)
    assert [cell["engine"] for cell in torch] == ["torch"] * 2
    # One row is enough, as the export of each takes long.
    (onnx,) = run_benchmark("transfer", settings(engine="onnx", out=tmp_path / "onnx", variants=["GBDGC"]))
    assert onnx["engine"] == "onnx"
    assert any(note.endswith(", by onnx and torch") for note in build_tables("transfer", [*torch, onnx])[0].notes)
    (same,) = (cell for cell in torch if cell["variant"] == "GBDGC")
    assert same["settings"] == onnx["settings"]
    assert same["mae"]["value"] == pytest.approx(onnx["mae"]["value"], abs=1e-2)
    with pytest.raises(InputError, match=r"made with other settings \(engine: torch then, onnx now\)"):
        run_benchmark("transfer", settings(engine="onnx"))


@pytest.mark.slow
def test_drawn_data_sets_play_the_parts_of_the_real_ones(tmp_path: Path) -> None:
    from gbdgc.data import load_dataset

    places = draw_benchmark_data(tmp_path, train=2, test=1, size=(96, 80))
    assert list(places) == ["drawn A", "drawn B", "drawn Q", "drawn N"]
    assert load_dataset(places["drawn Q"]).split_sizes() == {"train": 2, "test": 1}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert draw_benchmark_data(tmp_path, train=2, test=1, size=(96, 80)) == places
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
