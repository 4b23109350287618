"""Reading a table of features: npy, npz, csv or parquet in, ids and numbers out."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gbdgc.errors import InputError, as_input_error, install_advice
from gbdgc.files import is_number

ID_NAMES = ("id", "name", "file", "path", "image", "index", "__index_level_0__", "")
"""A column called so names or numbers the rows and is no feature; the last three are what pandas writes."""


class FeatureTable(NamedTuple):
    """One row per sample; ids are those of the table, or the rows' numbers."""

    ids: list[str]
    features: NDArray[Any]


def read_feature_table(path: Path) -> FeatureTable:
    """Read a table by the ending of its name."""
    if not path.is_file():
        raise InputError(path, "there is no such file or folder")
    if path.suffix.lower() not in READERS:
        raise InputError(path, "not a table of features", f"give one that ends in {', '.join(READERS)}")
    ids, features = READERS[path.suffix.lower()](path)
    if features.ndim != 2 or 0 in features.shape:
        raise InputError(path, f"its shape is {features.shape}", "give one row per sample, one column per feature")
    if features.dtype.kind not in "biuf":
        raise InputError(path, f"its values are no real numbers ({features.dtype})", "save the features as floats")
    return FeatureTable(ids, features)


def _numbered(features: NDArray[Any]) -> FeatureTable:
    return FeatureTable([str(row) for row in range(len(features))], features)


def _id_columns(names: Sequence[str]) -> list[int]:
    """Positions of the columns that are called like an id, the best name first."""
    plain = [name.strip().lower() for name in names]
    return [plain.index(name) for name in ID_NAMES if name in plain]


def _read_numpy(path: Path) -> FeatureTable:
    """An array; of an archive the only one with two axes, and `ids` if there is that."""
    broken = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error)
    with as_input_error(broken, path, "not a file of plain NumPy arrays ({error})", "write it with numpy.save"):
        file = np.load(path, allow_pickle=False)  # what is in the file decides, not how it is called
        loaded = {} if isinstance(file, np.ndarray) else dict(file)
    if isinstance(file, np.ndarray):
        return _numbered(file)
    ids = loaded.pop("ids", None)
    tables = [array for array in loaded.values() if array.ndim == 2]
    if len(tables) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in loaded.items()) or "nothing"
        raise InputError(path, f"expected one array with two axes, found {found}", "save the features alone")
    (features,) = tables
    if ids is None:
        return _numbered(features)
    if ids.shape != (len(features),):
        raise InputError(path, f"ids of shape {ids.shape} for {len(features)} rows", "save one id per row")
    return FeatureTable([str(name) for name in ids], features)


def _read_csv(path: Path) -> FeatureTable:
    """A header, then one row per sample; the first column is an id too if it does not hold numbers."""
    advice = "save it again as CSV in UTF-8"
    with as_input_error((UnicodeDecodeError, csv.Error), path, "not a table in UTF-8 ({error})", advice):
        text = path.read_text(encoding="utf-8-sig").lstrip("\n")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        header, *rows = [line for line in csv.reader(StringIO(text), delimiter=separator) if line] or [[]]
    if not rows:
        raise InputError(path, "no rows below the header", "give a header line, then one line per sample")
    if all(map(is_number, header)):
        raise InputError(path, "the first line holds numbers", "add a header line with the columns' names")
    first = rows[0][0]
    identity = _id_columns(header) or ([0] if first and not is_number(first) else [])
    columns = [index for index in range(len(header)) if index not in identity]
    names = [header[index] for index in columns]
    features = np.empty((len(rows), len(columns)))
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise InputError(path, f"row {number} has {len(row)} cells under {len(header)} columns", "fix that row")
        features[number] = _numbers([row[index] for index in columns], names, path, number)
    return FeatureTable([row[identity[0]] for row in rows], features) if identity else _numbered(features)


def _numbers(cells: Sequence[str], columns: Sequence[str], path: Path, row: int) -> NDArray[np.float64]:
    """One row's numbers; an empty cell is NaN, which discovery refuses by row."""
    try:
        return np.array([cell or "nan" for cell in cells], dtype=np.float64)
    except ValueError:
        bad = next(index for index, cell in enumerate(cells) if cell and not is_number(cell))
        reason = f"row {row}, column {columns[bad]!r} is {cells[bad][:40]!r}, not a number"
        raise InputError(path, reason, "leave out columns that are no features (an id may come first)") from None


def _read_parquet(path: Path) -> FeatureTable:
    """Every numeric column is a feature; a column named like an id, or the first of text, is the id."""
    with as_input_error(ModuleNotFoundError, path, "reading parquet needs pyarrow", install_advice("parquet")):
        import pyarrow
        import pyarrow.parquet
    with as_input_error((pyarrow.ArrowException, OSError), path, "not a parquet file ({error})"):
        table = pyarrow.parquet.read_table(path)
    kinds, types = pyarrow.types, table.schema.types
    text = [index for index, kind in enumerate(types) if kinds.is_string(kind) or kinds.is_large_string(kind)]
    identity = _id_columns(table.column_names) or text[:1]
    numeric = [
        index
        for index, kind in enumerate(types)
        if (kinds.is_floating(kind) or kinds.is_integer(kind)) and index not in identity
    ]
    if not numeric:
        raise InputError(path, f"no column of numbers among {', '.join(table.column_names)}")
    features = np.column_stack([table.column(index).to_numpy().astype(np.float64) for index in numeric])
    if not identity:
        return _numbered(features)
    return FeatureTable([str(value) for value in table.column(identity[0]).to_pylist()], features)


READERS: dict[str, Callable[[Path], FeatureTable]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
