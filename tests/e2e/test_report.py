"""The report of a real run, in a real browser."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect

from gbdgc.config import load_config
from gbdgc.data import Dataset, Sample
from gbdgc.evaluation import evaluate
from gbdgc.report import write_report
from gbdgc.training import train

SETTINGS = {
    "name": "squares",
    "augmentation.crop": 64,
    "data.validation": 0.25,
    "data.workers": 1,
    "model.pretrained": "false",
    "model.dim": 16,
    "model.codewords": 32,
    "discovery.n_domains": 2,
    "discovery.image_size": 64,
    "train.epochs": 2,
    "train.batch_size": 4,
}


def draw_squares(folder: Path, number: int, colour: tuple[int, int, int], seed: int) -> list[Sample]:
    """Draw pictures of one kind, each with more heads than the one before."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    samples = []
    for index in range(number):
        points = random.uniform(4, 92, (4 + seed + 3 * index, 2)).astype(np.float32)
        image = Image.new("RGB", (112, 96), colour)
        draw = ImageDraw.Draw(image)
        for x, y in points.tolist():
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(230, 180, 150))
        path = folder / f"{seed}_{index}.png"
        image.save(path)
        samples.append(Sample(path.stem, path, 112, 96, points, "train"))
    return samples


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train on two kinds of squares, count two data sets, and report."""
    folder = tmp_path_factory.mktemp("squares")
    dark = draw_squares(folder / "source", 8, (40, 40, 60), seed=0)
    light = draw_squares(folder / "source", 8, (200, 190, 180), seed=1)
    source = Dataset(dark + light).save(folder / "source" / "source.jsonl")
    unseen = Dataset(draw_squares(folder / "unseen", 6, (30, 120, 60), seed=2)).save(folder / "unseen" / "unseen.jsonl")
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    run = train(load_config("demo", [*settings, f"data.source=[{source}]"]), folder=folder / "run")
    evaluate(run.folder, {"seen": source, "unseen": unseen}, split="all", out=run.folder / "eval")
    return write_report(run.folder)


@pytest.fixture
def open_report(browser: Browser, report: Path) -> Iterator[Callable[..., Page]]:
    """Open the report; when the test is over nothing must have gone wrong in it, nor been asked of the network."""
    pages: list[Page] = []
    complaints: list[str] = []
    requests: list[str] = []

    def open_page(**options: Any) -> Page:
        page = browser.new_page(**options)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()] * len(pages)


def test_every_figure_is_there(open_report: Callable[..., Page]) -> None:
    page = open_report()
    expected = {
        "agreement": 1,
        "by-density": 1,
        "by-domain": 1,
        "map": 1,
        "domain": 2,
        "strip": 4,
        "worst": 1,
        "qualitative": 1,
        "curve": 7,
    }
    figures = {name: page.locator(f"[data-figure={name}]").count() for name in expected}
    assert figures == expected
    expect(page.locator("[data-figure=agreement] .dot")).to_have_count(22)
    expect(page.locator("[data-figure=map] .dot")).to_have_count(12)
    expect(page.locator("[data-figure=worst] .panel")).to_have_count(12)
    expect(page.locator("[data-figure=qualitative] .panel")).to_have_count(6)


def test_every_picture_shows_and_has_words_for_who_cannot_see_it(open_report: Callable[..., Page]) -> None:
    page = open_report()
    assert page.locator("img").count() > 50
    assert page.evaluate("[...document.images].filter(image => image.src && image.naturalWidth === 0).length") == 0
    assert page.locator("img[alt='']:visible").count() == 0
    assert page.locator("svg[role]:not([aria-label])").count() == 0
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_a_click_on_a_dot_shows_its_picture(open_report: Callable[..., Page]) -> None:
    page = open_report()
    dot = page.get_by_role("button", name="2_3 of unseen: 15 people")
    # With a click at a place, as a hand does it, and not handed to the element.
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    detail = page.locator("#detail")
    expect(detail.locator("h3")).to_have_text("2_3")
    expect(detail.locator("dl")).to_contain_text("truth15")
    expect(detail.get_by_role("img", name="Picture 2_3 of unseen")).to_be_visible()
    # It is that very picture: green, as the unseen ones are.
    red, green, blue = page.evaluate(
        """() => {
            const image = document.querySelector("#detail img"), canvas = document.createElement("canvas");
            canvas.width = canvas.height = 1;
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
    )
    assert green > max(red, blue)


def test_the_keyboard_goes_from_dot_to_dot(open_report: Callable[..., Page]) -> None:
    page = open_report()
    page.locator("[data-figure=agreement] .dot[tabindex='0']").focus()
    page.keyboard.press("Home")
    truth = page.locator("#detail dd").first
    expect(truth).to_have_text("4")
    page.keyboard.press("End")
    expect(truth).to_have_text("26")
    page.keyboard.press("ArrowLeft")
    expect(truth).to_have_text("25")
    page.keyboard.press("ArrowLeft")
    expect(truth).to_have_text("23")
    assert page.locator("[data-figure=agreement] .dot[tabindex='0']").count() == 1


def test_one_data_set_can_be_looked_at_alone(open_report: Callable[..., Page]) -> None:
    page = open_report()
    page.get_by_role("button", name="unseen", exact=True).click()
    expect(page.locator("[data-figure=agreement] .dot:visible")).to_have_count(6)
    expect(page.locator("#detail dl")).to_contain_text("unseen")
    page.get_by_role("button", name="all", exact=True).click()
    expect(page.locator("[data-figure=agreement] .dot:visible")).to_have_count(22)


def test_the_slider_goes_through_the_division_into_balls(open_report: Callable[..., Page]) -> None:
    page = open_report()
    slider = page.get_by_label("Depth of the division")
    slider.fill("0")
    expect(page.locator(".ball:visible")).to_have_count(1)
    expect(page.locator("output")).to_have_text("0 deep, balls: 1")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_have_text("1 deep, balls: 2")


def test_a_domain_has_one_colour_everywhere(open_report: Callable[..., Page]) -> None:
    page = open_report()
    colour = "element => getComputedStyle(element).color"
    for name in ("d0", "d1"):
        seen = {page.locator(f"{place} .{name}").first.evaluate(colour) for place in (".legend", "[data-figure=map]")}
        seen.add(page.locator(f".domain-cards .{name}").first.evaluate(colour))
        seen.add(page.locator(f"[data-figure=strip] .{name}").first.evaluate(colour))
        assert len(seen) == 1


def test_it_is_dark_where_the_reader_wants_it_dark_and_light_on_paper(open_report: Callable[..., Page]) -> None:
    light, dark = open_report(color_scheme="light"), open_report(color_scheme="dark")
    assert brightness(light, "background-color") > 0.9 > 0.3 > brightness(light, "color")
    assert brightness(dark, "background-color") < 0.1 < 0.7 < brightness(dark, "color")
    dark.emulate_media(media="print", color_scheme="dark")
    assert brightness(dark, "background-color") > 0.9 > 0.3 > brightness(dark, "color")
    expect(dark.locator("nav")).to_be_hidden()


def brightness(page: Page, name: str) -> float:
    value = page.evaluate(f"getComputedStyle(document.body).getPropertyValue('{name}')")
    return sum(float(part) for part in value.removeprefix("rgb(").removesuffix(")").split(",")) / 3 / 255


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_it_fits_every_screen(open_report: Callable[..., Page], width: int) -> None:
    page = open_report(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_fits_on_paper(open_report: Callable[..., Page]) -> None:
    page = open_report(viewport={"width": 690, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 690
    assert page.pdf(format="A4").startswith(b"%PDF")
