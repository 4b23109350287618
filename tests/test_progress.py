"""Progress bars show what they are given as it is."""

import pytest

from gbdgc.progress import stderr, track


def test_a_name_with_brackets_is_shown_and_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track([1, 2], "drawing [/] [red]street")) == [1, 2]
    assert "drawing [/] [red]street" in capsys.readouterr().err


def test_a_name_with_colons_is_shown_and_not_taken_for_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.print("walk:dog:1.jpg")
    assert capsys.readouterr().err == "walk:dog:1.jpg\n"
