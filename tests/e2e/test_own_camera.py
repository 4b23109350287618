"""A new user's walk in a real browser: label a folder of one's own, count, draw zones, masks and the ground."""

import json
import re
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, expect

from gbdgc import checkpoint, load_dataset
from in_process import run_gbdgc

PATIENCE = 60_000

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> Path:
    (tmp_path / "gate").mkdir()
    for number, pixels in enumerate(pictures[:10], 1):
        Image.fromarray(pixels).save(tmp_path / "gate" / f"{number}.png")
    return tmp_path / "gate"


def is_saved(page: Page) -> None:
    expect(page.locator("#status")).to_have_text(re.compile("Saved"), timeout=PATIENCE)


def is_proposed(page: Page, name: str) -> int:
    """Wait for the heads that the model proposes, and return their number."""
    expect(page.locator("#detail")).to_contain_text(name)
    expect(page.locator("#status")).to_contain_text("Proposed by the model", timeout=PATIENCE)
    return heads(page)


def heads(page: Page) -> int:
    return int(page.locator("#count").inner_text())


class OnPicture:
    """Places of the picture, in its pixels, as places on the screen; right while nothing is zoomed."""

    def __init__(self, page: Page) -> None:
        box = page.locator("#view").bounding_box()
        assert box is not None
        self.box, self.scale = box, min(box["width"] / 160, box["height"] / 128)

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        left = self.box["x"] + (self.box["width"] - 160 * self.scale) / 2
        top = self.box["y"] + (self.box["height"] - 128 * self.scale) / 2
        return left + x * self.scale, top + y * self.scale


def free_place(taken: NDArray[np.float32]) -> tuple[float, float]:
    """Return a place far from all heads."""
    grid = np.stack(np.meshgrid(np.arange(20, 140, 4.0), np.arange(20, 108, 4.0)), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(grid[:, None] - taken[None], axis=2).min(axis=1)
    x, y = grid[distance.argmax()]
    return float(x), float(y)


def test_a_walk_from_pictures_to_people_per_square_metre(
    visit: Callable[..., Page], serving: Callable[..., Any], folder: Path, model: Path
) -> None:
    with serving(command=("label", str(folder))) as labelling:
        page = visit(labelling.url)
        proposed = is_proposed(page, "1.png")
        expect(page.locator("#model-count")).to_have_text(re.compile(r"The model counts \d"))
        assert not (folder / "labels.csv").exists(), "what nobody has looked at is not a label"

        seen = httpx.get(f"{labelling.url}/v1/seen/1.png", timeout=60).json()["points"]
        place, on_picture = free_place(np.array(seen, dtype=np.float32)), OnPicture(page)
        page.mouse.click(*on_picture(*place))
        expect(page.locator("#count")).to_have_text(str(proposed + 1))
        is_saved(page)
        assert load_dataset(folder).by_id("1.png").points[-1] == pytest.approx(place, abs=0.5)
        page.mouse.move(*on_picture(*place))
        page.mouse.down()
        page.mouse.move(*on_picture(place[0] + 9, place[1] + 6), steps=4)
        page.mouse.up()
        is_saved(page)
        moved = place[0] + 9, place[1] + 6
        assert load_dataset(folder).by_id("1.png").points[-1] == pytest.approx(moved, abs=0.5)
        page.mouse.click(*on_picture(*moved))
        expect(page.locator("#count")).to_have_text(str(proposed))
        for key, count in (("u", proposed + 1), ("Control+z", proposed + 1), ("Control+z", proposed)):
            page.keyboard.press(key)
            expect(page.locator("#count")).to_have_text(str(count))
        expect(page.locator("#status")).to_contain_text("Proposed")
        page.keyboard.press("Control+y")
        is_saved(page)

        page.keyboard.press("ArrowRight")
        is_proposed(page, "2.png")
        page.click("#nobody")
        expect(page.locator("#status")).to_have_text("Nobody here. Saved.", timeout=PATIENCE)
        page.click("#next")
        for number in range(3, 11):
            is_proposed(page, f"{number}.png")
            page.keyboard.press("Enter")
        is_saved(page)
        expect(page.locator("#progress")).to_have_text("10 of 10 labelled")
        expect(page.locator("#advice")).to_contain_text("Enough")
        expect(page.locator("#command")).to_have_text(f"gbdgc tune {folder}")
        page.select_option("#order", "fit")
        scores = page.locator("#pictures b[title^=fit]")
        expect(scores).to_have_count(9, timeout=PATIENCE)  # all but the picture with nobody in it
        fits = [float(each.get_attribute("title").removeprefix("fit ")) for each in scores.all()]
        assert fits == sorted(fits)
    dataset = load_dataset(folder)
    assert len(dataset.labelled) == 10
    assert dataset.by_id("2.png").count == 0

    tensors, info = checkpoint.read(model)
    head = {name: 3 * tensor for name, tensor in tensors.items() if name.startswith("network/head.")}
    checkpoint.write(folder.parent / "elsewhere.safetensors", tensors | head, info)
    tuned = run_gbdgc("tune", folder, "--start", "elsewhere.safetensors", "--steps", 2, folder=folder.parent)
    assert tuned.returncode == 0, tuned.stderr
    written = re.search(r"next: gbdgc count SOURCE --model (\S+)", tuned.stdout)
    assert written is not None, tuned.stdout
    counts = [
        json.loads(run_gbdgc("count", "gate/3.png", "--model", each, "--format", "json", folder=folder.parent).stdout)
        for each in ("elsewhere.safetensors", written[1])
    ]
    labelled = dataset.by_id("3.png").count
    before, after = (abs(record["count"] - labelled) for record in counts)
    assert after < 0.5 * before, "a model that counts three times too many elsewhere is right here once it is tuned"

    with serving() as counting:
        page = visit(counting.url)
        picture = (folder / "1.png").read_bytes()
        page.set_input_files("#file", {"name": "1.png", "mimeType": "image/png", "buffer": picture})
        expect(page.locator("#layer")).to_be_visible(timeout=PATIENCE)
        page.get_by_label("A dot for each head").check()
        count = int(page.locator("#count").inner_text())
        assert page.locator("#dots path").first.get_attribute("d").count("M") == count
        page.click("#rectangle")
        page.get_by_label("Name of the zone").fill("gate")
        page.click("#rectangle")
        page.get_by_label("What Zone 2 is for").select_option("ground")
        page.get_by_label("1–2").fill("4")
        page.get_by_label("1–3").fill("4.7")
        expect(page.locator(".metres .help")).to_contain_text("No ground yet")  # a diagonal is no second side
        assert "/m²" not in page.locator("#zones").inner_text().split("≤")[0]
        page.get_by_label("1–3").fill("")
        page.get_by_label("2–3").fill("2.5")
        expect(page.locator(".metres .help")).to_contain_text("Distances between its corners")
        expect(page.locator("#zones output").first).to_have_text(re.compile(r"/m²$"))
        expect(page.locator(".levels span")).to_have_text(["≤ 2/m²", "≤ 4/m²", "≤ 5/m²", "> 5/m²"])
        page.click("#rectangle")
        page.get_by_label("What Zone 3 is for").select_option("mask")
        with page.expect_download() as saved:
            page.click("#save-zones")
        (folder.parent / "zones.json").write_bytes(Path(saved.value.path()).read_bytes())
        with page.expect_download() as saved:
            page.click("#save-csv")
        head, row = Path(saved.value.path()).read_text().splitlines()
    assert head == "picture,people,gate,gate per m²"
    options = ("--weights", model, "--zones", "zones.json", "--points", "--no-overlays", "--format", "json")
    record = json.loads(run_gbdgc("count", "gate/1.png", *options, folder=folder.parent).stdout)
    on_page = [float(value) for value in row.split(",")[1:]]
    in_command = [record["count"], record["zones"]["gate"], record["per_m2"]["gate"]]
    assert on_page == pytest.approx(in_command, rel=0.05, abs=0.05)
    lines = (folder.parent / record["points"]).read_text().splitlines()
    assert len(lines) - 1 == round(record["count"])


def test_two_windows_and_a_service_that_stops_lose_nothing(
    visit: Callable[..., Page], serving: Callable[..., Any], folder: Path
) -> None:
    with serving(command=("label", str(folder))) as first:
        one, other = visit(first.url), visit(first.url)
        for page in (one, other):
            is_proposed(page, "1.png")
        one.click("#nobody")
        is_saved(one)
        other.click("#accept")
        expect(other.locator("#error")).to_contain_text(
            "1.png: its labels have been changed elsewhere", timeout=PATIENCE
        )
        assert load_dataset(folder).by_id("1.png").count == 0
        one.click("#next")
        number = is_proposed(one, "2.png")
        port = first.url.rpartition(":")[2]
        colours = [colour_of_status(one)]
    one.mouse.click(*OnPicture(one)(2, 2))
    expect(one.locator("#status")).to_contain_text("Not saved yet", timeout=PATIENCE)
    expect(one.locator("#error")).to_be_visible(timeout=PATIENCE)
    colours.append(colour_of_status(one))
    assert colours[1] == one.locator("#error").evaluate("box => getComputedStyle(box).color")
    shown = heads(one)
    assert abs(shown - number) == 1
    assert load_dataset(folder).ids == ["1.png"]
    other.click("#next")
    expect(other.locator("#error")).to_contain_text("does not answer", timeout=PATIENCE)
    with serving(command=("label", str(folder)), port=port):
        is_saved(one)
        is_proposed(other, "3.png")  # opened without being asked again
        expect(other.locator("#error")).to_be_hidden()
        assert load_dataset(folder).by_id("2.png").count == shown
        colours.append(colour_of_status(one))
    assert len(set(colours)) == 3, "a proposal, what could not be saved, and what is saved look different"


def colour_of_status(page: Page) -> str:
    return str(page.locator("#status").evaluate("status => getComputedStyle(status).color"))


def test_it_zooms_by_wheel_and_keys_and_follows_fingers_on_a_phone(
    visit: Callable[..., Page], serving: Callable[..., Any], folder: Path
) -> None:
    with serving(command=("label", str(folder))) as labelling:
        page = visit(labelling.url)
        number = is_proposed(page, "1.png")
        plain = page.locator("#view").screenshot()
        page.mouse.move(*OnPicture(page)(80, 64))
        page.mouse.wheel(0, -600)
        zoomed = becomes(page, lambda view: difference(plain, view) > 5)
        page.mouse.down()
        page.mouse.move(*OnPicture(page)(100, 80), steps=3)
        page.mouse.up()
        expect(page.locator("#count")).to_have_text(str(number))  # moving the picture labels nobody
        becomes(page, lambda view: difference(zoomed, view) > 2)
        page.keyboard.press("0")
        becomes(page, lambda view: difference(plain, view) < 1)

        phone = visit(labelling.url, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
        number = is_proposed(phone, "1.png")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        small = phone.locator("button:visible").evaluate_all(
            "buttons => buttons.filter(button => button.getBoundingClientRect().height < 40).length"
        )
        assert small == 0
        box = phone.locator("#view").bounding_box()
        centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = phone.locator("#view").screenshot()
        session = phone.context.new_cdp_session(phone)
        for kind, spread in (("touchStart", 20), ("touchMove", 40), ("touchMove", 90), ("touchEnd", None)):
            fingers = [] if spread is None else [(-spread, 0), (spread, 1)]
            points = [{"x": centre[0] + x, "y": centre[1], "id": id} for x, id in fingers]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        becomes(phone, lambda view: difference(before, view) > 2)
        expect(phone.locator("#count")).to_have_text(str(number))
        phone.touchscreen.tap(*centre)
        is_saved(phone)
        assert abs(heads(phone) - number) == 1


def becomes(page: Page, condition: Callable[[bytes], bool]) -> bytes:
    """Wait until what is drawn fulfils a condition, and return it."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not condition(view := page.locator("#view").screenshot()):
        assert time.monotonic() < deadline, "the picture did not change as it should"
        page.wait_for_timeout(50)
    return view


def difference(one: bytes, other: bytes) -> float:
    """The mean difference of two pictures' pixels."""
    first, second = (np.asarray(Image.open(BytesIO(each)).convert("L"), dtype=float) for each in (one, other))
    return float(np.abs(first - second).mean())
