"""The command as a whole: fast, and helpful about mistakes."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import gbdgc
from gbdgc.benchmark import Settings
from gbdgc.cli import app
from gbdgc.cli.benchmark import benchmark
from gbdgc.cli.count import count
from gbdgc.cli.data import convert
from gbdgc.cli.evaluate import evaluate
from gbdgc.cli.serve import serve
from gbdgc.cli.tune import tune
from gbdgc.counting.tiling import TILE
from gbdgc.data.converting import ConversionSettings
from gbdgc.files import MAX_PIXELS
from gbdgc.server import Limits
from in_process import run_gbdgc

COMMANDS = [name for name in app if not name.startswith("-")]


def test_help_imports_nothing_heavy() -> None:
    """Each help after the other, in one new process: what one of them imports is there from then on."""
    probe = (
        "import sys\n"
        "from gbdgc.cli import main\n"
        "heavy = {'torch', 'numba', 'sklearn', 'scipy', 'matplotlib', 'numpy', 'PIL', 'onnxruntime'}\n"
        "for command in sys.argv[1:]:\n"
        "    try: main([*command.split(), '--help'])\n"
        "    except SystemExit: pass\n"
        "    print(command, heavy & set(sys.modules), file=sys.stderr)\n"
    )
    commands = ["", *COMMANDS]
    answer = subprocess.run([sys.executable, "-c", probe, *commands], capture_output=True, text=True, timeout=60)
    assert answer.stderr.splitlines() == [f"{command} set()" for command in commands]
    for command in commands:
        assert f"Usage: gbdgc {command}".rstrip() in answer.stdout


def test_options_have_the_defaults_of_the_library() -> None:
    """Options repeat them, since the help must not import what they are declared in."""

    def default(function: Callable[..., object], name: str) -> object:
        return inspect.signature(function).parameters[name].default

    limits, converting = Limits(), ConversionSettings()
    assert default(serve, "max_upload") * 1e6 == limits.upload_bytes
    assert default(serve, "max_pixels") == limits.pixels
    assert default(serve, "max_connections") == limits.connections
    assert default(serve, "timeout") == limits.seconds
    for name in ("queue", "client_share"):
        assert default(serve, name) == getattr(limits, name)
    for name in ("max_side", "min_side", "quality", "max_pixels"):
        assert default(convert, name) == getattr(converting, name)
    for name in ("start", "split", "steps", "seed"):
        assert default(tune, name) == default(gbdgc.tune, name)
    assert default(count, "tile") == TILE
    assert default(evaluate, "tile") == default(gbdgc.evaluate, "tile")
    assert default(benchmark, "engine") == Settings({}).engine
    for name in ("out", "runs"):
        assert str(default(benchmark, name)) == getattr(Settings({}), name)


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
