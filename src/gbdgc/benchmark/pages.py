"""Tables in pages: the text between two marks is generated from results, never typed.

    <!-- gbdgc benchmark results/transfer -->
    <!-- end -->

A mark names the folder of the results, and may name the rows it wants, in any order:
``<!-- gbdgc benchmark results/transfer: DGCC, GBDGC -->``.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gbdgc.benchmark.layout import Table
from gbdgc.benchmark.text import to_markdown
from gbdgc.errors import InputError
from gbdgc.files import atomic_write


def fill_page(page: Path, folder: Path, tables: Sequence[Table]) -> None:
    """Put the tables of a folder of results between its marks on a page of Markdown; everything else stays."""
    if not page.is_file():
        raise InputError(page, "no such page")
    text = page.read_text(encoding="utf-8")
    filled, marks = filled_text(text, folder, tables)
    if not marks:
        mark = f"<!-- gbdgc benchmark {folder.as_posix()} -->"
        raise InputError(page, "no place for the tables", f"write {mark} and <!-- end --> there")
    with atomic_write(page, "w") as file:
        file.write(filled)


def filled_text(text: str, folder: Path, tables: Sequence[Table]) -> tuple[str, int]:
    """Return the text with the tables between the marks, and how many marks there were."""
    name = re.escape(folder.as_posix())
    mark = re.compile(rf"(<!-- gbdgc benchmark {name}(?:: (.*?))? -->\n).*?(<!-- end -->)", re.DOTALL)

    def fill(found: re.Match[str]) -> str:
        rows = {row.strip() for row in found[2].split(",")} if found[2] else None
        chosen = [
            replace(table, lines=[line for line in table.lines if rows is None or rows & set(line.labels)])
            for table in tables
        ]
        return f"{found[1]}\n{to_markdown(chosen)}\n{found[3]}"

    return mark.subn(fill, text)
