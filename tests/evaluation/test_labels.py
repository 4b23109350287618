"""Labels held against what a model sees."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

from gbdgc.counting import Counter, Result
from gbdgc.data import Dataset, load_dataset
from gbdgc.evaluation import check_labels, label_score
from in_process import run_gbdgc

REAL = Path(os.environ.get("GBDGC_DATA", "")) / "ShanghaiTech" / "part_B"


def seen(heads: NDArray[np.float32], width: int = 320, height: int = 240) -> Result:
    density = np.zeros((height, width))
    x, y = heads.astype(int).T
    np.add.at(density, (y, x), 1)
    return Result.from_density(gaussian_filter(density, 5))


def test_right_labels_score_above_mirrored_shifted_and_foreign_ones() -> None:
    random = np.random.default_rng(0)
    heads = (random.uniform((20, 20), (140, 220), (60, 2))).astype(np.float32)
    result = seen(heads)
    right = label_score(result, heads)
    mirrored = label_score(result, (320, 0) + heads * (-1, 1))
    shifted = label_score(result, heads + np.float32([60, 0]))
    elsewhere = label_score(result, random.uniform((0, 0), (320, 240), (60, 2)).astype(np.float32))
    assert right > 0.6 > shifted > mirrored
    assert right > 0.6 > 0 > elsewhere
    assert mirrored < -2


def test_labels_on_and_beyond_the_border_are_scored() -> None:
    result = seen(np.float32([[300, 200]]))
    assert np.isfinite(label_score(result, np.float32([[320, 240], [-5, 3], [400, 900]])))


def test_the_check_lists_scores_and_shows_heads_beside_density(
    model: Path, pictures: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    lines = []
    counter = Counter.load(model)
    for number, picture in enumerate(pictures[:4]):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
        cells = counter(picture).cells
        # Where the model sees the most people, but in the third picture the fewest; nobody in the last.
        row, column = np.unravel_index(cells.argmin() if number == 2 else cells.argmax(), cells.shape)
        lines.append(
            {"id": str(number), "image": f"{number}.png", "points": [[int(column), int(row)]] if number < 3 else []}
        )
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run_gbdgc("data", "check", tmp_path, "--model", model, "--json", "--out", "run", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert next(iter(report["label_scores"])) == "2", "worst first; without heads there is no score"
    assert set(report["label_scores"]) == {"0", "1", "2"}
    misfits = [finding["ids"] for finding in report["findings"] if finding["kind"] == "misfit"]
    assert misfits == [["2"]]
    sheet = (tmp_path / "run" / "contact_sheet.html").read_text()
    assert "what the model sees in 2" in sheet
    assert sheet.index("what the model sees in 2") < sheet.index("what the model sees in 1")


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="set GBDGC_DATA to the folder that holds ShanghaiTech/part_B")
def test_the_picture_of_shanghaitech_b_with_foreign_labels_comes_first() -> None:
    train = load_dataset(REAL).where("train")
    # A twentieth of it: all of it takes minutes, and comes out the same.
    part = Dataset(sample for n, sample in enumerate(train) if n % 20 == 0 or sample.image.stem == "IMG_108")
    worst = sorted(check_labels(Counter.load(), part), key=lambda fit: fit.score)
    assert worst[0].sample.image.stem == "IMG_108"
    assert worst[0].score < 0
    assert sum(fit.score < 0 for fit in worst[1:5]) <= 1, "at most one false alarm among the next four"
