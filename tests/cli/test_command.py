"""The command as a whole: fast, and helpful about mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from gbdgc.cli import app
from gbdgc.files import MAX_PIXELS
from in_process import run_gbdgc

COMMANDS = [name for name in app if not name.startswith("-")]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param((), id="gbdgc"),
        *(pytest.param((name,), id=name) for name in COMMANDS),
    ],
)
def test_help_imports_nothing_heavy(command: tuple[str, ...]) -> None:
    probe = (
        "import sys\n"
        "from gbdgc.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'sklearn', 'scipy', 'matplotlib', 'numpy', 'PIL', 'onnxruntime'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    arguments = [sys.executable, "-c", probe, *command, "--help"]
    answer = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert " ".join(["Usage: gbdgc", *command]) in answer.stdout
    assert answer.stderr.strip() == "set()"


def test_a_misspelt_command_is_met_with_the_right_one(tmp_path: Path) -> None:
    answer = run_gbdgc("domians", folder=tmp_path)
    assert answer.returncode == 2
    assert 'Did you mean "domains"?' in " ".join(answer.stderr.split())


def test_an_input_that_cannot_be_used_is_named_without_a_traceback() -> None:
    command = [sys.executable, "-m", "gbdgc", "domains", "nowhere[1].npy"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1
    assert "nowhere[1].npy" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("command", [("train", "nowhere.yaml"), ("eval", "nowhere", "."), ("domains", ".")])
def test_commands_read_as_many_pixels_of_a_tiff_as_of_other_pictures(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    assert run_gbdgc(*command, folder=tmp_path).returncode  # there is nothing to read
    assert Image.MAX_IMAGE_PIXELS == MAX_PIXELS
