"""MATLAB files, version 5 and 7.3, as plain Python: a struct is a dict, a cell array a list, a matrix an array."""

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from pathlib import Path
from struct import unpack_from
from typing import Any
from zlib import decompressobj

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from gbdgc.data.formats.entry import is_file
from gbdgc.errors import InputError, as_input_error

# Of version 5, which is read here: damaged files crash the process in scipy's reader.
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = dict(
    zip((1, 2, 3, 4, 5, 6, 7, 9, 12, 13), ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8", "i8", "u8"), strict=True)
)
"""The types of elements."""
_CELL, _STRUCT, _NUMERIC = 1, 2, range(6, 16)  # the classes of arrays
_MOST_ARRAYS = 200
_MOST_BYTES = 1 << 27  # what no label file comes near: a picture of a hundred thousand heads is 1.6 MB

_LOOKS_LIKE = {
    frozenset({"annPoints", "annBoxes"}): ("NWPU-Crowd", "nwpu"),
    frozenset({"annPoints"}): ("UCF-QNRF", "qnrf"),
    frozenset({"image_info"}): ("ShanghaiTech", "shanghaitech"),
}


def read_variable(path: Path, name: str) -> Any:
    """Return one variable; when it is not there, say what is and which format that looks like."""
    variables = _read(path)
    if name not in variables:
        found = ", ".join(map(repr, sorted(variables))) or "nothing"
        guess = _guess(variables)
        hint = f": this looks like {guess[0]}; read it as {guess[1]}" if guess else ""
        raise InputError(path, f"no {name!r} (found {found}){hint}")
    return variables[name]


def format_of(path: Path) -> str | None:
    """Return the name of the format whose labels a file holds, as far as its variables tell."""
    guess = _guess(_read(path))
    return guess[1] if guess else None


def _guess(variables: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((guess for names, guess in _LOOKS_LIKE.items() if names <= variables.keys()), None)


def _read(path: Path) -> dict[str, Any]:
    if not is_file(path):
        raise InputError(path, "no such label file")
    # Whatever a parser trips over: ValueError, KeyError, StopIteration, struct.error, zlib.error, h5py's own ...
    with as_input_error(Exception, path, "not a .mat file, or a damaged one ({error})", "copy it again"):
        if not h5py.is_hdf5(path):
            return _read_version_5(path)
        with h5py.File(path, "r") as file:
            # Each object takes one; links that double at each step would otherwise be followed 2, 4, 8, ... times.
            allowance = iter(range(_MOST_ARRAYS))
            members = {name: item for name, item in _members(file) if not name.startswith("#")}
            return {name: _plain_hdf5(file, item, allowance) for name, item in members.items()}


def _read_version_5(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    content = path.read_bytes()
    if 0 in content[:4]:  # version 4, which has no arrays of arrays
        return loadmat(str(path))
    if content[126:128] not in (b"IM", b"MI"):
        raise ValueError("no header")
    order = "<" if content[126:128] == b"IM" else ">"
    allowance = iter(range(_MOST_ARRAYS))
    variables = {}
    for kind, data in _elements(memoryview(content)[128:], order):
        if kind == _COMPRESSED:
            inflater = decompressobj()
            inflated = inflater.decompress(data, _MOST_BYTES)
            if not inflater.eof:
                raise ValueError(f"breaks off, or is more than {_MOST_BYTES:,} bytes")
            kind, data = next(_elements(memoryview(inflated), order))
        if kind == _MATRIX:
            name, value = _array(data, order, allowance)
            variables[name] = value
    return variables


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield type and content of each element; a short one has both in its eight bytes."""
    position = 0
    while position < len(data):
        kind, length = unpack_from(f"{order}II", data, position)
        start = position + 8
        if kind >> 16:
            kind, length, start = kind & 0xFFFF, kind >> 16, position + 4
        if start + length > len(data):
            raise ValueError("breaks off")
        yield kind, data[start : start + length]
        position = start + length
        if kind != _COMPRESSED:
            position += -position % 8


def _array(data: memoryview, order: str, allowance: Iterator[int]) -> tuple[str, Any]:
    """Return name and value of a variable, of an item of a cell array or of a field; None for texts and the like."""
    if next(allowance, None) is None:
        raise ValueError(f"more than {_MOST_ARRAYS} arrays, where labels have a handful")
    if not data:
        return "", np.zeros((0, 0))
    parts = _elements(data, order)

    def numbers() -> NDArray[Any]:
        kind, content = next(parts, (0, data))
        if kind not in _NUMBERS:
            raise ValueError("no numbers where they should be")
        return np.frombuffer(content, f"{order}{_NUMBERS[kind]}")

    def arrays(number: int) -> list[Any]:
        found = [_array(content, order, allowance)[1] for kind, content in islice(parts, number) if kind == _MATRIX]
        if len(found) != number:
            raise ValueError("breaks off")
        return found

    kind, shape, name = int(numbers()[0]) & 0xFF, numbers().tolist(), bytes(numbers()).decode("latin-1")
    if kind == _CELL:
        return name, arrays(prod(shape))
    if kind == _STRUCT:
        width, names = int(numbers()[0]), bytes(numbers())
        fields = [names[at : at + width].partition(b"\0")[0].decode("latin-1") for at in range(0, len(names), width)]
        values = arrays(prod(shape) * len(fields))
        rows = (values[at : at + len(fields)] for at in range(0, len(values), len(fields)))
        structs = [dict(zip(fields, row, strict=True)) for row in rows]
        return name, structs[0] if len(structs) == 1 else structs
    if kind not in _NUMERIC:
        return name, None
    stored = numbers()
    return name, stored.astype(stored.dtype.newbyteorder("=")).reshape(shape, order="F")


def _members(group: Any) -> Iterator[tuple[str, Any]]:
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name!r} is a link that may lead to another file")
        yield name, group[name]


def _plain_hdf5(file: Any, item: Any, allowance: Iterator[int]) -> Any:
    if next(allowance, None) is None:
        raise ValueError(f"more than {_MOST_ARRAYS} arrays, where labels have a handful")
    if isinstance(item, h5py.Group):
        return {name: _plain_hdf5(file, member, allowance) for name, member in _members(item)}
    if item.external or item.is_virtual:
        raise ValueError(f"{item.name!r} is stored in another file")
    if max(item.size, prod(item.chunks or ())) * item.dtype.itemsize > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    if item.attrs.get("MATLAB_empty"):
        return np.zeros((0, 2))
    if item.dtype == h5py.ref_dtype:
        return [_plain_hdf5(file, file[reference], allowance) for reference in np.ravel(item[()])]
    # Of the rest, only numbers have the size that they take in the file. HDF5 counts rows first, MATLAB columns first.
    return np.asarray(item[()]).T if item.dtype.kind in "biuf" else None
