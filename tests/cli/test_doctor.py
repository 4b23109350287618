"""`gbdgc doctor`."""

import os
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from gbdgc import runs, shipped
from gbdgc.cli.doctor import EXTRAS, doctor, examine


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
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shipped, "WEIGHTS", tmp_path)
    with pytest.raises(SystemExit, match="1"):
        doctor()
    said = " ".join(capsys.readouterr().out.split())
    assert "not usable" in said
    assert "ready" not in said


@pytest.mark.parametrize("failure", ["ImportError('no torch here')", "OSError('libtorch.so: no such file')"])
def test_a_torch_that_does_not_import_is_a_finding_and_the_rest_is_looked_at(tmp_path: Path, failure: str) -> None:
    (tmp_path / "torch.py").write_text(f"raise {failure}\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "300"}
    command = [sys.executable, "-m", "gbdgc", "doctor"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (answer.returncode, answer.stderr) == (1, "")
    assert f"does not import ({failure.split(chr(39))[1]})" in answer.stdout
    assert "extra video" in answer.stdout
    assert "presets" in answer.stdout


@pytest.mark.parametrize(
    ("package", "extra"),
    [("onnxscript", "export"), ("openvino", "openvino"), ("uvicorn", "serve"), ("av", "video"), ("ray", "ray")],
)
def test_every_package_of_an_extra_is_looked_at(monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    monkeypatch.setattr(runs, "package_version", lambda name: None if name == package else "1.0")
    findings = {finding.what: finding for finding in examine()}
    assert f"{package} not installed" in findings[f"extra {extra}"].found
    assert f'pip install "gbdgc[{extra}]"' in findings[f"extra {extra}"].advice
    assert [name for name, finding in findings.items() if name.startswith("extra ") and finding.advice] == [
        f"extra {extra}"
    ]


def test_every_extra_is_known_to_the_doctor() -> None:
    extras = set(metadata("gbdgc").get_all("Provides-Extra") or ())
    assert extras - {"all"} == set(EXTRAS)
