"""A stranger's data set reads no picture outside its own folder, and no label file keeps a reader busy for long."""

import json
import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


@pytest.fixture
def root(tmp_path: Path, draw) -> Path:
    """The folder of a data set, with a picture beside it that is none of its business."""
    draw(tmp_path / "secret.jpg")
    draw(tmp_path / "data" / "images" / "a.jpg")
    return tmp_path / "data"


def coco(root: Path, name: str, file: str = "labels.json") -> Path:
    (root / file).write_text(json.dumps({"images": [{"id": 1, "file_name": name}], "annotations": []}))
    return root


def cvat(root: Path, name: str, subset: str = "") -> Path:
    image = f'<image id="0" name="{name}" subset="{subset}" width="64" height="48"/>'
    (root / "annotations.xml").write_text(f"<annotations>{image}</annotations>")
    return root


def csv(root: Path, name: str) -> Path:
    (root / "points.csv").write_text(f"image,x,y\n{name},1,2\n")
    return root


def label_studio(root: Path, name: str) -> Path:
    (root / "tasks.json").write_text(json.dumps([{"id": 1, "data": {"image": name}, "annotations": []}]))
    return root


def manifest(root: Path, name: str) -> Path:
    (root / "manifest.jsonl").write_text(json.dumps({"id": "a", "image": name}) + "\n")
    return root


def nwpu(root: Path, name: str) -> Path:
    (root / "mats").mkdir()
    (root / "test.txt").write_text(f"{name.removesuffix('.jpg')}\n")
    return root


@pytest.mark.parametrize("write", [coco, cvat, csv, label_studio, manifest, nwpu])
@pytest.mark.parametrize("name", ["../secret.jpg", "../../secret.jpg", "x/../../secret.jpg", "..\\secret.jpg", "{}"])
def test_a_label_file_names_no_picture_outside_its_folder(root, write, name):
    with pytest.raises(InputError, match=r"is not beneath|no picture"):
        load_dataset(write(root, name.format(root.parent / "secret.jpg")))


@pytest.mark.parametrize("subset", ["../..", "..\\..", "../../../data/..", "{}"])
def test_neither_does_a_cvat_subset(root, subset):
    with pytest.raises(InputError, match=r"is not beneath|no such file"):
        load_dataset(cvat(root, "secret.jpg", subset.format(root.parent)))


def test_neither_does_the_name_of_a_coco_file(root):
    with pytest.raises(InputError, match=r"'\.\.' is not beneath"):
        load_dataset(coco(root, "secret.jpg", file="labels_...json"))


def test_a_manifest_that_is_named_itself_may_lead_to_pictures_anywhere(root):
    folder = manifest(root, "../secret.jpg")
    with pytest.raises(InputError, match=r"line 1: .* to read pictures from elsewhere, name .*manifest\.jsonl itself"):
        load_dataset(folder)
    moved = load_dataset(folder / "manifest.jsonl").save(root / "deeper" / "other.jsonl")
    assert load_dataset(moved)[0].image.samefile(root.parent / "secret.jpg")


@pytest.fixture
def labels(tmp_path: Path, draw) -> Path:
    """Where the labels of the only picture of a UCF_CC_50 data set belong."""
    draw(tmp_path / "1.jpg")
    return tmp_path / "1_ann.mat"


def matlab_file(path: Path) -> h5py.File:
    return h5py.File(path, "w", userblock_size=512)


@pytest.mark.parametrize("kind", ["link to another file", "soft link", "values in another file", "virtual"])
def test_a_mat_file_takes_its_points_from_no_other_file(labels, tmp_path, kind):
    with h5py.File(tmp_path / "secret.h5", "w") as other:
        other["annPoints"] = np.ones((2, 3))
    (tmp_path / "secret.bin").write_bytes(bytes(48))
    with matlab_file(labels) as file:
        if kind == "link to another file":
            file["annPoints"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/annPoints")
        elif kind == "soft link":
            file["annPoints"] = h5py.SoftLink("/annPoints")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((2, 3), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "annPoints", (2, 3))
            file.create_virtual_dataset("annPoints", layout)
        else:
            file.create_dataset("annPoints", (2, 3), "f8", external=[(str(tmp_path / "secret.bin"), 0, 48)])
    with pytest.raises(InputError, match="another file"):
        load_dataset(tmp_path, "ucf_cc_50")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["groups", "references", "circle"])
def test_links_that_double_at_each_step_are_not_followed(labels, kind):
    with matlab_file(labels) as file:
        file["annPoints"] = np.ones((2, 3))
        if kind == "circle":
            circle = file.create_group("z")
            circle["again"] = circle
        item = file["annPoints"]
        for level in range(40):
            if kind == "groups":
                group = file.create_group(f"g{level}")
                group["a"] = group["b"] = item
                item = group
            elif kind == "references":
                item = file.create_dataset(f"r{level}", data=np.array([item.ref, item.ref], dtype=h5py.ref_dtype))
    with pytest.raises(InputError, match=r"1_ann\.mat: not a \.mat file, or a damaged one \(.*more than 200 arrays"):
        load_dataset(labels.parent, "ucf_cc_50")


@pytest.mark.timeout(20)
def test_a_matrix_of_nothing_takes_no_memory(labels):
    with matlab_file(labels) as file:
        file.create_dataset("annPoints", (2, 10**12), "f8", chunks=(2, 100))
    with pytest.raises(InputError, match="more than 134,217,728 bytes"):
        load_dataset(labels.parent, "ucf_cc_50")


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def cells(depth: int) -> bytes:
    """A version 5 file with a cell in a cell in a cell ..."""
    content = element(9, struct.pack("<dd", 1, 2))
    for level in range(depth + 1):
        flags, size = struct.pack("<II", 1 if level else 6, 0), struct.pack("<ii", 1, 1 if level else 2)
        name = b"annPoints" if level == depth else b""
        content = element(14, element(6, flags) + element(5, size) + element(1, name) + content)
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + content


def test_cells_within_cells_do_not_end_the_process(labels):
    labels.write_bytes(cells(20_000))
    program = (
        "from gbdgc.data import load_dataset\n"
        f"try: load_dataset({str(labels.parent)!r}, 'ucf_cc_50')\n"
        "except ValueError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "more than 200 arrays" in answer.stdout, answer
    labels.write_bytes(cells(3))
    with pytest.raises(InputError, match="points must be rows"):
        load_dataset(labels.parent, "ucf_cc_50")


@pytest.mark.timeout(60)
def test_a_small_file_that_inflates_to_a_large_one_is_refused(labels):
    savemat(labels, {"annPoints": np.ones((3, 2)), "more": np.zeros(1 << 27, np.uint8)}, do_compression=True)
    assert labels.stat().st_size < 200_000
    with pytest.raises(InputError, match="more than 134,217,728 bytes"):
        load_dataset(labels.parent, "ucf_cc_50")


PLACES = {
    "labels.json": [
        '{"images": %s, "annotations": []}',
        '{"images": [{"id": 1, "file_name": %s}], "annotations": []}',
        '{"images": [{"id": 1, "file_name": "a.jpg", "width": %s}], "annotations": []}',
        '{"images": [{"id": 1, "file_name": "a.jpg", "gbdgc": {"id": "a", "tags": {"x": %s}}}], "annotations": []}',
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "keypoints": %s}]}',
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "bbox": %s}]}',
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [], "categories": [{"id": 1, "name": %s}]}',
    ],
    "tasks.json": [
        '[{"data": %s, "annotations": []}]',
        '[{"id": %s, "data": {"image": "a.jpg"}, "annotations": [{"result": 3}]}]',
        '[{"data": {"image": "a.jpg"}, "annotations": [{"result": [{"type": %s}]}]}]',
        '[{"data": {"image": "a.jpg"}, "annotations": [{"result": [{"type": "keypoint", "value": {"x": %s}}]}]}]',
    ],
    "manifest.jsonl": [
        "%s",
        '{"id": %s, "image": "images/a.jpg"}',
        '{"id": "a", "image": "images/a.jpg", "points": %s}',
        '{"id": "a", "image": "images/a.jpg", "tags": {"x": %s}}',
    ],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("depth", [70, 300, 800, 900, 960, 975, 100_000])
@pytest.mark.parametrize(("file", "text"), [(file, text) for file, texts in PLACES.items() for text in texts])
def test_json_of_any_depth_is_read_or_refused(root, file, text, depth):
    format = {"labels.json": "coco", "tasks.json": "label_studio", "manifest.jsonl": "manifest"}[file]
    for nest in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        (root / file).write_text(text % nest)
        with suppress(InputError):
            load_dataset(root, format, skip_bad=True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "nest",
    [
        "<a>" * 800 + "</a>" * 800,
        "<a>" * 300_000 + "</a>" * 300_000,
        '<image name="images/a.jpg" width="64" height="48">' + "<points>" * 800 + "</points>" * 800 + "</image>",
    ],
)
def test_xml_of_any_depth_is_read_or_refused(root, nest):
    (root / "annotations.xml").write_text(f"<annotations>{nest}</annotations>")
    with suppress(InputError):
        assert len(load_dataset(root, "cvat")) == 1


@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["labels.json", "points.csv", "annotations.xml", "manifest.jsonl", "1_ann.mat"])
def test_a_pipe_in_the_place_of_a_label_file_is_not_waited_for(root, name):
    os.mkfifo(root / name)
    for format in ("auto", "coco", "csv", "cvat", "manifest", "ucf_cc_50"):
        with suppress(InputError):
            load_dataset(root, format)
