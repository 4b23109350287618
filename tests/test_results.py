"""Published numbers are those of the results: no table on a page is typed by hand."""

import re
from pathlib import Path

import pytest

from gbdgc.benchmark import BENCHMARKS, build_tables, read_cells
from gbdgc.benchmark.pages import filled_text

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*results.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_on_the_page_is_what_the_results_give(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wanted = {Path(name) for name in re.findall(r"<!-- gbdgc benchmark ([\w/]+)", text)}
    assert wanted
    for folder in wanted:
        tables = build_tables(folder.name, read_cells(ROOT / folder.parent, folder.name))
        assert filled_text(text, folder, tables)[0] == text, "run: make results"


def test_results_are_small_and_name_no_folder_of_any_machine() -> None:
    cells = list((ROOT / "results").rglob("*.json"))
    assert cells
    for cell in cells:
        assert cell.stat().st_size < 20_000  # those of `domains` hold the error of each picture
        assert not re.search(r'"(/|[A-Z]:\\\\)', cell.read_text(encoding="utf-8")), cell


def test_every_folder_of_results_is_a_benchmark() -> None:
    assert {path.parent.name for path in (ROOT / "results").rglob("cells")} <= set(BENCHMARKS)
