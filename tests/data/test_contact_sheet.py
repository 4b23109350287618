import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from gbdgc.data import Sample
from gbdgc.data.contact_sheet import Group, Section, write_contact_sheet
from gbdgc.data.statistics import Bin


@pytest.fixture
def page(tmp_path: Path, save_scene) -> str:
    good = Sample("good", save_scene(tmp_path / "good.png", 1), 160, 120, np.array([[16, 12], [np.nan, 1]], np.float32))
    evil = Sample("<script>alert(1)</script>", save_scene(tmp_path / "evil.png", 2), 160, 120)
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    bad = Sample("bad", tmp_path / "bad.jpg", 160, 120)
    sections = [Section("Pairs & more", "why", [Group([good, evil], "alike", [(8, 999)]), Group([bad])], "and 3 more")]
    path = write_contact_sheet(
        tmp_path / "new" / "sheet.html", "A <title>", {"heads": "7"}, sections, bars=[Bin(1, 9, 4), Bin(10, 10, 2)]
    )
    return path.read_text()


def test_the_page_asks_for_nothing_outside_itself(page):
    assert not re.search(r"https?://|url\(|@import|<script|<link|src=\"(?!data:)", page)
    assert "default-src 'none'" in page


def test_names_cannot_become_markup(page):
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "A &lt;title&gt;" in page


def test_pictures_and_their_heads_are_on_the_page(page):
    # 160 x 120 is shown at 267 x 200, so the head at (16, 12) comes to (26.7, 20); the one that is NaN is left out.
    assert page.count("data:image/jpeg;base64,") == 2
    assert page.count('d="M26.7 20.0h0"') == 2
    assert "does not decode" in page
    assert "and 3 more" in page


def test_a_mark_outside_the_picture_shows_on_its_edge(page):
    assert 'class="mark" d="M13.3 200.0h0"' in page


def test_every_element_that_opens_closes(page):
    unclosed: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag not in {"meta", "input", "img"}:
                unclosed.append(tag)

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            assert unclosed.pop() == tag

    Balance().feed(page)
    assert unclosed == []
