import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


@pytest.fixture
def table(tmp_path, draw):
    """Write points.csv beside a.jpg and images/b.jpg, and return its path."""

    def write(text):
        draw(tmp_path / "a.jpg")
        draw(tmp_path / "images/b.jpg")
        (tmp_path / "points.csv").write_text(text)
        return tmp_path / "points.csv"

    return write


@pytest.mark.parametrize(
    "text",
    [
        "image,x,y\na.jpg,1.5,2\na.jpg,3,4\nb.jpg,,\n",
        "a.jpg,1.5,2\na.jpg,3,4\nb.jpg,,\n",
        "Y;X;filename\n2;1.5;a.jpg\n4;3;a.jpg\n;;b.jpg\n",
        "\ufeffimage\tx\ty\r\na.jpg\t1.5\t2\r\na.jpg\t3\t4\r\nb.jpg\t\t\r\n",
    ],
)
def test_rows_are_heads_and_an_empty_row_is_a_picture_without_people(table, text):
    file = table(text)
    for path in (file, file.parent):
        data = load_dataset(path)
        assert (data.format, data.ids) == ("csv", ["a.jpg", "b.jpg"])
        assert data[0].points.tolist() == [[1.5, 2], [3, 4]]
        assert data[1].count == 0


def test_ids_and_splits_are_read_where_there_are_columns_for_them(table):
    data = load_dataset(table("image,x,y,id,split\na.jpg,1,2,first,train\nb.jpg,1,2,second,\n"))
    assert [(sample.id, sample.split) for sample in data] == [("first", "train"), ("second", None)]


def test_all_bad_rows_are_named_with_their_lines(table):
    with pytest.raises(InputError) as caught:
        load_dataset(table("image,x,y\na.jpg,1,two\nb.jpg,nan,2\nb.jpg\n../up.jpg,1,2\nc.jpg,1,2\n"))
    message = str(caught.value)
    assert "points.csv, line 2: x '1', y 'two' are not two numbers" in message
    assert "b.jpg: 1 of 1 points are NaN or infinite" in message
    assert "points.csv, line 4: 1 columns, too few" in message
    assert "'../up.jpg' is not beneath" in message
    assert "c.jpg: no such file" in message


def test_other_columns_are_not_taken_for_points(table):
    file = table("picture,left,top\na.jpg,1,2\n")
    with pytest.raises(InputError, match=r"no columns image, x, y \(its first row is picture, left, top\)"):
        load_dataset(file, format="csv")
    with pytest.raises(InputError, match=r"points\.csv may be labels of a CSV of points, but the layout is not"):
        load_dataset(file.parent)
