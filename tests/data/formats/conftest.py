"""What the readers' tests draw with: real little pictures, and .mat files of both kinds."""

from collections.abc import Callable, Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

Draw = Callable[..., Path]


@pytest.fixture
def draw() -> Draw:
    """Write a picture of 64 x 48 pixels, or another size, with its folders."""

    def write(path: Path, size: tuple[int, int] = (64, 48)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, "grey").save(path)
        return path

    return write


@pytest.fixture
def write_mat() -> Draw:
    """Write variables into a .mat file of version 5, with its folders."""

    def write(path: Path, **variables: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        savemat(path, variables)
        return path

    return write


@pytest.fixture
def shanghaitech_label(write_mat: Draw) -> Draw:
    """Write GT_*.mat as the data set has it: a cell with a struct with location and number."""

    def write(path: Path, points: Sequence[Sequence[float]]) -> Path:
        location = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = {"location": location, "number": np.array([[len(location)]])}
        return write_mat(path, image_info=cell)

    return write


@pytest.fixture
def hdf5_label() -> Draw:
    """Write GT_*.mat as MATLAB's -v7.3 does: references into #refs#, columns first."""

    def write(path: Path, points: Sequence[Sequence[float]]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        location = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        with h5py.File(path, "w", userblock_size=512) as file:
            struct = file.create_group("#refs#/a")
            if len(location):
                struct.create_dataset("location", data=location.T)
            else:
                empty = struct.create_dataset("location", data=np.array([0, 2], dtype=np.uint64))
                empty.attrs["MATLAB_empty"] = np.uint8(1)
            struct.create_dataset("number", data=np.array([[float(len(location))]]))
            cell = file.create_dataset("image_info", (1, 1), dtype=h5py.ref_dtype)
            cell[0, 0] = struct.ref
        with path.open("r+b") as raw:
            raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
        return path

    return write
