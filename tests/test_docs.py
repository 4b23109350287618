"""The pages keep their word: what they show is what the bundled model counts on what docs/examples.py draws."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gbdgc import Counter
from gbdgc.counting.zones import zones_from_json
from in_process import run_gbdgc

ROOT = Path(__file__).parents[1]
COUNTING, DEPLOYMENT = ((ROOT / "docs" / page).read_text() for page in ("counting.md", "deployment.md"))
NEAR = {"rel": 0.01, "abs": 0.25}
"""Processors round differently and encode films differently, and pages show one decimal."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "drawn"
    subprocess.run([sys.executable, ROOT / "docs" / "examples.py", folder], check=True)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_gbdgc(*arguments, folder=folder)


def rows(text: str, source: str) -> list[list[float]]:
    """The numbers in the lines of a table that end in a source, without intervals; times such as 0:01.0 as seconds."""
    lines = re.findall(rf"^ +([\d.: ]+?) +{source}$", re.sub(r" \([\d,]+–[\d,]+\)", "", text), re.MULTILINE)
    return [[float(word.replace("0:", "")) for word in line.split()] for line in lines]


def test_a_folder_is_counted_as_shown(folder: Path) -> None:
    answer = run(folder, "count", "street")
    assert answer.returncode == 1, answer.stderr
    shown, counted = (rows(text, r"street/cam\d\.jpg") for text in (COUNTING, answer.stdout))
    assert len(shown) == 3
    assert counted == [pytest.approx(row, **NEAR) for row in shown]
    assert "failed: street/cam2-copy.jpg: damaged or truncated" in answer.stderr


def test_a_picture_with_zones_is_counted_as_shown(folder: Path) -> None:
    answer = run(folder, "count", "street/cam1.jpg", "--zones", "zones.json", "--no-overlays", "--format", "json")
    shown = re.search(r"--format json \| jq\n(.*?^  \}$)", COUNTING, re.MULTILINE | re.DOTALL)
    assert shown is not None
    page, counted = json.loads(shown[1]), json.loads(answer.stdout)
    assert page.keys() == counted.keys()
    assert {"count": counted["count"], **counted["zones"]} == pytest.approx(
        {"count": page["count"], **page["zones"]}, **NEAR
    )


def test_a_film_is_counted_as_shown(folder: Path) -> None:
    assert (folder / "zones.json").read_text() in COUNTING
    answer = run(folder, "count", "gate.mp4", "--zones", "zones.json")
    shown, counted = (rows(text, "gate.mp4") for text in (COUNTING, answer.stdout))
    assert len(shown) == 4
    assert counted == [pytest.approx(row, **NEAR) for row in shown]


def test_the_service_answers_as_shown() -> None:
    shown = re.search(r"zones=(\{.*?\})' localhost.*\n(\{.*\})$", DEPLOYMENT, re.MULTILINE)
    assert shown is not None
    zones, answer = zones_from_json(shown[1]), json.loads(shown[2])
    result = Counter.load()(ROOT / "docs" / "plaza.jpg").with_zones(zones)
    assert {"count": result.count, **result.zones} == pytest.approx(
        {"count": answer["count"], **answer["zones"]}, **NEAR
    )
    assert (answer["width"], answer["height"]) == (result.width, result.height)
