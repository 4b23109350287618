"""Intervals of counts."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gbdgc import checkpoint
from gbdgc.counting import Counter
from gbdgc.counting.conformal import COVERAGE, MIN_PICTURES, Conformal, Spread, features_of
from gbdgc.counting.engines import pack, unpack
from gbdgc.counting.trust import FAR
from gbdgc.errors import InputError
from gbdgc.evaluation import save_calibrated
from gbdgc.evaluation.table import Row


def crowds(
    number: int, seed: int, *, noise: float = 0.1, by_novelty: float = 0.4
) -> tuple[NDArray[np.int64], list[Row]]:
    """Return true counts, and rows of counts whose log ratio spreads wider the more novel a picture is."""
    random = np.random.default_rng(seed)
    novelty, count = random.uniform(0, 1, number), np.exp(random.uniform(2, 7, number))
    # Skewed: a tail of pictures with far fewer people than counted.
    noise_N = random.normal(size=number) - 1.5 * (random.uniform(size=number) < 0.1)
    truth = np.round(np.maximum(count * np.exp((noise + by_novelty * novelty) * noise_N), 0)).astype(int)
    rows = [
        Row(str(n), int(truth[n]), float(count[n]), 1024, 768, novelty=float(novelty[n]), data="x")
        for n in range(number)
    ]
    return truth, rows


def features(rows: list[Row]) -> list[NDArray[np.float64]]:
    return [features_of(row.count, row.novelty, row.width, row.height) for row in rows]


def inside(conformal: Conformal, rows: list[Row]) -> NDArray[np.bool_]:
    ends = [conformal.spread(x_F).around(row.count) for row, x_F in zip(rows, features(rows), strict=True)]
    return np.array([low <= (row.truth or 0) <= high for row, (low, high) in zip(rows, ends, strict=True)])


def test_nine_of_ten_new_pictures_lie_in_their_intervals_familiar_or_not() -> None:
    truth, rows = crowds(400, seed=0)
    conformal = Conformal.fit(truth, features(rows))
    _, new = crowds(3000, seed=1)
    hits, novelty = inside(conformal, new), np.array([row.novelty for row in new])
    assert hits.mean() == pytest.approx(COVERAGE, abs=0.025)
    for part in (novelty < 0.3, novelty > 0.7):
        assert hits[part].mean() == pytest.approx(COVERAGE, abs=0.05)


def test_intervals_of_few_calibration_pictures_still_cover() -> None:
    shares = []
    for seed in range(40):
        truth, rows = crowds(MIN_PICTURES, seed=100 + seed)
        shares.append(inside(Conformal.fit(truth, features(rows)), crowds(200, seed=seed)[1]).mean())
    assert np.mean(shares) == pytest.approx(COVERAGE, abs=0.04)


def test_they_grow_with_novelty_and_the_two_ends_are_not_mirrored() -> None:
    truth, rows = crowds(400, seed=0)
    conformal = Conformal.fit(truth, features(rows))
    near, far = (conformal.spread(features_of(200, novelty, 1024, 768)) for novelty in (0.1, 0.9))
    assert far.high > near.high > 1 > near.low > far.low
    assert near.high < 1 / near.low, "the drawn crowds have a long lower tail"


def test_a_domain_that_is_easier_than_its_features_say_has_narrower_intervals() -> None:
    def two_domains(number: int, seed: int) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
        random = np.random.default_rng(seed)
        domain, count = random.integers(2, size=number), np.exp(random.uniform(3, 6, number))
        truth = np.round(count * np.exp(np.where(domain == 0, 0.1, 0.4) * random.normal(size=number))).astype(int)
        return truth, [features_of(n, 0.3, 1024, 768, None, int(k)) for n, k in zip(count, domain, strict=True)]

    conformal = Conformal.fit(*two_domains(400, seed=0))
    truth, new = two_domains(2000, seed=1)
    spreads, counts = [conformal.spread(x_F) for x_F in new], [np.exp(x_F[1]) - 5 for x_F in new]
    ends = np.array([spread.around(count) for spread, count in zip(spreads, counts, strict=True)])
    hits, domain = (ends[:, 0] <= truth) & (truth <= ends[:, 1]), np.array([x_F[-1] for x_F in new])
    for own in (0, 1):
        assert hits[domain == own].mean() == pytest.approx(COVERAGE, abs=0.06)
    easy, hard, unknown = (conformal.spread(features_of(100, 0.3, 1024, 768, None, k)) for k in (0, 1, None))
    assert easy.high < unknown.high < hard.high
    assert conformal.spread(features_of(100, 0.3, 1024, 768, None, 7)) == unknown  # one it has not seen


def test_novelty_warns_from_where_errors_double_or_where_it_always_did() -> None:
    for growth, expected in ((0.0, FAR), (1.5, 0.5)):
        truth, rows = crowds(600, seed=2, by_novelty=growth)
        assert Conformal.fit(truth, features(rows)).far[0] == pytest.approx(expected, abs=0.1)


def test_a_count_near_nobody_has_an_interval_from_zero() -> None:
    low, high = Spread(0.5, 2.0).around(0.4)
    assert low == 0
    assert 1 < high < 10
    assert Spread(0.5, 2.0).around(-0.3) == Spread(0.5, 2.0).around(0)


def test_too_few_pictures_are_refused() -> None:
    truth, rows = crowds(MIN_PICTURES - 1, seed=0)
    with pytest.raises(InputError, match="19 labelled pictures to calibrate them on; at least 20"):
        Conformal.fit(truth, features(rows))


def test_exported_files_carry_the_calibration_as_it_is() -> None:
    truth, rows = crowds(60, seed=0)
    conformal = Conformal.fit(truth, features(rows))
    arrays = unpack(pack({}, conformal.to_arrays())).extras
    x_F = features_of(200, 0.4, 1024, 768)
    assert Conformal.from_arrays(arrays).spread(x_F) == conformal.spread(x_F)
    assert {name: array.shape for name, array in arrays.items()} == {
        name: array.shape for name, array in conformal.to_arrays().items()
    }


def test_a_model_file_keeps_its_calibration_and_results_have_intervals_zones_too(
    model: Path, pictures: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    from gbdgc.counting import Zone

    _, rows = crowds(60, seed=0)
    fitted = save_calibrated(model, tmp_path / "m.safetensors", rows, None)
    counter = Counter.load(tmp_path / "m.safetensors", device="cpu")
    plain, result = Counter.load(model, device="cpu")(pictures[0]), counter(pictures[0])
    assert plain.interval is None
    assert plain.zone_intervals == {}
    assert plain.count == result.count
    expected = fitted.spread(
        features_of(result.count, result.novelty, result.width, result.height, domain=result.domain)
    )
    assert result.interval == pytest.approx(expected.around(result.count))
    zoned = result.with_zones([Zone("left", ((0, 0), (80, 0), (80, 128), (0, 128)))])
    assert zoned.zone_intervals["left"] == pytest.approx(expected.around(zoned.zones["left"]))
    about = checkpoint.read(tmp_path / "m.safetensors")[1]["calibration"]
    assert about == {"coverage": 0.9, "images": 60, "data": ["x"]}
