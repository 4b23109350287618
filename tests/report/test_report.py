import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gbdgc import checkpoint
from gbdgc.errors import InputError
from gbdgc.evaluation import evaluate
from gbdgc.report import write_report


class Text(HTMLParser):
    """What a reader sees: the words without scripts and styles, blanks made one."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.silent = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.silent = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self.silent = False

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.words += data.split()


def read(page: Path) -> str:
    text = Text()
    text.feed(page.read_text())
    return " ".join(text.words)


def points_of(page: Path) -> list[dict[str, Any]]:
    """What the page's script knows of the pictures."""
    found = re.search(r'<script type="application/json" id="points">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    points: list[dict[str, Any]] = json.loads(found[1])
    return points


def test_a_run_that_counted_nothing_is_reported_with_the_command_that_adds_the_rest(run: Path) -> None:
    page = write_report(run)
    assert page == run / "report.html"
    text = read(page)
    assert "training part only" in text
    assert f"gbdgc eval {run} DATA --out {run}/eval" in text
    assert "Predicted against true" not in text
    assert "The domains found in the source" in text


def test_the_headline_is_what_the_evaluation_says(counted_run: Path) -> None:
    errors = json.loads((counted_run / "eval" / "summary.json").read_text())["data"]["streets"]
    text = read(write_report(counted_run))
    assert f"{errors['mae']['value']:.1f} MAE {errors['mae']['low']:.1f} to {errors['mae']['high']:.1f}" in text
    assert "chosen by the lowest error on the held-out part of the source" in text
    assert "training part only" not in text


def test_every_picture_is_in_the_data_behind_the_dots_by_its_id(counted_run: Path) -> None:
    points = points_of(write_report(counted_run))
    assert [point["id"] for point in points] == [f"street_{number:02d}" for number in range(24)]
    assert all(point["image"].startswith("data:image/jpeg;base64,") for point in points)


def test_the_page_says_when_it_holds_a_part_of_the_pictures_only(counted_run: Path) -> None:
    whole = write_report(counted_run, out=counted_run / "whole.html")
    small = write_report(counted_run, out=counted_run / "small.html", thumbnail_bytes=20_000)
    assert small.stat().st_size < whole.stat().st_size
    assert "it holds the pictures of" not in read(whole)
    shown = [point for point in points_of(small) if point["image"] is not None]
    assert 0 < sum(len(point["image"]) for point in shown) <= 20_000
    assert f"it holds the pictures of {len(shown)} of the 24 dots" in read(small)


def test_pictures_that_are_gone_are_named_and_the_rest_stands(counted_run: Path, tmp_path: Path) -> None:
    path = counted_run / "eval" / "summary.json"
    record = json.loads(path.read_text())
    record["data"]["streets"]["path"] = str(tmp_path / "moved")
    path.write_text(json.dumps(record))
    text = read(write_report(counted_run))
    assert "The pictures of streets were not found where they were counted" in text
    assert "Predicted against true" in text
    assert "The twelve worst" not in text


def test_pictures_are_looked_up_in_the_format_that_they_were_counted_in(counted_run: Path) -> None:
    assert "The twelve worst" in read(write_report(counted_run))
    path = counted_run / "eval" / "summary.json"
    record = json.loads(path.read_text())
    record["data"]["streets"]["format"] = "coco"  # which the manifest is not
    path.write_text(json.dumps(record))
    assert "The twelve worst" not in read(write_report(counted_run))


def test_of_two_evaluations_of_one_data_set_the_later_is_shown(counted_run: Path, streets: Path, model: Path) -> None:
    evaluate(model, {"streets": streets}, split="test", out=counted_run / "eval-2")
    assert "streets test 4" in read(write_report(counted_run))


def test_evaluations_can_be_given(run: Path, streets: Path, model: Path, tmp_path: Path) -> None:
    evaluate(model, {"elsewhere": streets}, split="test", out=tmp_path / "elsewhere")
    assert "elsewhere test 4" in read(write_report(run, [tmp_path / "elsewhere"]))


def test_numbers_of_another_model_are_named_as_such(counted_run: Path) -> None:
    assert "Not counted with this run's model file" not in read(write_report(counted_run))
    best = counted_run / "checkpoints" / "best.safetensors"
    tensors, info = checkpoint.read(best)
    checkpoint.write(best, tensors, {**info, "epoch": 1})
    assert "Not counted with this run's model file, but with another or with an export of it: streets" in read(
        write_report(counted_run)
    )


def test_known_data_sets_stand_beside_the_published_numbers(
    write_run: Callable[..., Path], streets: Path, model: Path
) -> None:
    run = write_run("data.source=[data/ShanghaiTech/part_A]")
    evaluate(model, {"shb": streets}, split="test", out=run / "eval")
    text = read(write_report(run))
    assert "SHA → SHB" in text
    assert "GBDGC 11.1 / 15.7" in text
    assert "QNRF" not in text.split("Beside the published numbers")[1].split("Predicted against true")[0]


def test_drawn_data_are_not_compared_with_papers(counted_run: Path) -> None:
    assert "published" not in read(write_report(counted_run))


def test_the_share_of_each_domain_is_shown_epoch_by_epoch(write_run: Callable[..., Path]) -> None:
    last = [number % 2 for number in range(24)]
    first = [0, 0, 0, *last[3:]]
    page = write_report(write_run(labels=[first, last])).read_text()
    assert "after 1 epochs: 50% in domain 0" in page
    assert "after 0 epochs: 54% in domain 0" in page


def test_a_method_without_domains_says_so(write_run: Callable[..., Path]) -> None:
    text = read(write_report(write_run("method.name=erm", labels=[])))
    assert "The method erm looks for no domains in the source" in text


def test_a_run_that_was_stopped_is_reported_as_far_as_it_went(run: Path) -> None:
    best = run / "checkpoints" / "best.safetensors"
    tensors, info = checkpoint.read(best)
    checkpoint.write(best, {name: tensor for name, tensor in tensors.items() if "trust" not in name}, info)
    text = read(write_report(run))
    assert "The run is not finished" in text
    assert "There is no map" in text
    best.unlink()
    assert "There is no model yet" in read(write_report(run))


def test_a_training_cloud_that_cannot_be_right_is_named_with_its_file(run: Path) -> None:
    best = run / "checkpoints" / "best.safetensors"
    tensors, info = checkpoint.read(best)
    for strange, reason in ((tensors["trust/mean"].bfloat16(), "bfloat16"), (tensors["trust/mean"][:3], "of shape")):
        checkpoint.write(best, tensors | {"trust/mean": strange}, info)
        with pytest.raises(InputError, match=rf"best\.safetensors: trust: .*{reason}"):
            write_report(run)


def test_names_from_files_cannot_become_markup(write_run: Callable[..., Path], streets: Path, model: Path) -> None:
    run = write_run("name='<b>bold</b>'")
    evaluate(model, {"</script><script>alert(1)</script>": streets}, split="test", out=run / "eval")
    page = write_report(run).read_text()
    assert "<script>alert" not in page
    assert "<b>bold" not in page


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not the folder of a training \(it has no config\.yaml\)"):
        write_report(tmp_path)
    for text, reason in (("weights: null", "none of a training's settings"), ("a: [", "cannot be read")):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(InputError, match=reason):
            write_report(tmp_path)


def test_an_evaluation_that_was_interrupted_is_refused_with_what_to_do(counted_run: Path) -> None:
    (counted_run / "eval" / "summary.json").unlink()
    with pytest.raises(InputError, match=r"summary\.json.*resume"):
        write_report(counted_run)
