"""The papers' numbers for the same source and targets."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gbdgc.published import transfers

_TABLES = ("transfer", "nwpu")

_ALIASES = {
    "SHA": ("sha", "parta", "partafinal", "shanghaitecha", "shanghaitechparta"),
    "SHB": ("shb", "partb", "partbfinal", "shanghaitechb", "shanghaitechpartb"),
    "QNRF": ("qnrf", "ucfqnrf", "ucfqnrfeccv18"),
    "NWPU": ("nwpu", "nwpucrowd"),
}


@dataclass(frozen=True)
class Published:
    """One row of the matrix: a method's errors, MAE and RMSE, by target."""

    method: str
    venue: str
    errors: dict[str, tuple[float, float]]


def known_name(*names: str | Path) -> str | None:
    """Return the short name the papers use, where one of these names or paths tells it."""
    parts = {re.sub(r"[^a-z0-9]", "", part.lower()) for name in names for part in Path(name).parts}
    return next((name for name, aliases in _ALIASES.items() if parts.intersection(aliases)), None)


def known_source(sources: Iterable[str]) -> str | None:
    """Return the papers' name of a source that may be several data sets together, such as SHA+SHB."""
    names = [known_name(source) for source in sources]
    return "+".join(sorted(name for name in names if name)) if names and all(names) else None


def published_rows(source: str, targets: Iterable[str]) -> list[Published]:
    """Return what was published for that source on any of these targets."""
    wanted = set(targets)
    rows: dict[str, Published] = {}
    for record in (record for table in _TABLES for record in transfers(table)):
        if record.source == source and record.target in wanted:
            row = rows.setdefault(record.method, Published(record.method, record.venue, {}))
            row.errors[record.target] = (record.mae, record.rmse)
    return list(rows.values())
