"""Tables on pages of Markdown."""

from pathlib import Path

import pytest

from gbdgc.benchmark.layout import Line, Table, Value
from gbdgc.benchmark.pages import fill_page
from gbdgc.errors import InputError

FOLDER = Path("results/transfer")
COLUMN = ("SHA", "SHB", "MAE")
TABLE = Table(
    name="transfer",
    caption="Errors",
    heads=("Method",),
    levels=("Source", "Target", "Measure"),
    columns=[COLUMN],
    lines=[Line((name,), {COLUMN: Value(value)}) for name, value in (("DGCC", 12.6), ("MAN", 22.1), ("GBDGC", 11.1))],
    notes=["a note"],
)
PAGE = """# Results
before
<!-- gbdgc benchmark results/transfer -->
old
<!-- end -->
between
<!-- gbdgc benchmark results/transfer: GBDGC, DGCC -->
<!-- end -->
<!-- gbdgc benchmark results/long/transfer -->
untouched
<!-- end -->
after
"""


def test_tables_stand_between_their_marks_and_nothing_else_changes(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text(PAGE)
    fill_page(page, FOLDER, [TABLE])
    first = page.read_text()
    assert "old" not in first
    assert first.count("| MAN |") == 1
    assert first.count("| DGCC |") == first.count("| **11.1** |") == 2
    for kept in ("# Results\nbefore\n", "between\n", "untouched\n", "after\n"):
        assert kept in first
    fill_page(page, FOLDER, [TABLE])
    assert page.read_text() == first


def test_a_page_without_a_mark_says_what_to_write(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("nothing here")
    with pytest.raises(InputError, match="<!-- gbdgc benchmark results/transfer -->"):
        fill_page(page, FOLDER, [TABLE])
    assert page.read_text() == "nothing here"
    with pytest.raises(InputError, match="no such page"):
        fill_page(tmp_path / "nowhere.md", FOLDER, [TABLE])
