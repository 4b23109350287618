"""MATLAB files, version 5 and 7.3, as plain Python: a struct is a dict, a cell array a list, a matrix an array."""

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, Literal
from zlib import decompressobj

import h5py
import numpy as np
from scipy.io import loadmat

from gbdgc.data.formats.entry import is_file
from gbdgc.errors import InputError, as_input_error

_MATRIX, _COMPRESSED = 14, 15
_MOST_ARRAYS = 200
_MOST_BYTES = 1 << 27
"""What no label file comes near: a picture of a hundred thousand heads is 1.6 MB."""

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
        raise InputError(str(path), f"no {name!r} (found {found}){hint}")
    return variables[name]


def format_of(path: Path) -> str | None:
    """Return the name of the format whose labels a file holds, as far as its variables tell."""
    guess = _guess(_read(path))
    return guess[1] if guess else None


def _guess(variables: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((guess for names, guess in _LOOKS_LIKE.items() if names <= variables.keys()), None)


def _read(path: Path) -> dict[str, Any]:
    if not is_file(path):
        raise InputError(str(path), "no such label file")
    # The two libraries raise whatever their parsers trip over: ValueError, TypeError, KeyError, zlib.error ...
    with as_input_error(Exception, path, "not a .mat file, or a damaged one ({error})", "copy it again"):
        return _read_hdf5(path) if h5py.is_hdf5(path) else _read_version_5(path)


def _read_version_5(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    if 0 not in content[:4]:  # else it is of version 4, which has no arrays of arrays
        _refuse_endless(content)
    return {name: _plain(value) for name, value in loadmat(str(path)).items() if not name.startswith("__")}


def _refuse_endless(content: bytes) -> None:
    """Refuse a version 5 file that scipy would follow until the stack or the memory is used up.

    An array within an array begins with the tag of a matrix, so counting tags bounds how deep they can be nested.
    """
    order: Literal["little", "big"] = "little" if content[126:128] == b"IM" else "big"
    tag = _MATRIX.to_bytes(4, order)
    arrays, size, position = content.count(tag), len(content), 128
    while position + 8 <= len(content) and arrays <= _MOST_ARRAYS and size <= _MOST_BYTES:
        kind, length = (int.from_bytes(content[position + i : position + i + 4], order) for i in (0, 4))
        position += 8
        if kind == _COMPRESSED:
            inflated = decompressobj().decompress(content[position : position + length], _MOST_BYTES)
            arrays, size = arrays + inflated.count(tag), size + len(inflated)
        position += length
    if arrays > _MOST_ARRAYS:
        raise ValueError(f"more than {_MOST_ARRAYS} arrays, where labels have a handful")
    if size > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.names:
        structs = [{name: _plain(item[name]) for name in value.dtype.names} for item in value.flat]
        return structs[0] if len(structs) == 1 else structs
    if value.dtype == object:
        return [_plain(item) for item in value.flat]
    return value


def _read_hdf5(path: Path) -> dict[str, Any]:
    with h5py.File(path, "r") as file:
        # Each object takes one; links that double at each step would otherwise be followed 2, 4, 8, ... times.
        allowance = iter(range(_MOST_ARRAYS))
        return {name: _plain_hdf5(file, item, allowance) for name, item in _members(file) if not name.startswith("#")}


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
