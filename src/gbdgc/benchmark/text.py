"""Rendering tables for the terminal and as CSV, Markdown and LaTeX."""

import csv
import io
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import rich.table
from rich.markup import escape

from gbdgc.benchmark.layout import DECIMALS, Column, Line, Table
from gbdgc.files import AnyPath, atomic_write

_NOTHING = "–"
_LATEX = str.maketrans(
    {character: rf"\{character}" for character in "&%#_"}
    | {"Δ": r"$\Delta$", "σ": r"$\sigma$", "→": r"$\rightarrow$", "–": "--", '"': "''"}
)


def to_rich(table: Table) -> rich.table.Table:
    """Return the table for the terminal, the measures of a pair in one column; the best of each is bold."""
    made = rich.table.Table(
        title=table.caption, title_justify="left", caption="\n".join(table.notes), caption_justify="left"
    )
    for head in table.heads:
        made.add_column(head)
    groups = {pair: list(group) for pair, group in itertools.groupby(table.columns, key=lambda column: column[:-1])}
    for pair, columns in groups.items():
        made.add_column("\n".join([*pair, " / ".join(column[-1] for column in columns)]), justify="right")
    for line, following in itertools.zip_longest(table.lines, table.lines[1:]):
        ends = following is not None and following.section != line.section
        cells = (_terminal_cell(table, line, columns) for columns in groups.values())
        made.add_row(*map(escape, line.labels), *cells, end_section=ends)
    return made


def _terminal_cell(table: Table, line: Line, columns: Sequence[Column]) -> str:
    """Return the numbers, and under them their intervals."""
    texts = [_number(line, column) for column in columns]
    bold = [
        f"[bold]{text}[/]" if table.is_best(line, column) else text for text, column in zip(texts, columns, strict=True)
    ]
    intervals = [_interval(line, column) for column in columns]
    return " / ".join(bold) + (f"\n[dim]{' / '.join(intervals)}[/]" if any(intervals) else "")


def to_csv(tables: Sequence[Table]) -> str:
    """Return one line per number, with all of its headings, for other programs."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for table in tables:
        writer.writerow(["table", *map(str.lower, (*table.heads, *table.levels)), "value", "low", "high"])
        for line in table.lines:
            for column, value in line.values.items():
                ends = ["" if end is None else end for end in (value.low, value.high)]
                writer.writerow([table.name, *line.labels, *column, value.mean, *ends])
    return file.getvalue()


def to_markdown(tables: Sequence[Table]) -> str:
    """Return tables for a README; the best of each column is bold."""
    return "\n".join(_markdown(table) for table in tables)


FORMS: dict[str, Callable[[Sequence[Table]], str]] = {
    "csv": to_csv,
    "markdown": to_markdown,
    "latex": lambda tables: "\n".join(map(_latex, tables)),
}
_SUFFIXES = {"csv": ".csv", "markdown": ".md", "latex": ".tex"}


def write_tables(tables: Sequence[Table], folder: AnyPath) -> list[Path]:
    """Write every form into a folder: table.csv, table.md and table.tex."""
    paths = []
    for form, make in FORMS.items():
        paths.append(Path(folder) / f"table{_SUFFIXES[form]}")
        with atomic_write(paths[-1], "w") as file:
            file.write(make(tables))
    return paths


def _cells(table: Table, line: Line) -> list[tuple[str, bool]]:
    """Return the text of each cell, and whether it is the best of its column."""
    return [
        (" ".join(filter(None, (_number(line, column), _interval(line, column)))), table.is_best(line, column))
        for column in table.columns
    ]


def _number(line: Line, column: Column) -> str:
    return f"{line.values[column].mean:.{DECIMALS}f}" if column in line.values else _NOTHING


def _interval(line: Line, column: Column) -> str:
    value = line.values.get(column)
    return "" if value is None or value.low is None else f"({value.low:.{DECIMALS}f}–{value.high:.{DECIMALS}f})"


def _markdown(table: Table) -> str:
    headings = list(table.heads)
    for column in table.columns:
        *outer, measure = (part for part in column if part)
        headings.append(f"{' → '.join(outer)} {measure}")
    rows = [headings, ["---"] * len(table.heads) + ["---:"] * len(table.columns)]
    for line in table.lines:
        cells = [f"**{text}**" if bold else text for text, bold in _cells(table, line)]
        rows.append([*line.labels, *cells])
    body = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)
    notes = "\n".join(f"- {note}" for note in table.notes)
    return f"### {table.caption}\n\n{body}\n\n{notes}\n"


def _latex(table: Table) -> str:
    """Return a table for a paper, by booktabs; the headings span their columns as in the original."""
    first = len(table.heads) + 1
    lines = [r"\begin{table}", rf"\caption{{{_tex(table.caption)}. {_tex('. '.join(table.notes))}.}}", r"\centering"]
    lines += [rf"\begin{{tabular}}{{{'l' * len(table.heads)}{'r' * len(table.columns)}}}", r"\toprule"]
    for level, name in enumerate(table.levels[:-1]):
        # Columns that have the same headings down to this level stand under one.
        groups = itertools.groupby(table.columns, key=lambda column: column[: level + 1])
        spans = [(heading[-1], len(list(group))) for heading, group in groups]
        cells = [_tex(name)] + [""] * (len(table.heads) - 1)
        cells += [rf"\multicolumn{{{width}}}{{c}}{{{_tex(text)}}}" for text, width in spans]
        ends = list(itertools.accumulate((width for _, width in spans), initial=first))
        rules = "".join(rf"\cmidrule(lr){{{start}-{end - 1}}}" for start, end in itertools.pairwise(ends))
        lines += [" & ".join(cells) + r" \\", rules]
    lines += [" & ".join(map(_tex, [*table.heads, *(column[-1] for column in table.columns)])) + r" \\", r"\midrule"]
    for before, line in itertools.pairwise([None, *table.lines]):
        assert line is not None
        if before is not None and before.section != line.section:
            lines.append(r"\midrule")
        cells = [rf"\textbf{{{_tex(text)}}}" if bold else _tex(text) for text, bold in _cells(table, line)]
        lines.append(" & ".join([*map(_tex, line.labels), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _tex(text: str) -> str:
    return text.translate(_LATEX)
