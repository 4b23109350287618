"""The figure of pictures, truth and models."""

from pathlib import Path

import numpy as np
from PIL import Image

from in_process import run_gbdgc


def test_a_figure_has_a_row_per_picture_and_a_column_per_model(model: Path, streets: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure"
    done = run_gbdgc("figure", model, "--data", streets, "--split", "all", "--out", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"figure: {out}.pdf" in done.stdout
    assert out.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    image = Image.open(out.with_suffix(".png"))
    assert image.width == round(3 * 2.6 * 200)
    assert np.asarray(image.convert("L")).std() > 20, "something is drawn"


def test_a_picture_that_is_not_there_is_named(model: Path, streets: Path, tmp_path: Path) -> None:
    done = run_gbdgc("figure", model, "--data", streets, "--pictures", "nobody", folder=tmp_path)
    assert done.returncode == 1
    assert "nobody" in done.stderr
    assert list(tmp_path.iterdir()) == []
