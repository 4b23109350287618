"""The README keeps its word: its commands run, in order, and its Python too."""

import re
import shutil
from pathlib import Path

import pytest

import gbdgc
from in_process import run_gbdgc

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that looks like the project's root to the commands."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "docs", folder / "docs")
    return folder


@pytest.mark.slow
def test_the_commands_run_from_the_top(folder: Path) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 5
    for command in commands:
        name, *arguments = command.split()
        assert name == "gbdgc"
        answer = run_gbdgc(*arguments, folder=folder)
        assert answer.returncode == 0, f"{command}: {answer.stderr}"


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_runs(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec(compile(block, "README.md", "exec"), {})


def test_the_count_it_shows_is_the_one_the_bundled_model_gives() -> None:
    count = gbdgc.Counter.load()(ROOT / "docs" / "plaza.jpg").count
    shown = re.search(r"^ +([\d.]+) \([\d–]+\)  docs/plaza\.jpg$", README, re.MULTILINE)
    assert shown is not None
    assert count == pytest.approx(float(shown[1]), abs=0.2)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert not [link for link in links if not link.startswith("http") and not (ROOT / link).exists()]


def test_every_command_it_names_exists() -> None:
    from gbdgc.cli import app

    named = set(re.findall(r"`gbdgc ([a-z]+)", README))
    assert named
    assert named <= set(app)
