import json

import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError

GOOD = {"id": "a", "image": "a.png", "width": 64, "height": 48, "points": [[1, 2]]}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: not valid JSON (Expecting property name"),
        ("[]", "line 2: not a JSON object"),
        ('{"image": "a.png"}', "line 2: no 'id'"),
        ('{"id": 3, "image": "a.png"}', "line 2: 'id' must be a text, not '3'"),
        ('{"id": "b"}', "line 2: no 'image'"),
        ('{"id": "b", "image": "a.png", "width": "wide", "height": 48}', "line 2: 'width' must be a whole number"),
        ('{"id": "b", "image": "a.png", "width": [], "height": 48}', "line 2: 'width' must be a whole number"),
        ('{"id": "b", "image": "a.png", "split": 1}', "line 2: 'split' must be a text"),
        ('{"id": "b", "image": "a.png", "tags": ["x"]}', "line 2: 'tags' must be an object"),
        ('{"id": "b", "image": "a.png", "points": [[1, 2], [3]]}', "b: its points have not all the same number"),
        ('{"id": "b", "image": "a.png", "points": [[1, 2, 3]]}', "b: points must be rows of (x, y)"),
        ('{"id": "b", "image": "a.png", "points": [["1", 2]]}', "b: a coordinate is not a number"),
        ('{"id": "b", "image": "a.png", "points": [[1, NaN]]}', "b: 1 of 1 points are NaN or infinite"),
        ('{"id": "b", "image": "a.png", "points": [[1, 1e99]]}', "b: 1 of 1 points are NaN or infinite"),
        ('{"id": "b", "image": "a.png", "points": 5}', "line 2: 'points' must be a list, not '5'"),
        ('{"id": "b", "image": "b.png"}', "b.png: no such file"),
        ('{"id": "a", "image": "a.png"}', "a.png: its id 'a' is already that of"),
        ('{"id": "b", "image": "a.png", "width": 65, "height": 48}', "its labels are for 65 x 48"),
    ],
)
def test_a_bad_line_is_named_and_can_be_left_out(tmp_path, draw, line, complaint):
    draw(tmp_path / "a.png")
    (tmp_path / "manifest.jsonl").write_text(f"{json.dumps(GOOD)}\n{line}\n")
    with pytest.raises(InputError) as caught:
        load_dataset(tmp_path)
    assert complaint in str(caught.value)
    kept = load_dataset(tmp_path, skip_bad=True)
    assert kept.ids == ["a"]
    assert len(kept.problems) == 1
    assert complaint in kept.problems[0]


def test_text_in_another_encoding_is_named(tmp_path):
    (tmp_path / "manifest.jsonl").write_bytes(b'{"id": "\xe9"}')
    with pytest.raises(InputError, match=r"manifest\.jsonl: not text in UTF-8 \(byte 8\); save it again as UTF-8"):
        load_dataset(tmp_path)
