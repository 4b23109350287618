from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbdgc.report.plot import Plot, Scale
from gbdgc.report.published import known_name, known_source


@given(low=st.floats(-1e6, 1e6), extent=st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_inside(low: float, extent: float) -> None:
    ticks = Scale(low, low + extent).ticks()
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-6 * extent <= tick <= low + extent * (1 + 1e-6) for tick in ticks)


def test_a_logarithmic_axis_has_a_place_for_no_people_and_decades_of_equal_length() -> None:
    scale = Scale(0, 10_000, log=True)
    assert scale.share(0) == 0
    assert scale.share(10_000) == 1
    steps = [scale.share(10 * value) - scale.share(value) for value in (10, 100, 1000)]
    assert steps == pytest.approx([steps[0]] * 3, rel=0.01)
    assert scale.ticks() == [0, 1, 10, 100, 1000, 10_000]


def test_a_scale_without_extent_puts_its_value_in_the_middle() -> None:
    assert Scale(3, 3).share(3) == 0.5


def test_a_figure_is_well_formed_and_escapes_what_it_is_given() -> None:
    plot = Plot('a "title" <b>', Scale(0, 1), Scale(0, 1))
    plot.y_axis("people & things")
    plot.bar((0, 1), (0, 0.5), "d0", "<half>")
    parsed = ET.fromstring(plot.markup())
    assert parsed.get("aria-label") == 'a "title" <b>'
    assert "people & things" in "".join(parsed.itertext())


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("ShanghaiTech/part_A", "SHA"),
        ("data/part_B_final/test_data", "SHB"),
        ("UCF-QNRF_ECCV18", "QNRF"),
        ("nwpu", "NWPU"),
        ("my/shady/street", None),
    ],
)
def test_data_sets_of_the_papers_are_known_by_their_folders(place: str, name: str | None) -> None:
    assert known_name(place) == name


def test_a_source_of_several_is_known_only_if_all_of_it_is() -> None:
    assert known_source(["x/part_B", "x/part_A"]) == "SHA+SHB"
    assert known_source(["x/part_A", "own"]) is None
