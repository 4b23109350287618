"""The NWPU-Crowd submission, as its guideline shows it."""

from pathlib import Path

import pytest

from gbdgc.errors import InputError, UsageError
from gbdgc.evaluation import Row, write_nwpu_submission

ROWS = [Row(str(id), None, id / 7, 10, 10) for id in reversed(range(3610, 5110))]


def test_each_line_is_an_id_and_a_count_with_four_decimals(tmp_path: Path) -> None:
    lines = write_nwpu_submission(ROWS, tmp_path / "out.txt").read_text().splitlines()
    assert len(lines) == 1500
    assert (lines[0], lines[-1]) == ("3610 515.7143", "5109 729.8571")


def test_a_submission_that_the_server_would_refuse_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with pytest.raises(InputError, match=r"picture '3610': the server wants all .*, and 1 of them are missing or can"):
        write_nwpu_submission(ROWS[:-1], path)
    with pytest.raises(UsageError, match="picture '3609': not of the test part of NWPU-Crowd, 3610 to 5109; a sub"):
        write_nwpu_submission([*ROWS, Row("3609", 4, 4.0, 10, 10)], path)
    with pytest.raises(UsageError, match="picture 'IMG_1': not of the test part"):
        write_nwpu_submission([Row("IMG_1", 4, 4.0, 10, 10)], path)
    assert not path.exists()
