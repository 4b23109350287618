import json

import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


def keypoint(x, y, label="head"):
    value = {"x": x, "y": y, "width": 0.5, "keypointlabels": [label]}
    return {"type": "keypointlabels", "original_width": 64, "original_height": 48, "image_rotation": 0, "value": value}


def rectangle(x, y, width, height):
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": 0, "rectanglelabels": ["head"]}
    return {"type": "rectanglelabels", "original_width": 64, "original_height": 48, "value": value}


@pytest.fixture
def export(tmp_path, draw):
    """Write an export with one task and return its path; the picture is images/street.jpg."""

    def write(*results, image="/data/upload/3/1a2b3c4d-street.jpg", **annotation):
        draw(tmp_path / "images/street.jpg")
        annotations = [{"id": i, "result": result} | annotation for i, result in enumerate(results)]
        task = {"id": 12, "annotations": annotations, "data": {"image": image}}
        (tmp_path / "project.json").write_text(json.dumps([task]))
        return tmp_path / "project.json"

    return write


def test_percent_become_pixels(export):
    data = load_dataset(export([keypoint(50, 25), rectangle(25, 50, 50, 25)]))
    assert data.format == "label_studio"
    assert data[0].points.tolist() == [[32, 12], [32, pytest.approx(24.8)]]


@pytest.mark.parametrize(
    "image",
    [
        "/data/upload/3/1a2b3c4d-street.jpg",
        "/data/local-files/?d=images/street.jpg",
        "/data/local-files/?d=cameras%2Fstreet.jpg",
        "s3://bucket/cameras/street.jpg",
        "https://example.org/cameras/street.jpg?size=full",
        "street.jpg",
    ],
)
def test_the_picture_is_found_wherever_it_was_served_from(export, tmp_path, image):
    (sample,) = load_dataset(export([keypoint(1, 1)], image=image))
    assert sample.image == tmp_path / "images/street.jpg"


def test_of_several_annotations_the_ground_truth_counts_or_the_last_and_never_a_skipped_one(export):
    one, two = [keypoint(1, 1)], [keypoint(1, 1), keypoint(2, 2)]
    file = export(one, two)
    assert load_dataset(file)[0].count == 2
    task = json.loads(file.read_text())
    task[0]["annotations"][0]["ground_truth"] = True
    file.write_text(json.dumps(task))
    assert load_dataset(file)[0].count == 1
    assert load_dataset(export(two, was_cancelled=True))[0].points is None


def test_a_task_that_nobody_annotated_has_no_labels_and_an_empty_one_no_people(export):
    assert load_dataset(export())[0].points is None
    assert load_dataset(export([]))[0].count == 0


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        (keypoint("ten", 1), "task 12: a keypoint lacks a number"),
        (keypoint(float("nan"), 1), "street.jpg: 1 of 1 points are NaN or infinite"),
        (
            {"type": "keypointlabels", "value": {"x": 1, "y": 2, "keypointlabels": ["head"]}},
            "lacks a number ('original_width')",
        ),
        ({"type": "polygonlabels", "value": {"points": [], "polygonlabels": ["head"]}}, "a polygon marks a person"),
    ],
)
def test_shapes_that_cannot_be_counted_are_named(export, shape, complaint):
    with pytest.raises(InputError) as caught:
        load_dataset(export([shape]))
    assert complaint in str(caught.value)


def test_a_picture_that_is_not_there_and_names_that_lead_out_are_named(export):
    with pytest.raises(InputError, match=r"task 12: no picture 'other\.jpg' in .* put the pictures there"):
        load_dataset(export(image="/data/upload/3/other.jpg"))
    with pytest.raises(InputError, match=r"'\.\./\.\./secret\.jpg' is not beneath"):
        load_dataset(export(image="/data/local-files/?d=../../secret.jpg"))


def test_the_short_export_is_told_apart(tmp_path):
    (tmp_path / "short.json").write_text(json.dumps([{"image": "street.jpg", "id": 1, "label": []}]))
    with pytest.raises(InputError, match="export the project as JSON, not as JSON-MIN"):
        load_dataset(tmp_path / "short.json", format="label-studio")
