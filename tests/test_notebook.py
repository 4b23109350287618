"""The notebook in docs/ runs from top to bottom, and shows what is kept in it."""

import json
import re
import runpy
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_did_when_it_was_written() -> None:
    kept = json.loads((DOCS / "tour.ipynb").read_text(encoding="utf-8"))
    again = deepcopy(kept)
    runpy.run_path(str(DOCS / "run_notebook.py"))["run"](again)
    for before, after in zip(kept["cells"], again["cells"], strict=True):
        assert words(after) == words(before), "run docs/run_notebook.py and look at what has changed"


def words(cell: dict[str, Any]) -> list[list[str]]:
    """What a cell shows, without numbers, in which processors may differ, and without pictures."""
    shown = []
    for output in cell.get("outputs", []):
        for kind, text in (output.get("data") or {"stdout": output.get("text", [])}).items():
            plain = re.sub(r'src="[^"]*"', "", "".join(text))
            shown.append([kind, *re.findall(r"[^\W\d_]+", plain)])
    return shown


def test_the_kept_notebook_has_pictures_of_results() -> None:
    text = (DOCS / "tour.ipynb").read_text(encoding="utf-8")
    assert text.count("data:image/jpeg;base64,") == 2
    assert len(text) < 400_000
