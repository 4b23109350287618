"""MATLAB files, version 5 and 7.3, as plain Python: a struct is a dict, a cell array a list, a matrix an array."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from scipy.io import loadmat

from gbdgc.data.formats.entry import is_file
from gbdgc.errors import InputError

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
        raise InputError(f"{path}: no {name!r} (found {found}){hint}")
    return variables[name]


def format_of(path: Path) -> str | None:
    """Return the name of the format whose labels a file holds, as far as its variables tell."""
    guess = _guess(_read(path))
    return guess[1] if guess else None


def _guess(variables: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((guess for names, guess in _LOOKS_LIKE.items() if names <= variables.keys()), None)


def _read(path: Path) -> dict[str, Any]:
    if not is_file(path):
        raise InputError(f"{path}: no such label file")
    try:
        return _read_hdf5(path) if h5py.is_hdf5(path) else _read_version_5(path)
    except Exception as error:
        # The two libraries raise whatever their parsers trip over: ValueError, TypeError, KeyError, zlib.error ...
        raise InputError(f"{path}: not a .mat file, or a damaged one ({error}); copy it again") from error


def _read_version_5(path: Path) -> dict[str, Any]:
    return {name: _plain(value) for name, value in loadmat(str(path)).items() if not name.startswith("__")}


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
        return {name: _plain_hdf5(file, item) for name, item in file.items() if not name.startswith("#")}


def _plain_hdf5(file: Any, item: Any) -> Any:
    if isinstance(item, h5py.Group):
        return {name: _plain_hdf5(file, member) for name, member in item.items()}
    if item.attrs.get("MATLAB_empty"):
        return np.zeros((0, 2))
    values = item[()]
    if item.dtype == h5py.ref_dtype:
        return [_plain_hdf5(file, file[reference]) for reference in np.ravel(values)]
    # HDF5 counts rows first, MATLAB columns first.
    return np.asarray(values).T
