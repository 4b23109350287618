"""The labelling service: labels saved with every change, and nobody's work lost."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter, load_dataset
from gbdgc.data.label_file import UNLABELLED, LabelFile, LabelsChanged, tag_of
from gbdgc.errors import InputError
from gbdgc.evaluation import label_score
from gbdgc.server.labelling import create_label_app
from in_process import run_gbdgc

PICTURE = "/v1/heads/a.png"


@pytest.fixture
def folder(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> Path:
    """Three pictures; one in a folder of its own, one on its side by EXIF."""
    for name, pixels in zip(("a.png", "sub/b c.png"), pictures, strict=False):
        (tmp_path / "gate" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "gate" / name)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pictures[2]).save(tmp_path / "gate" / "turned.webp", exif=exif)
    return tmp_path / "gate"


@pytest.fixture
def client(folder: Path, counter: Counter) -> Iterator[httpx.Client]:
    from fastapi.testclient import TestClient

    with TestClient(create_label_app(LabelFile(folder), counter)) as client:
        yield client


def put(client: httpx.Client, points: object, tag: str, address: str = PICTURE) -> httpx.Response:
    return client.put(address, content=json.dumps({"points": points}), headers={"If-Match": tag})


def test_what_is_clicked_is_at_once_in_a_file_that_load_dataset_reads(client: httpx.Client, folder: Path) -> None:
    names = [picture["name"] for picture in client.get("/v1/folder").json()["pictures"]]
    assert names == ["a.png", "sub/b c.png", "turned.webp"]
    assert client.get(PICTURE).json() == {"points": None, "tag": UNLABELLED}
    saved = put(client, [[1.5, 2], [30, 40.1]], UNLABELLED)
    assert saved.status_code == 200
    nobody = put(client, [], UNLABELLED, "/v1/heads/sub/b%20c.png")
    assert nobody.json()["points"] == []
    dataset = load_dataset(folder)
    assert dataset.format == "csv"
    assert {sample.id: sample.count for sample in dataset} == {"a.png": 2, "sub/b c.png": 0}
    assert dataset.by_id("a.png").points == pytest.approx(np.array([[1.5, 2], [30, 40.1]]))
    assert [picture["heads"] for picture in client.get("/v1/folder").json()["pictures"]] == [2, 0, None]
    forgotten = put(client, None, saved.json()["tag"])
    assert forgotten.json() == {"points": None, "tag": UNLABELLED}
    assert load_dataset(folder).ids == ["sub/b c.png"]
    put(client, None, nobody.json()["tag"], "/v1/heads/sub/b%20c.png")
    assert load_dataset(folder, "folder").labelled.ids == []
    assert not (folder / "labels.csv").exists()


def test_the_second_of_two_windows_is_told_and_destroys_nothing(client: httpx.Client, folder: Path) -> None:
    first = put(client, [[1, 2]], UNLABELLED).json()
    late = put(client, [[9, 9]], UNLABELLED)
    assert late.status_code == 409
    assert late.json()["error"]["code"] == "changed"
    assert client.get(PICTURE).json() == first
    assert put(client, [[1, 2], [3, 4]], first["tag"]).status_code == 200, "the first window goes on"


def test_what_another_program_writes_is_seen_before_anything_is_saved(client: httpx.Client, folder: Path) -> None:
    tag = put(client, [[1, 2]], UNLABELLED).json()["tag"]
    file = folder / "labels.csv"
    file.write_text(file.read_text() + "turned.webp,5,6,turned.webp,train\n")
    put(client, [[1, 2], [3, 4]], tag)
    dataset = load_dataset(folder)
    assert {sample.id: (sample.count, sample.split) for sample in dataset} == {
        "a.png": (2, None),
        "turned.webp": (1, "train"),
    }
    file.write_text("image,x,y\na.png,broken,1\n")
    answer = put(client, [], tag)
    assert answer.status_code == 400
    assert "not two numbers" in answer.json()["error"]["message"]
    assert "broken" in file.read_text(), "labels that cannot be read are not written over"


def test_a_service_that_was_stopped_continues_where_it_was(folder: Path) -> None:
    tag = tag_of(LabelFile(folder).save("a.png", [[1.25, 2.1]], UNLABELLED))
    again = LabelFile(folder)
    assert tag_of(again.heads()["a.png"]) == tag, "a window that was open all the while can go on saving"
    again.save("a.png", [[1.25, 2.1], [7, 8]], tag)
    with pytest.raises(LabelsChanged):
        again.save("a.png", [], tag)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named_and_the_labels_stay(client: httpx.Client, folder: Path) -> None:
    tag = put(client, [[1, 2]], UNLABELLED).json()["tag"]
    folder.chmod(0o500)
    try:
        assert put(client, [], tag).status_code == 400
    finally:
        folder.chmod(0o700)
    assert client.get(PICTURE).json() == {"points": [[1, 2]], "tag": tag}


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[1, 2, 3]], "pairs of numbers"),
        ([1, 2], "pairs of numbers"),
        ([["a", 1]], "pairs of numbers"),
        ([[1], [2, 3]], "pairs of numbers"),
        ("everybody", "pairs of numbers"),
        ({"x": 1}, "pairs of numbers"),
        ([[161, 2]], "outside the picture, which is 160 x 128"),
        ([[-1, 2]], "outside"),
        ([[float("nan"), 2]], "outside"),
        ([[1, 1]] * 100_001, "over the limit"),
    ],
)
def test_bad_heads_are_refused(client: httpx.Client, folder: Path, points: object, words: str) -> None:
    answer = put(client, points, UNLABELLED)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert not (folder / "labels.csv").exists()


def test_bad_bodies_and_names_outside_the_folder_are_refused(client: httpx.Client, folder: Path) -> None:
    (folder.parent / "secret.png").write_bytes((folder / "a.png").read_bytes())
    for body in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000):
        assert client.put(PICTURE, content=body, headers={"If-Match": UNLABELLED}).status_code == 400
    assert client.put(PICTURE, content=b" " * 5_000_000).status_code == 413
    for kind in ("image", "seen", "heads"):
        for name in ("..%2Fsecret.png", "%2Fetc%2Fpasswd", "labels.csv", "sub", "a.png%00"):
            answer = client.get(f"/v1/{kind}/{name}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] in {"no_such_picture", "not_found"}


def test_pictures_whose_names_no_csv_can_hold_are_left_out_and_the_others_can_be_labelled(
    folder: Path, counter: Counter
) -> None:
    from fastapi.testclient import TestClient

    content = (folder / "a.png").read_bytes()
    odd = [" b.png", "c\nd.png", "e\rf.png", "\udcff.png"]
    fine = ["=cmd.png", "'=x.png", 'g,"h.png', "-1.png"]
    for name in odd + fine:
        (folder / name).write_bytes(content)
    labels = LabelFile(folder)
    assert len(labels.problems) == len(odd)
    assert all("rename it" in problem and problem.isprintable() for problem in labels.problems)
    with TestClient(create_label_app(labels, counter)) as client:
        named = {picture["name"] for picture in client.get("/v1/folder").json()["pictures"]}
    assert named == {"a.png", "sub/b c.png", "turned.webp", *fine}
    for name in fine:
        labels.save(name, [[1, 2]], UNLABELLED)
    assert {name for name, heads in LabelFile(folder).heads().items() if heads is not None} == set(fine)
    assert "\n=" not in (folder / "labels.csv").read_text(), "no spreadsheet runs a name"


def test_a_picture_that_is_gone_is_not_labelled(client: httpx.Client, folder: Path) -> None:
    (folder / "a.png").unlink()
    answer = put(client, [[1, 2]], UNLABELLED)
    assert answer.status_code == 400
    assert "a.png: no such file" in answer.json()["error"]["message"]
    assert not (folder / "labels.csv").exists()


def test_the_model_proposes_heads_and_scores_labels(client: httpx.Client, counter: Counter, folder: Path) -> None:
    result = counter(folder / "a.png")
    seen = client.get("/v1/seen/a.png").json()
    assert seen["count"] == pytest.approx(result.count)
    assert np.array(seen["points"]) == pytest.approx(result.points[:, :2], abs=0.06)
    assert seen["score"] is None
    heads = [[20.0, 30.0], [90.0, 100.0]]
    put(client, heads, UNLABELLED)
    expected = label_score(result, np.array(heads, dtype=np.float32))
    assert client.get("/v1/seen/a.png").json()["score"] == pytest.approx(expected)


def test_a_picture_is_sent_upright_with_the_common_headers(client: httpx.Client) -> None:
    (turned,) = [p for p in client.get("/v1/folder").json()["pictures"] if p["name"] == "turned.webp"]
    answer = client.get("/v1/image/turned.webp")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    from io import BytesIO

    assert Image.open(BytesIO(answer.content)).size == (turned["width"], turned["height"]) == (128, 160)


def test_only_the_holder_of_the_token_gets_in_and_only_by_the_own_name(folder: Path, counter: Counter) -> None:
    from fastapi.testclient import TestClient

    app = create_label_app(LabelFile(folder), counter, token="sesame", hosts=["127.0.0.1"])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for address in ("/v1/folder", "/v1/image/a.png", "/v1/seen/a.png", PICTURE):
            assert client.get(address).status_code == 401
        assert put(client, [], UNLABELLED).status_code == 401
        assert client.get("/v1/folder", headers={"Authorization": "Bearer sesame"}).status_code == 200
        assert client.get("/v1/folder", headers={"Host": "elsewhere.example"}).status_code == 400


def test_the_own_csv_of_a_folder_is_continued_and_other_labels_are_left_alone(folder: Path) -> None:
    (folder / "points.csv").write_text("image,x,y,split\na.png,3,4,test\n")
    labels = LabelFile(folder)
    assert labels.path.name == "points.csv"
    labels.save("a.png", [[5, 6]], tag_of(labels.heads()["a.png"]))
    assert load_dataset(folder).by_id("a.png").split == "test"
    (folder / "more.csv").write_text("image,x,y\na.png,3,4\n")
    with pytest.raises(InputError, match=r"one CSV of points is wanted here, found more.csv, points.csv"):
        LabelFile(folder)
    (folder / "more.csv").unlink()
    load_dataset(folder).save(folder / "manifest.jsonl")
    with pytest.raises(InputError, match=r"its labels are .* already"):
        LabelFile(folder)


def test_a_second_process_is_kept_out(folder: Path, model: Path) -> None:
    from gbdgc.files import claim

    with claim(folder):
        answer = run_gbdgc("label", folder, "--weights", model, "--port", "0", folder=folder.parent)
    assert answer.returncode == 1
    assert "another process is at work there" in answer.stderr


def test_a_folder_without_pictures_is_named(tmp_path: Path) -> None:
    answer = run_gbdgc("label", tmp_path, folder=tmp_path)
    assert answer.returncode == 1
    assert "no picture found" in answer.stderr
