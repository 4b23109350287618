"""Models by name."""

import shutil
from pathlib import Path

import pytest

from gbdgc import shipped
from gbdgc.checkpoint import amend_model, model_file
from gbdgc.errors import InputError
from gbdgc.shipped import find_model, shipped_models
from in_process import run_gbdgc


@pytest.fixture
def folder(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models as the package has them, with one that was dropped in."""
    place = tmp_path / "weights"
    place.mkdir()
    for name in ("alps", "bundled", "street"):
        shutil.copy(model, place / f"{name}.safetensors")
    monkeypatch.setattr(shipped, "WEIGHTS", place)
    monkeypatch.chdir(tmp_path)
    return place


def test_the_names_are_those_of_the_files_and_the_default_comes_first(folder: Path) -> None:
    assert list(shipped_models()) == ["default", "alps", "street"]
    assert find_model("street") == model_file("street") == folder / "street.safetensors"
    assert find_model(None) == find_model("default") == folder / "bundled.safetensors"


def test_a_path_goes_before_a_name(folder: Path) -> None:
    Path("street").mkdir()
    assert find_model("street") == Path("street")


def test_an_unknown_name_is_answered_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(InputError, match="stret: no such file; give a run's folder, a model file, or one of: default"):
        model_file("stret")


def test_they_are_listed_with_their_data_and_errors(folder: Path) -> None:
    amend_model("street", folder / "street.safetensors", {"source": ["x/square"], "errors": {"street": {"mae": 12.34}}})
    listed = run_gbdgc("models", folder=folder).stdout.splitlines()
    (street,) = (line for line in listed if "street" in line and "12.3" in line)
    assert street.split()[0] == "street"
    assert "square" in street  # the data it was trained on, without its folders
    assert any(line.split()[:1] == ["default"] for line in listed)
