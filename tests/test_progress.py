"""Progress bars show what they are given as it is."""

import time

import pytest

from gbdgc.progress import stderr, track


def test_a_name_with_brackets_is_shown_and_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track([1, 2], "drawing [/] [red]street")) == [1, 2]
    assert "drawing [/] [red]street" in capsys.readouterr().err


def test_a_name_with_colons_is_shown_and_not_taken_for_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.print("walk:dog:1.jpg")
    assert capsys.readouterr().err == "walk:dog:1.jpg\n"


def test_a_speed_is_shown_when_there_was_time_to_measure_it(capsys: pytest.CaptureFixture[str]) -> None:
    list(track(iter([1, 2]), "drawing", total=2))
    assert "images/s" not in capsys.readouterr().err
    for _ in track(range(4), "drawing"):
        time.sleep(0.2)
    assert "images/s" in capsys.readouterr().err
