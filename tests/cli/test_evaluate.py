"""`gbdgc eval` as a user meets it."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from gbdgc.cli.evaluate import evaluate, verdict
from gbdgc.data import Dataset, Sample
from gbdgc.errors import InputError, UsageError
from gbdgc.evaluation import submission


@pytest.fixture
def street(tmp_path: Path) -> Path:
    """Three small pictures with labels."""
    random = np.random.default_rng(0)
    samples = []
    for number, count in enumerate((2, 5, 9)):
        path = tmp_path / f"{number}.png"
        Image.fromarray(random.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(path)
        points = random.uniform(0, 40, (count, 2)).astype(np.float32)
        samples.append(Sample(path.stem, path, 64, 48, points, "test"))
    return Dataset(samples).save(tmp_path / "street.jsonl")


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Return the command, which works in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: Any, **options: Any) -> Answer:
        try:
            evaluate(*arguments, **options)
            code = 0
        except SystemExit as leaving:
            code = int(str(leaving.code))
        return Answer(code, *capsys.readouterr())

    return call


def test_data_goes_to_stdout_in_the_form_that_was_asked_for_and_the_rest_to_stderr(
    model: Path, street: Path, run: Callable[..., Answer]
) -> None:
    shown = run(model, street)
    assert shown.code == 0, shown.err
    assert "model chosen by: unknown" in shown.out
    assert 'RMSE is what papers of this field call "MSE"' in shown.out
    assert shown.out.splitlines()[-1] == "run: runs/eval/tiny-1"
    summary = json.loads(run(model, street, format="json").out)
    assert summary["data"]["street.jsonl"]["images"] == 3
    table = run(model, street, format="csv", against=Path("runs/eval/tiny-1"))
    assert [line["id"] for line in csv.DictReader(io.StringIO(table.out))] == ["0", "1", "2"]
    assert "run: runs/eval/tiny-3" in table.err


def test_names_are_shown_as_they_are(model: Path, street: Path, run: Callable[..., Answer]) -> None:
    place = street.rename(street.with_name("set[clean].jsonl"))
    shown = run(model, place, out=Path("eval[b]"))
    assert "set[clean].jsonl" in shown.out
    assert shown.out.splitlines()[-1] == "run: eval[b]"


def test_a_name_that_is_no_text_reaches_stdout_as_its_bytes(model: Path, street: Path, tmp_path: Path) -> None:
    path = street.with_name("0.png").rename(street.with_name("caf\udce9.png"))
    command = [sys.executable, "-m", "gbdgc", "eval", model, path.parent, "--read-as", "folder"]
    done = subprocess.run([*command, "--split", "all", "--format", "csv"], capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert b",caf\xe9.png," in done.stdout


def test_the_newest_run_is_taken_up_again(model: Path, street: Path, run: Callable[..., Answer]) -> None:
    run(model, street)
    assert "run: runs/eval/tiny-1" in run(model, street, resume=True).out


def test_an_unreadable_picture_is_named_and_ends_in_1_with_the_others_counted(
    model: Path, street: Path, run: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "1.png").write_bytes(b"")
    answer = run(model, street)
    assert answer.code == 1
    assert "1.png" in answer.err
    assert "1 not read" in answer.out
    assert "run: runs/eval/tiny-1" in answer.out
    assert len((tmp_path / "runs/eval/tiny-1/predictions.csv").read_text().splitlines()) == 3


def test_a_submission_from_other_data_is_refused_before_anything_is_counted(
    model: Path, street: Path, run: Callable[..., Answer]
) -> None:
    with pytest.raises(UsageError, match=r"picture '0': not of the test part of NWPU-Crowd.* a submission wants"):
        run(model, street, submission="nwpu")
    assert not Path("runs").exists()


def test_the_run_is_named_even_where_its_submission_cannot_be_written(
    model: Path, street: Path, run: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(submission, "NWPU_TEST_IDS", ["0", "1", "2"])
    street.with_name("1.png").write_bytes(street.with_name("1.png").read_bytes()[:-500])  # its header is good
    with pytest.raises(InputError, match=r"picture '1': the server wants all .*, and 1 of them are missing or can"):
        run(model, street, submission="nwpu")
    assert capsys.readouterr().out.splitlines()[-1] == "run: runs/eval/tiny-1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile": 3}, "--tile=3: windows have a margin"),
        ({"split": "foo"}, r"street\.jsonl: no part 'foo'; there are: test\. Choose one by --split"),
    ],
)
def test_an_option_that_cannot_be_meant_is_wrong_usage(
    model: Path, street: Path, run: Callable[..., Answer], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run(model, street, **options)


def test_nothing_to_count_is_a_mistake_that_is_named(model: Path, run: Callable[..., Answer]) -> None:
    with pytest.raises(InputError, match="at least one data set"):
        run(model)


def gains(value: float, low: float, high: float) -> dict[str, object]:
    return {"images": 9, "mae": {"value": value, "low": low, "high": high}}


def test_the_verdict_says_how_much_better_and_how_sure() -> None:
    assert verdict(gains(1.3, 0.4, 2.1)) == "better than the other run by 1.3 MAE, interval 0.4 to 2.1, on 9 pictures"
    assert verdict(gains(-1.3, -2.1, -0.4)).startswith("worse than the other run by 1.3 MAE, interval 0.4 to 2.1")
    assert verdict(gains(1.3, -0.2, 2.1)).endswith("no difference is shown")
