"""`gbdgc doctor`."""

from pathlib import Path

import pytest

from gbdgc import counter
from gbdgc.cli.doctor import doctor


def test_a_whole_installation_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    doctor()
    said = capsys.readouterr().out
    assert "bundled model" in said
    assert said.splitlines()[-1] == "ready: gbdgc count SOURCE"


def test_what_is_missing_is_named_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    monkeypatch.delenv("GBDGC_DATA", raising=False)
    doctor()
    said = " ".join(capsys.readouterr().out.split())
    assert "gbdgc weights" in said
    assert "GBDGC_DATA not set" in said


def test_without_a_model_it_ends_in_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "BUNDLED", "weights/nowhere.safetensors")
    with pytest.raises(SystemExit, match="1"):
        doctor()
    said = " ".join(capsys.readouterr().out.split())
    assert "not usable" in said
    assert "ready" not in said
