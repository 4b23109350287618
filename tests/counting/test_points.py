"""Heads as points: as many as the count, where the density has its people."""

import csv
import json
import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import gaussian_filter

from gbdgc import load_dataset
from gbdgc.counting import Counter, Result, parse_zones
from gbdgc.counting.conformal import Spread
from gbdgc.counting.overlay import _DOT
from gbdgc.counting.sinks import HEADS, Files, ResultsFolder
from gbdgc.errors import InputError


def heads_apart(number: int, *, width: int = 640, height: int = 480, spread: float = 5.0) -> tuple[np.ndarray, Result]:
    """Heads on a loose grid, blurred, and the result that they make."""
    columns = int(np.ceil(np.sqrt(number * width / height)))
    places = np.array([(index % columns, index // columns) for index in range(number)], dtype=float)
    step = np.array([width / columns, height / np.ceil(number / columns)])
    heads = (places + 0.5) * step + np.random.default_rng(0).uniform(-4, 4, (number, 2))
    density = np.zeros((height, width))
    x, y = np.floor(heads).astype(int).T
    np.add.at(density, (y, x), 1)
    return heads, Result.from_density(gaussian_filter(density, spread, mode="constant"))


def test_a_head_that_stands_alone_is_found_to_a_few_pixels() -> None:
    heads, result = heads_apart(40)
    assert len(result.points) == 40
    distance = np.linalg.norm(result.points[:, None, :2] - heads[None], axis=-1)
    assert distance.min(axis=0).max() < 4, "each head has a point"
    assert distance.min(axis=1).max() < 4, "each point has a head"


def test_a_clear_peak_is_surer_than_a_smear() -> None:
    _, peaks = heads_apart(40)
    smear = Result.from_density(np.full((480, 640), 40 / (480 * 640)))
    assert len(smear.points) == 40
    assert np.median(peaks.points[:, 2]) > 0.95 > 0.8 > np.median(smear.points[:, 2])


@settings(deadline=None, max_examples=40)
@given(
    people=st.floats(0, 60),
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    stride=st.sampled_from([1, 4]),
    seed=st.integers(0, 99),
)
def test_there_are_as_many_points_as_people_rounded(
    people: float, size: tuple[int, int], stride: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    density = random.random(size) ** 8 * (random.random(size) < 0.3)
    result = Result.from_density(people * density / max(density.sum(), 1e-9), stride=stride)
    assert result.points.shape == (round(result.count), 3)
    x, y, confidence = result.points.T
    assert ((x >= 0) & (x <= result.width) & (y >= 0) & (y <= result.height)).all()
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_a_coarse_density_gives_nearly_the_same_points() -> None:
    heads, fine = heads_apart(40)
    coarse = Result.from_density(fine.density, stride=4)
    distance = np.linalg.norm(coarse.points[:, None, :2] - heads[None], axis=-1)
    assert distance.min(axis=0).max() < 5


def test_dots_are_drawn_where_asked_for() -> None:
    _, result = heads_apart(6)
    plain, dotted = result.overlay(), result.overlay(points=True)
    at_heads = dotted[tuple(result.points[:, 1::-1].round().astype(int).T)]
    assert (at_heads == _DOT).all()
    assert not (plain == _DOT).all(axis=-1).any()
    assert (result.annotated(points=True) == _DOT).all(axis=-1).any()
    assert len(result.plot(points=True).collections) > len(result.plot().collections)


def test_points_are_saved_as_csv_and_json(tmp_path: Path) -> None:
    _, result = heads_apart(6)
    with result.save(tmp_path / "heads.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [set(row) for row in rows] == [{"x", "y", "confidence"}] * 6
    assert [float(row["x"]) for row in rows] == pytest.approx(result.points[:, 0].tolist(), abs=0.06)
    saved = json.loads(result.save(tmp_path / "result.json", points=True).read_text())
    assert saved["points"] == result.rounded_points()
    assert "points" not in result.to_dict()


def test_a_run_keeps_the_heads_of_each_picture_and_all_of_them_as_coco(tmp_path: Path) -> None:
    results = []
    for name, number in {"one/a.jpg": 5, "two/b.jpg": 0}.items():
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True)
        Image.new("RGB", (640, 480)).save(path)
        _, result = heads_apart(number) if number else (None, Result.from_density(np.zeros((480, 640))))
        results.append(Result(result.cells, width=640, height=480, source=str(path)))
    run_settings = dict.fromkeys(("weights", "every", "seconds", "tile")) | {"zones": {}}
    for part in (results[:1], results):  # a run that was interrupted goes on
        with ResultsFolder.open("heads", run_settings, tmp_path / "run", [Files("points")], resume=True) as run:
            for result in part:
                if result.source not in run.done:
                    assert (run.write(result) or {})["points"].startswith("points/")
    document = json.loads((tmp_path / "run" / HEADS).read_text())
    assert {image["file_name"] for image in document["images"]} == {"one/a.jpg", "two/b.jpg"}
    scores = [annotation["score"] for annotation in document["annotations"]]
    assert scores == pytest.approx(results[0].points[:, 2].tolist(), abs=1e-3)
    (tmp_path / "run" / HEADS).rename(tmp_path / "pictures" / HEADS)
    read = load_dataset(tmp_path / "pictures" / HEADS)
    assert [sample.count for sample in read] == [5, 0]
    assert read[0].points == pytest.approx(results[0].points[:, :2], abs=0.06)


@pytest.mark.parametrize("damage", ["gone", "half"])
def test_points_that_cannot_be_read_any_more_are_named_with_the_row_to_take_out(tmp_path: Path, damage: str) -> None:
    _, result = heads_apart(5)
    result = Result(result.cells, width=640, height=480, source=str(tmp_path / "a.jpg"))
    run_settings = dict.fromkeys(("weights", "every", "seconds", "tile")) | {"zones": {}}
    with ResultsFolder.open("heads", run_settings, tmp_path / "run", [Files("points")]) as run:
        run.write(result)
    points = tmp_path / "run/points/a.csv"
    points.write_text(points.read_text().rpartition(",")[0])
    if damage == "gone":
        points.unlink()
    again = ResultsFolder.open("heads", run_settings, tmp_path / "run", [Files("points")], resume=True)
    with pytest.raises(InputError, match=r"a\.csv: its points cannot be read .*take its row out of counts\.csv"), again:
        pass


def test_a_notebook_shows_the_annotated_picture_and_the_numbers() -> None:
    _, result = heads_apart(6, width=2400, height=1800)
    corners = [[0, 0], [2400, 0], [2400, 1800], [0, 1800]]
    zones = {"zones": {"<gate>": corners}, "ground": {"corners": corners, "metres": [4, 3]}}
    page = result.with_zones(parse_zones(zones))._repr_html_()
    assert page.startswith("<p><b>6.0 people</b><br>&lt;gate&gt;: 6.0, 0.50 per m²</p>")
    (encoded,) = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page)
    with Image.open(BytesIO(b64decode(encoded))) as shown:
        assert max(shown.size) <= 900
    sure = replace(result, spread=Spread(9.2 / 11, 14.1 / 11))
    assert sure._repr_html_().startswith("<p><b>6.0 people</b> (4–9)</p>")
    assert "&lt;gate&gt;: 6.0 (4–9), 0.50 per m²</p>" in sure.with_zones(parse_zones(zones))._repr_html_()


def test_a_counter_says_what_it_is(model: Path) -> None:
    assert repr(Counter.load(model)) == "<Counter tiny: on torch, windows of 1024>"
