"""Reading a table of features: npy, npz, csv or parquet in, ids and numbers out."""

import csv
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.errors import InputError

ID_NAMES = ("id", "name", "file", "path", "image")


class FeatureTable(NamedTuple):
    """One row a sample; ids are those of the table, or the rows' numbers."""

    ids: list[str]
    features: NDArray[Any]


def read_feature_table(path: Path) -> FeatureTable:
    """Read a table by the ending of its name."""
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path}: not a table of features; give one that ends in {', '.join(READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    table = READERS[path.suffix.lower()](path)
    if table.features.ndim != 2 or 0 in table.features.shape:
        raise InputError(f"{path}: its shape is {table.features.shape}; give one row a sample, one column a feature")
    return table


def _numbered(features: NDArray[Any]) -> FeatureTable:
    return FeatureTable([str(row) for row in range(len(features))], features)


def _read_npy(path: Path) -> FeatureTable:
    return _numbered(_load_numpy(path))


def _read_npz(path: Path) -> FeatureTable:
    """The only two-dimensional array, and the array `ids` if there is one."""
    archive = _load_numpy(path)
    tables = [name for name in archive if archive[name].ndim == 2]
    if len(tables) != 1:
        found = ", ".join(f"{name} {archive[name].shape}" for name in archive) or "nothing"
        raise InputError(f"{path}: expected one array with two axes, found {found}; save the features alone")
    features = archive[tables[0]]
    ids = [str(name) for name in archive["ids"]] if "ids" in archive else _numbered(features).ids
    if len(ids) != len(features):
        raise InputError(f"{path}: {len(ids)} ids for {len(features)} rows; save one id a row")
    return FeatureTable(ids, features)


def _load_numpy(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path}: not a file of plain NumPy arrays ({error}); write it with numpy.save") from error


def _read_csv(path: Path) -> FeatureTable:
    """A header, then one row a sample; the first column may be an id."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        first = next(lines, None)
        if first is None:
            raise InputError(f"{path}: no rows below the header; give a header line, then one line a sample")
        if all(map(_is_number, header)):
            raise InputError(f"{path}: the first line holds numbers; add a header line with the columns' names")
        has_id = header[0].strip().lower() in ID_NAMES or not _is_number(first[0])
        ids: list[str] = []
        rows: list[NDArray[np.float64]] = []
        for number, line in enumerate(itertools.chain([first], lines)):
            if len(line) != len(header):
                raise InputError(
                    f"{path}: row {number} has {len(line)} cells under {len(header)} columns; mend that row"
                )
            ids.append(line[0] if has_id else str(number))
            rows.append(_numbers(line[has_id:], header[has_id:], path, number))
    return FeatureTable(ids, np.stack(rows))


def _numbers(cells: Sequence[str], columns: Sequence[str], path: Path, row: int) -> NDArray[np.float64]:
    """One row's numbers; an empty cell is NaN, which discovery refuses by row."""
    try:
        return np.array([cell or "nan" for cell in cells], dtype=np.float64)
    except ValueError:
        bad = next(index for index, cell in enumerate(cells) if cell and not _is_number(cell))
        raise InputError(
            f"{path}: row {row}, column {columns[bad]!r} is {cells[bad]!r}, not a number; "
            "leave out columns that are no features (an id may come first)"
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path) -> FeatureTable:
    """Every numeric column is a feature; a column named like an id, or the first of text, is the id."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InputError(f"{path}: reading parquet needs pyarrow; pip install 'gbdgc[parquet]'") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a parquet file ({error})") from error
    kinds = pyarrow.types
    named = [name for name in table.column_names if name.lower() in ID_NAMES]
    text = [field.name for field in table.schema if kinds.is_string(field.type) or kinds.is_large_string(field.type)]
    identity = next(iter(named + text), None)
    numeric = [
        field.name
        for field in table.schema
        if (kinds.is_floating(field.type) or kinds.is_integer(field.type)) and field.name != identity
    ]
    if not numeric:
        raise InputError(f"{path}: no column of numbers among {', '.join(table.column_names)}")
    features = np.column_stack([table[name].to_numpy().astype(np.float64) for name in numeric])
    ids = _numbered(features).ids if identity is None else [str(value) for value in table[identity].to_pylist()]
    return FeatureTable(ids, features)


READERS: dict[str, Callable[[Path], FeatureTable]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
