"""The tables that `gbdgc data` prints."""

from collections.abc import Mapping, Sequence

from rich.bar import Bar
from rich.markup import escape
from rich.table import Table

from gbdgc.data.checking import KINDS, Finding, by_kind
from gbdgc.data.statistics import QUANTILES, Bin, SplitSummary

_EXAMPLES = 3
_BAR_WIDTH = 40


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return a table with one row per kind of finding: how many there are, and the first few."""
    table = Table("what", "how many", "such as", show_lines=True)
    table.columns[1].justify = "right"
    for kind, found in by_kind(findings).items():
        examples = [escape(f"{' = '.join(each.ids)}: {each.detail}".removeprefix(": ")) for each in found[:_EXAMPLES]]
        style = "bold red" if KINDS[kind].wrong else "dim"
        table.add_row(f"[{style}]{KINDS[kind].title}[/]", str(len(found)), "\n".join(examples))
    return table


def summary_table(summaries: Mapping[str, SplitSummary], format: str) -> Table:
    """Return a table with one column per split."""
    table = Table(title=f"read as {format}", title_justify="left", title_style="dim")
    table.add_column("")
    for name in summaries:
        table.add_column(escape(name), justify="right")
    columns = summaries.values()
    table.add_row("pictures", *(f"{each.images:,}" for each in columns))
    table.add_row("labelled", *(f"{each.labelled:,}" for each in columns))
    table.add_row("empty", *(f"{each.empty:,}" for each in columns))
    table.add_row("heads", *(f"{each.heads:,}" for each in columns), end_section=True)
    table.add_row("count: mean", *("–" if each.mean is None else f"{each.mean:,.1f}" for each in columns))
    for name in QUANTILES:
        values = (f"{each.quantiles[name]:,.0f}" if each.quantiles else "–" for each in columns)
        table.add_row(f"count: {name}", *values, end_section=name == "max")
    table.add_row("width", *(_span(each.width) for each in columns))
    table.add_row("height", *(_span(each.height) for each in columns))
    table.add_row("megapixels, mean", *(f"{each.megapixels:.2f}" for each in columns))
    return table


def histogram_table(bins: Sequence[Bin]) -> Table:
    """Return a table with one bar per bin."""
    table = Table.grid("", "", "", padding=(0, 1))
    table.columns[0].justify = table.columns[2].justify = "right"
    largest = max(each.images for each in bins)
    for each in bins:
        bar = Bar(largest, 0, each.images, width=_BAR_WIDTH, color="cyan")
        table.add_row(each.label, bar, str(each.images))
    return table


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
