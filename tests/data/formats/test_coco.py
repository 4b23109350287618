import json

import pytest

from gbdgc.data import load_dataset
from gbdgc.data.formats import READERS
from gbdgc.errors import InputError

KEYPOINTS = ["nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder"]
PERSON = {"id": 1, "name": "person", "keypoints": KEYPOINTS}


@pytest.fixture
def coco(tmp_path, draw):
    """Write a COCO file with one picture, a.jpg, and return its path."""

    def write(annotations, categories=({"id": 1, "name": "person"},), name="labels.json", **image):
        draw(tmp_path / "a.jpg")
        record = {"id": 7, "file_name": "a.jpg", "width": 64, "height": 48} | image
        numbered = [{"id": i, "image_id": 7, "category_id": 1} | each for i, each in enumerate(annotations)]
        content = {"images": [record], "annotations": numbered, "categories": list(categories)}
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    return write


def points_of(path, **options):
    (sample,) = load_dataset(path, **options)
    return sample.points.tolist()


def test_a_box_is_counted_at_its_head_or_at_its_centre(coco):
    file = coco([{"bbox": [10, 15, 6, 30]}])
    assert points_of(file) == [[13, 17]]
    assert points_of(file, point="centre") == [[13, 30]]


def test_keypoints_give_the_mean_of_what_is_visible_of_the_face(coco):
    visible = [10, 10, 2, 20, 12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 50, 40, 2]
    assert points_of(coco([{"keypoints": visible, "bbox": [0, 0, 60, 45]}], [PERSON])) == [[15, 11]]


def test_a_person_with_a_hidden_face_is_counted_by_the_box(coco):
    hidden = [0, 0, 0] * 5 + [50, 40, 2]
    assert points_of(coco([{"keypoints": hidden, "bbox": [10, 15, 6, 30]}], [PERSON])) == [[13, 17]]


def test_a_keypoint_called_head_goes_before_the_face(coco):
    category = {"id": 1, "name": "person", "keypoints": ["nose", "head"]}
    assert points_of(coco([{"keypoints": [1, 2, 2, 3, 4, 2]}], [category])) == [[3, 4]]


def test_only_people_are_counted_and_each_once(coco):
    categories = [{"id": 1, "name": "Head"}, {"id": 2, "name": "person"}, {"id": 3, "name": "car"}]
    boxes = [{"category_id": id, "bbox": [id, 0, 0, 0]} for id in (1, 2, 3)]
    assert points_of(coco(boxes, categories)) == [[1, 0]]
    assert points_of(coco(boxes, categories[1:])) == [[2, 0]]
    with pytest.raises(InputError, match=r"which of its labels are people\? It has 'car', 'dog'"):
        load_dataset(coco(boxes, [{"id": 1, "name": "dog"}, {"id": 3, "name": "car"}]))


def test_a_picture_without_annotations_is_empty_and_one_of_a_file_without_any_is_unlabelled(coco, tmp_path):
    (empty,) = load_dataset(coco([]))
    assert empty.count == 0
    (tmp_path / "labels.json").write_text(json.dumps({"images": [{"id": 7, "file_name": "a.jpg"}]}))
    (unlabelled,) = load_dataset(tmp_path / "labels.json")
    assert unlabelled.points is None


def test_the_official_layout_is_read_with_its_splits(tmp_path, draw):
    for split, number in (("train2017", 1), ("val2017", 2)):
        draw(tmp_path / split / f"{number}.jpg")
        for kind in ("instances", "person_keypoints", "captions"):
            content = {
                "info": {},
                "images": [{"id": number, "file_name": f"{number}.jpg", "width": 64, "height": 48}],
                "annotations": [{"id": 1, "image_id": number, "category_id": 1, "bbox": [1, 2, 0, 0]}],
                "categories": [PERSON],
            }
            (tmp_path / "annotations").mkdir(exist_ok=True)
            (tmp_path / "annotations" / f"{kind}_{split}.json").write_text(json.dumps(content))
    data = load_dataset(tmp_path)
    assert data.format == "coco"
    assert [(sample.id, sample.split) for sample in data] == [("1.jpg", "train"), ("2.jpg", "val")]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\secret.jpg", "C:\\secret.jpg", "a\0.jpg"])
def test_a_name_cannot_lead_out_of_the_folder(coco, name):
    with pytest.raises(InputError, match="is not beneath"):
        load_dataset(coco([], file_name=name))


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        ({"bbox": [1, 2, float("nan"), 4]}, "a.jpg: 1 of 1 points are NaN or infinite"),
        ({"bbox": [1, 2, "3", 4]}, "a.jpg: a coordinate is not a number"),
        ({"bbox": [1, 2, None, 4]}, "a.jpg: a coordinate is not a number"),
        ({"bbox": [1, 2, 3]}, "annotation 0: neither a visible keypoint of the head nor a box"),
        ({"bbox": [1, 2, 3, 4], "iscrowd": 1}, "annotation 0: a crowd region"),
        ({"keypoints": [1, 2]}, "annotation 0: its keypoints are not triples"),
        ({"keypoints": ["a", 2, 2]}, "annotation 0: its keypoints are not triples"),
        ({"bbox": [0, 0, 1, 1], "image_id": 8}, "an annotation for image 8, which is not listed"),
    ],
)
def test_labels_that_make_no_sense_are_named(coco, annotation, complaint):
    with pytest.raises(InputError) as caught:
        load_dataset(coco([annotation]))
    assert complaint in str(caught.value)


def test_points_outside_the_picture_are_kept_for_the_check_to_find(coco):
    assert points_of(coco([{"bbox": [-5, 500, 0, 0]}])) == [[-5, 500]]


def test_labels_for_another_size_are_refused(coco):
    with pytest.raises(InputError, match=r"a\.jpg: 64 x 48 pixels, but its labels are for 128 x 96; use the picture"):
        load_dataset(coco([], width=128, height=96))
    with pytest.raises(InputError, match=r"labels are for 48 x 64; the labels ignore its EXIF rotation"):
        load_dataset(coco([], width=48, height=64))


@pytest.mark.parametrize("image", [5, {"id": 1}, {"file_name": "a.jpg"}, {"id": 1, "file_name": 3}])
def test_an_image_that_is_not_described_is_named(tmp_path, image):
    (tmp_path / "labels.json").write_text(json.dumps({"images": [image], "annotations": []}))
    with pytest.raises(InputError, match=r"labels\.json: "):
        load_dataset(tmp_path / "labels.json")


def test_json_that_breaks_off_is_named(tmp_path):
    (tmp_path / "labels.json").write_text('{"images": [{"id":')
    with pytest.raises(InputError, match=r"labels\.json: not valid JSON"):
        load_dataset(tmp_path / "labels.json")


def test_two_images_of_one_id_are_refused_as_nobody_knows_whose_the_heads_are(coco, draw, tmp_path):
    file = coco([{"bbox": [1, 2, 3, 4]}])
    content = json.loads(file.read_text())
    draw(tmp_path / "b.jpg")
    content["images"].append({"id": 7, "file_name": "b.jpg"})
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"labels.json: several images have the id 7; whose are its annotations\?"):
        load_dataset(file)


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("annotations/instances_val2017.json", "val"),
        ("annotations/person_keypoints_train2017.json", "train"),
        ("test/labels.json", "test"),
        ("validation.json", "val"),
        ("training-set.json", "train"),
        ("latest.json", None),
        ("festival/evaluation.json", None),
    ],
)
def test_a_split_is_told_by_a_word_and_not_by_letters_within_one(tmp_path, path, split):
    file = tmp_path / "data" / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"images": [{"id": 1, "file_name": "a.jpg"}]}))
    assert [entry.split for entry in READERS["coco"].read(file, [])] == [split]
