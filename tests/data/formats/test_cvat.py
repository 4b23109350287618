import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError

HEADER = '<?xml version="1.0" encoding="utf-8"?>\n'


@pytest.fixture
def cvat(tmp_path, draw):
    """Write annotations.xml with one picture, images/a.jpg, and return its folder."""

    def write(shapes="", attributes='name="a.jpg" width="64" height="48"', header=HEADER):
        draw(tmp_path / "images/a.jpg")
        content = (
            f"{header}<annotations><version>1.1</version><image id='0' {attributes}>{shapes}</image></annotations>"
        )
        (tmp_path / "annotations.xml").write_text(content)
        return tmp_path

    return write


def test_every_point_and_every_box_is_a_person(cvat):
    root = cvat(
        '<points label="head" source="manual" points="1.5,2.25;30,40"/>'
        '<box label="head" xtl="10" ytl="15" xbr="16" ybr="45"/>'
        '<box label="car" xtl="0" ytl="0" xbr="5" ybr="5"/><tag label="crowded"/>'
    )
    data = load_dataset(root)
    assert (data.format, data.ids) == ("cvat", ["a.jpg"])
    assert data[0].points.tolist() == [[1.5, 2.25], [30, 40], [13, 17]]
    assert load_dataset(root / "annotations.xml", point="centre")[0].points.tolist()[2] == [13, 30]


def test_a_picture_without_shapes_is_empty(cvat):
    assert load_dataset(cvat())[0].count == 0


def test_a_subset_is_the_split(cvat):
    data = load_dataset(cvat(attributes='name="a.jpg" subset="Train" width="64" height="48"'))
    assert data[0].split == "train"


@pytest.mark.parametrize(
    ("shapes", "complaint"),
    [
        ('<points label="head" points="1,2;x,3"/>', "image 'a.jpg': the coordinates of a points shape are not numbers"),
        ('<points label="head" points="1;2"/>', "the coordinates of a points shape are not numbers"),
        ('<points label="head" points="nan,2"/>', "a.jpg: 1 of 1 points are NaN or infinite"),
        ('<box label="head" xtl="1"/>', "the coordinates of a box shape are not numbers"),
        ('<polygon label="head" points="1,2;3,4;5,6"/>', "a polygon marks a person; only points and boxes are read"),
    ],
)
def test_shapes_that_cannot_be_counted_are_named(cvat, shapes, complaint):
    with pytest.raises(InputError) as caught:
        load_dataset(cvat(shapes))
    assert complaint in str(caught.value)


def test_an_export_for_video_is_told_apart(cvat):
    root = cvat()
    (root / "annotations.xml").write_text("<annotations><track id='0' label='head'/></annotations>")
    with pytest.raises(InputError, match=r"an export for video; export it as 'CVAT for images 1\.1'"):
        load_dataset(root)


def test_entities_that_would_blow_up_or_read_files_are_refused(cvat):
    billion = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>'
    thief = '<!DOCTYPE a [<!ENTITY c SYSTEM "file:///etc/passwd">]>'
    for header in (billion, thief):
        with pytest.raises(InputError, match=r"annotations\.xml: not XML that can be read safely \(EntitiesForbidden"):
            load_dataset(cvat("<tag label='&c;'/>", header=HEADER + header))


def test_a_name_cannot_lead_out_of_the_folder(cvat):
    with pytest.raises(InputError, match=r"'\.\./\.\./etc/passwd' is not beneath"):
        load_dataset(cvat(attributes='name="../../etc/passwd" width="64" height="48"'))
