"""The training that `make demo` runs beside its own."""

from pathlib import Path

import pytest

from gbdgc.demo import training_beside


def test_its_log_says_why_it_failed(tmp_path: Path) -> None:
    with training_beside(["train.epocs=1"], tmp_path / "erm", 1) as process:
        assert process.wait(timeout=120) != 0
    assert "epocs" in (tmp_path / "erm.log").read_text()


def test_it_ends_with_the_training_that_it_is_beside(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), training_beside([], tmp_path / "erm", 1) as process:
        raise KeyboardInterrupt
    assert process.poll() is not None
