"""A model fitted to one camera."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gbdgc import checkpoint
from gbdgc.counting import Counter
from gbdgc.data import Dataset, load_dataset
from gbdgc.errors import InputError
from gbdgc.evaluation import Row
from gbdgc.training import tune
from gbdgc.training.tuning import START, best_factor, choose, take_out_bias
from in_process import run_gbdgc


def rows(counts: list[float], truths: list[int]) -> list[Row]:
    return [Row(str(n), truth, count, 64, 48) for n, (count, truth) in enumerate(zip(counts, truths, strict=True))]


@pytest.fixture
def right(trained: Path, tiny_source: Path, tmp_path: Path) -> Path:
    """Pictures in which there are as many people as a model counts."""
    counter, random = Counter.load(trained), np.random.default_rng(0)
    samples = [
        replace(sample, points=random.uniform(0, 90, (round(counter(sample.image).count), 2)).astype(np.float32))
        for sample in load_dataset(tiny_source)
    ]
    assert min(sample.count or 0 for sample in samples) > 3
    return Dataset(samples).save(tmp_path / "right.jsonl")


def scaled(model: Path, out: Path, factor: float) -> Path:
    tensors, info = checkpoint.read(checkpoint.model_file(model))
    head = {name: tensor * factor for name, tensor in tensors.items() if name.startswith("network/head.")}
    checkpoint.write(out, tensors | head, info)
    return out


def test_the_factor_is_the_one_with_the_least_error() -> None:
    random = np.random.default_rng(0)
    counts = random.uniform(5, 400, 21)
    own = rows(counts.tolist(), np.round(counts * random.uniform(1.2, 2.4, 21)).astype(int).tolist())

    def error(factor: float) -> float:
        return sum(abs(factor * row.count - (row.truth or 0)) for row in own)

    assert error(best_factor(own)) == pytest.approx(
        min(error(factor) for factor in np.linspace(0.5, 3, 2501)), rel=1e-3
    )


def test_what_is_better_by_chance_alone_is_not_chosen() -> None:
    truths = [100] * 10
    before = rows([80.0] * 10, truths)
    lucky = rows([100.0, *[81.0 - 2.5 * (n % 2) for n in range(9)]], truths)
    hardly, better, best = (rows([count] * 10, truths) for count in (80.2, 90.0, 95.0))
    assert choose({START: before, "lucky": lucky}) == START
    assert choose({START: before, "hardly": hardly}) == START
    assert choose({START: before, "worse": rows([60.0] * 10, truths)}) == START
    assert choose({START: before, "better": better, "best": best, "lucky": lucky}) == "best"
    assert choose({START: before, "better": better, "hardly": rows([90.1] * 10, truths)}) == "better"


def test_a_bias_of_pictures_left_out_is_taken_out_by_what_the_other_parts_show() -> None:
    truths = [60, 80, 100, 120, 140, 90]
    fold = {str(n): n % 3 for n in range(6)}
    low = take_out_bias(rows([0.8 * truth for truth in truths], truths), fold)
    assert [row.count for row in low] == pytest.approx(truths)
    by_chance = [truth + (9 if n % 2 else -9) for n, truth in enumerate(truths)]
    assert [row.count for row in take_out_bias(rows(by_chance, truths), fold)] == by_chance
    own = [0.8 * truth if fold[str(n)] == 0 else float(truth) for n, truth in enumerate(truths)]
    corrected = take_out_bias(rows(own, truths), fold)
    assert corrected[0].count == own[0], "a part does not correct itself"


def test_a_model_that_sees_too_few_is_mended_and_the_table_shows_before_and_after(
    trained: Path, right: Path, tmp_path: Path
) -> None:
    blind = scaled(trained, tmp_path / "blind.safetensors", 0.25)
    said = run_gbdgc("tune", right, "--start", blind, "--steps", "1", "--out", "gate", folder=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "better by" in said.stdout
    assert "next: gbdgc count SOURCE --model gate/best.safetensors" in said.stdout
    summary = json.loads((tmp_path / "gate" / "summary.json").read_text())
    assert summary["chosen"] == "one factor"
    before, after = (summary["errors"][way]["mae"]["value"] for way in (START, summary["chosen"]))
    assert after < 0.2 * before
    picture = load_dataset(right)[0]
    assert Counter.load(tmp_path / "gate")(picture.image).count == pytest.approx(picture.count, rel=0.2)
    assert [path for path in (tmp_path / "gate").iterdir() if path.is_dir()] == [], "the trainings are tidied away"


def test_a_training_that_counts_too_low_is_handed_out_without_its_bias(
    trained: Path, right: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = scaled(trained, tmp_path / "blind.safetensors", 0.25)
    monkeypatch.setattr("gbdgc.training.tuning._FACTORS", (1.0, 1.0))  # so that one factor alone mends nothing
    done = tune(right, blind, steps=1, out=tmp_path / "gate")
    assert done.chosen == "head and decoder"
    assert done.model is not None
    picture = load_dataset(right)[0]
    assert Counter.load(done.model)(picture.image).count == pytest.approx(picture.count, rel=0.25)


def test_a_model_that_is_right_already_is_kept(trained: Path, right: Path, tmp_path: Path) -> None:
    said = run_gbdgc("tune", right, "--start", trained, "--steps", "1", "--out", "gate", folder=tmp_path)
    assert "nothing is surely better" in said.stdout, said.stderr
    assert not (tmp_path / "gate" / checkpoint.BEST).exists()


def test_too_few_pictures_are_refused(tiny_source: Path, tmp_path: Path) -> None:
    few = load_dataset(tiny_source)[:4].save(tmp_path / "few.jsonl")
    with pytest.raises(InputError, match="4 labelled pictures; label at least 5, better twenty"):
        tune(few)
