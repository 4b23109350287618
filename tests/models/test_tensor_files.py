"""Files of tensors from strangers: whatever is nested in them, reading ends."""

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from gbdgc.errors import InputError
from gbdgc.models.tensor_files import read_tensors

ENTRY = '"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'


def safetensors_file(path: Path, metadata: str) -> Path:
    header = f'{{{ENTRY}, "__metadata__": {metadata}}}'.encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return path


def test_metadata_may_be_null(tmp_path: Path) -> None:
    assert list(read_tensors(safetensors_file(tmp_path / "a.safetensors", "null"))) == ["x"]


@pytest.mark.parametrize("metadata", ["[]", '"x"', '{"a": null}', '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"])
def test_metadata_that_is_no_table_of_texts_is_refused(tmp_path: Path, metadata: str) -> None:
    with pytest.raises(InputError, match=r"a\.safetensors: not a readable file of tensors"):
        read_tensors(safetensors_file(tmp_path / "a.safetensors", metadata))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["deep", "within itself", "doubled", "doubled and empty"])
def test_groups_of_any_depth_are_refused(tmp_path: Path, kind: str) -> None:
    group: dict[str, object] = {} if kind == "doubled and empty" else {"x": np.ones(1)}
    if kind == "within itself":
        group["again"] = group
    for _ in range(30):
        group = {"a": group} if kind == "deep" else {"a": group, "b": group}
    if kind == "deep":
        for _ in range(300):
            group = {"a": group}
    (tmp_path / "a.ckpt").write_bytes(pickle.dumps(group))
    with pytest.raises(InputError, match=r"a\.ckpt: more than 100,000 tensors, or groups more than 32 deep"):
        read_tensors(tmp_path / "a.ckpt")


def test_groups_are_joined_by_dots(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(pickle.dumps({"a": {"b": np.ones(2)}, "c": np.zeros(1)}))
    assert {name: len(tensor) for name, tensor in read_tensors(tmp_path / "a.ckpt").items()} == {"a.b": 2, "c": 1}
