"""A whole evaluation: its folder, what interrupts it, what it cannot read."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import gbdgc
from gbdgc.counting import Counter, pipeline
from gbdgc.data import Dataset, load_dataset
from gbdgc.errors import InputError
from gbdgc.evaluation import Evaluation, evaluate
from gbdgc.evaluation.table import COLUMNS, LATER_COLUMNS, read_table
from gbdgc.files import claim

Crowd = Callable[..., Path]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pictures as they are counted."""
    seen: list[str] = []
    open_picture = pipeline.open_picture

    def watched(picture: Path, *, max_pixels: int) -> object:
        seen.append(picture.name)
        return open_picture(picture, max_pixels=max_pixels)

    monkeypatch.setattr(pipeline, "open_picture", watched)
    return seen


def test_the_folder_holds_the_table_the_summary_and_where_it_came_from(
    model: Path, crowd: Crowd, tmp_path: Path
) -> None:
    places = [crowd("plain", [3, 0, 7]), crowd("tagged", [2, 4], weather=["fog", "rain"])]
    done = gbdgc.evaluate(model, places, out=tmp_path / "run")
    assert isinstance(done, Evaluation)
    names = {path.name for path in done.folder.iterdir()}
    assert names == {"predictions.csv", "summary.json", "settings.json", "unreadable.csv", "environment.json"}
    with (done.folder / "predictions.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == [*COLUMNS, *LATER_COLUMNS, "tag_weather"]
    assert [(line["data"], line["truth"], line["tag_weather"]) for line in lines] == [
        ("plain.jsonl", "3", ""),
        ("plain.jsonl", "0", ""),
        ("plain.jsonl", "7", ""),
        ("tagged.jsonl", "2", "fog"),
        ("tagged.jsonl", "4", "rain"),
    ]
    assert all(line["domain"] and line["novelty"] and float(line["milliseconds"]) > 0 for line in lines)
    assert json.loads((done.folder / "summary.json").read_text()) == json.loads(json.dumps(done.summary))
    assert read_table(done.folder) == done.rows


def test_every_number_comes_from_the_table(model: Path, crowd: Crowd, tmp_path: Path) -> None:
    done = evaluate(model, {"here": crowd("plain", [3, 0, 7])}, out=tmp_path / "run")
    errors = [row.count - (row.truth or 0) for row in done.rows]
    counter = Counter.load(model)
    assert [row.count for row in done.rows] == [counter(tmp_path / "plain" / f"{n:02d}.png").count for n in range(3)]
    greys = [Image.open(tmp_path / "plain" / f"{n:02d}.png").convert("L") for n in range(3)]
    assert [row.brightness for row in done.rows] == [np.mean(grey) for grey in greys]
    here = done.summary["data"]["here"]
    assert here["images"] == 3
    assert here["by_brightness"]["over 120"]["images"] == 3
    assert here["mae"]["value"] == pytest.approx(sum(map(abs, errors)) / 3)
    assert here["mae"]["low"] <= here["mae"]["value"] <= here["mae"]["high"]


def test_the_switches_that_change_results_stand_in_the_summary(model: Path, crowd: Crowd, tmp_path: Path) -> None:
    done = evaluate(model, [crowd("plain", [3, 1])], max_side=48, tile=512, out=tmp_path / "run")
    assert (done.summary["max_side"], done.summary["tile"]) == (48, 512)
    assert done.summary["selection"] == "unknown"
    only = done.summary["data"]["plain.jsonl"]
    assert (only["split"], only["format"]) == ("test", "manifest")
    assert done.summary["weights"]["info"]["name"] == "tiny"
    assert len(done.summary["weights"]["sha256"]) == 64


def test_a_counter_that_is_handed_over_is_left_as_it_was(model: Path, crowd: Crowd, tmp_path: Path) -> None:
    counter = Counter.load(model)
    evaluate(counter, [crowd("plain", [3, 1])], max_side=48, out=tmp_path / "run")
    assert counter.max_side is None


def test_an_interrupted_run_goes_on_where_it_stopped(
    model: Path, crowd: Crowd, tmp_path: Path, calls: list[str]
) -> None:
    place = crowd("plain", [3, 0, 7, 2])
    whole = evaluate(model, [place], out=tmp_path / "run")
    table = tmp_path / "run" / "predictions.csv"
    text = table.read_text()
    table.write_text("".join(text.splitlines(keepends=True)[:3]) + "plain.jsonl,02,7,1.")
    calls.clear()
    resumed = evaluate(model, [place], out=tmp_path / "run", resume=True)
    assert calls == ["02.png", "03.png"]
    assert [(row.id, row.count) for row in resumed.rows] == [(row.id, row.count) for row in whole.rows]
    assert [row.id for row in read_table(table)] == ["00", "01", "02", "03"]


def test_a_run_of_a_version_without_the_later_columns_goes_on(model: Path, crowd: Crowd, tmp_path: Path) -> None:
    place = crowd("plain", [3, 0])
    table = evaluate(model, [place], out=tmp_path / "run").folder / "predictions.csv"
    with table.open(newline="") as file:
        lines = [",".join(line[: len(COLUMNS)]) + "\n" for line in csv.reader(file)]
    table.write_text("".join(lines[:2]))
    resumed = evaluate(model, [place], out=tmp_path / "run", resume=True)
    assert [row.brightness is None for row in resumed.rows] == [True, False]
    assert read_table(table) == resumed.rows
    assert sum(part["images"] for part in resumed.summary["data"]["plain.jsonl"]["by_brightness"].values()) == 1


def test_a_run_is_not_resumed_by_another_model_or_with_other_switches(
    model: Path, crowd: Crowd, tmp_path: Path
) -> None:
    place = crowd("plain", [3, 1])
    evaluate(model, [place], out=tmp_path / "run")
    with pytest.raises(InputError, match=r"other settings \(max_side\)"):
        evaluate(model, [place], out=tmp_path / "run", resume=True, max_side=32)
    with pytest.raises(InputError, match="holds a run already; resume it, or choose another folder"):
        evaluate(model, [place], out=tmp_path / "run")
    with pytest.raises(InputError, match=r"other settings \(engine\)"):
        evaluate(model, [place], out=tmp_path / "run", resume=True, engine="onnx")
    moved = tmp_path / "moved.safetensors"
    moved.write_bytes(model.read_bytes())
    assert evaluate(moved, [place], out=tmp_path / "run", resume=True).summary["weights"]["path"] == str(moved)
    with claim(tmp_path / "run"), pytest.raises(InputError, match="another process is at work there"):
        evaluate(model, [place], out=tmp_path / "run", resume=True)
    for content in ("{}", '{"weights": 3}', '{"weights": []}'):
        (tmp_path / "run" / "settings.json").write_text(content)
        with pytest.raises(InputError, match=r"settings\.json: not the settings of such a run"):
            evaluate(model, [place], out=tmp_path / "run", resume=True)
    (tmp_path / "run" / "settings.json").unlink()
    with pytest.raises(InputError, match="no run to resume"):
        evaluate(model, [place], out=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match=r"has a predictions\.csv that is not of a run"):
        evaluate(model, [place], out=tmp_path / "run")
    with pytest.raises(InputError, match="max_side=0: a side has at least one pixel"):
        evaluate(model, [place], max_side=0)


@pytest.mark.parametrize("name", ["caf\udce9", "line\x85feed", "para\u2029graph", "car\rriage", "=1+1", "-2+@x"])
def test_any_name_that_a_file_can_have_is_counted_and_resumed(
    model: Path, crowd: Crowd, tmp_path: Path, name: str
) -> None:
    folder = crowd("plain", [None, None], split=None).parent
    (folder / "00.png").rename(folder / f"{name}.png")
    (folder / "plain.jsonl").unlink()
    (folder / "02.png").write_bytes(b"no picture")
    done = evaluate(model, [folder], split="all", out=tmp_path / "run")
    assert sorted(row.id for row in done.rows) == sorted(["01.png", f"{name}.png"])
    assert read_table(tmp_path / "run") == done.rows
    assert evaluate(model, [folder], split="all", out=tmp_path / "run", resume=True).rows == done.rows


def test_a_picture_that_cannot_be_read_is_reported_and_the_others_are_counted(
    model: Path, crowd: Crowd, tmp_path: Path
) -> None:
    place = crowd("plain", [3, 0, 7])
    broken = tmp_path / "plain" / "01.png"
    broken.write_bytes(broken.read_bytes()[:2000])
    (tmp_path / "plain" / "02.png").write_bytes(b"not a picture")
    done = evaluate(model, [place], out=tmp_path / "run")
    assert [row.id for row in done.rows] == ["00"]
    summary = done.summary["data"]["plain.jsonl"]
    assert (summary["images"], summary["unreadable"]) == (1, 2)
    with (done.folder / "unreadable.csv").open(newline="") as file:
        reasons = " ".join(line["reason"] for line in csv.DictReader(file))
    assert "01.png" in reasons
    assert "02.png" in reasons


def test_the_test_part_is_counted_unless_told_and_val_where_its_labels_are_hidden(
    model: Path, crowd: Crowd, tmp_path: Path
) -> None:
    def truths(name: str, split: str | None = None, **parts: list[int | None]) -> set[int | None]:
        """Count a data set with these parts and return which pictures were taken."""
        samples = [
            replace(sample, id=f"{part}{sample.id}")
            for part, counts in parts.items()
            for sample in load_dataset(crowd(f"{name} {part}", counts, split=part))
        ]
        place = Dataset(samples).save(tmp_path / f"{name}.jsonl")
        return {row.truth for row in evaluate(model, [place], split=split, out=tmp_path / name).rows}

    assert truths("open", train=[1], val=[2], test=[3]) == {3}
    assert truths("hidden", train=[1], val=[2], test=[None]) == {2}
    assert truths("told", "train", train=[1], val=[2]) == {1}
    assert truths("submission", "test", val=[2], test=[None]) == {None}
    assert truths("everything", "all", train=[1], val=[2]) == {1, 2}
    with pytest.raises(InputError, match="no labelled test or val part to count; there are: train; choose one"):
        truths("only train", train=[1])
    assert len(evaluate(model, [crowd("unsplit", [1, 2], split=None)], out=tmp_path / "unsplit").rows) == 2


def test_a_run_against_itself_is_better_by_nothing(model: Path, crowd: Crowd, tmp_path: Path) -> None:
    place = crowd("plain", [3, 0, 7])
    first = evaluate(model, [place], out=tmp_path / "first")
    second = evaluate(model, [place], out=tmp_path / "second", against=first.folder)
    assert second.summary["data"]["plain.jsonl"]["against"]["mae"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    table = tmp_path / "predictions.csv"
    with pytest.raises(InputError, match=r"predictions\.csv"):
        read_table(table)
    table.write_text("id,count\n1,2\n")
    with pytest.raises(InputError, match="no column 'data'"):
        read_table(table)
    table.write_text(",".join(COLUMNS) + "\nd,1,many,2,0,9,9,1,,\n")
    with pytest.raises(InputError, match="line 2 is damaged"):
        read_table(table)
