"""The page in a real browser, against a real server: what a visitor does, and what they then see."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, expect

from gbdgc.evaluation import Row, save_calibrated

PATIENCE = 60_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(serving: Callable[..., Any]) -> Iterator[Any]:
    with serving("--max-upload", "5") as running:
        yield running


@pytest.fixture
def visit(visit: Callable[..., Page], service: Any) -> Callable[..., Page]:
    """Open the page of the service unless another is given."""
    return lambda url=service.url, **options: visit(url, **options)


@pytest.fixture(scope="module")
def street(pictures: list[NDArray[np.uint8]]) -> dict[str, Any]:
    file = BytesIO()
    Image.fromarray(pictures[0]).save(file, "PNG")
    return {"name": "street.png", "mimeType": "image/png", "buffer": file.getvalue()}


def upload(page: Any, file: Any) -> None:
    page.set_input_files("#file", file)


def seen_count(page: Any) -> int:
    expect(page.locator("#count")).to_have_text(re.compile(r"^[\d,]+$"), timeout=PATIENCE)
    expect(page.locator("#layer")).to_be_visible(timeout=PATIENCE)
    return int(page.locator("#count").inner_text().replace(",", ""))


def zone_counts(page: Any) -> list[float]:
    return [float(text) for text in page.locator("#zones output").all_inner_texts()]


def test_an_uploaded_picture_gets_its_number_overlay_and_trust(visit: Any, service: Any, street: Any) -> None:
    page = visit()
    expect(page.locator("#model")).to_have_text("model tiny, torch")
    upload(page, street)
    answer = httpx.post(f"{service.url}/v1/count", files={"image": street["buffer"]}, timeout=60).json()
    assert seen_count(page) == round(answer["count"])
    expect(page.locator("#detail")).to_contain_text("street.png · 160 × 128")
    expect(page.locator("#interval")).to_be_hidden()  # this model is not calibrated
    expect(page.locator("#trust")).to_be_visible(visible=bool(answer["warnings"]))
    expect(page.locator("#square")).to_have_text("people per 10 × 10 pixels")


def test_the_interval_stands_below_the_number_and_beside_each_zone(
    visit: Any, serving: Callable[..., Any], model: Path, street: Any, tmp_path: Path
) -> None:
    rows = [Row(str(n), 40 + 3 * n, 50.0 + 2 * n, 160, 128, novelty=n / 30) for n in range(30)]
    save_calibrated(model, tmp_path / "calibrated.safetensors", rows, None)
    with serving(weights=tmp_path / "calibrated.safetensors") as service:
        page = visit(service.url)
        upload(page, street)
        zone = {"relative": True, "zones": {"middle": [[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]]}}
        asked = {"image": street["buffer"]}, {"zones": json.dumps(zone)}
        answer = httpx.post(f"{service.url}/v1/count", files=asked[0], data=asked[1], timeout=60).json()
        seen_count(page)
        low, high = (f"{round(end):,}" for end in answer["interval"])
        expect(page.locator("#interval")).to_have_text(f"{low}–{high} in nine of ten cases")
        page.click("#rectangle")
        low, high = (f"{round(end):,}" for end in answer["zone_intervals"]["middle"])
        expect(page.locator("#zones output")).to_have_text(re.compile(rf"^[\d.]+ {low}–{high}$"))
        with page.expect_download() as download:
            page.click("#save-csv")
        heading, row = csv.reader(Path(download.value.path()).read_text().splitlines())
        assert heading == ["picture", "people", "low", "high", "Zone 1", "Zone 1 low", "Zone 1 high"]
        ends = [*answer["interval"], *answer["zone_intervals"]["middle"]]
        assert [float(row[index]) for index in (2, 3, 5, 6)] == pytest.approx(ends, abs=0.5)


def test_the_slider_sets_the_opacity_also_by_keyboard(visit: Any, street: Any) -> None:
    page = visit()
    upload(page, street)
    seen_count(page)
    slider, layer = page.locator("#opacity"), page.locator("#layer")
    slider.fill("20")
    expect(layer).to_have_css("opacity", "0.2")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(layer).to_have_css("opacity", "0.21")
    page.keyboard.press("Home")
    expect(layer).to_have_css("opacity", "0")


def test_zones_drawn_by_pointer_agree_with_the_service(visit: Any, service: Any) -> None:
    page = visit()
    page.click("[data-sample=plaza-day]")
    seen_count(page)
    box = page.locator("#stage").bounding_box()

    def at(x: float, y: float) -> tuple[float, float]:
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    page.click("#draw")
    page.mouse.move(*at(0.1, 0.2))
    page.mouse.down()
    page.mouse.move(*at(0.3, 0.5))
    page.mouse.move(*at(0.6, 0.9))
    page.mouse.up()
    page.click("#draw")
    triangle = [(0.7, 0.1), (0.95, 0.5), (0.65, 0.9)]
    for corner in (*triangle, triangle[0]):
        page.mouse.click(*at(*corner))
    expect(page.locator("#zones li")).to_have_count(2)

    zones = {"a": [[0.1, 0.2], [0.6, 0.2], [0.6, 0.9], [0.1, 0.9]], "b": triangle}
    form = {"zones": httpx.Response(200, json={"relative": True, "zones": zones}).text}
    plaza = httpx.get(f"{service.url}/page/samples/plaza-day.jpg").content
    answer = httpx.post(f"{service.url}/v1/count", files={"image": plaza}, data=form, timeout=60).json()
    with page.expect_download() as download:
        page.click("#save-csv")
    saved = [float(value) for value in Path(download.value.path()).read_text().splitlines()[1].split(",")[2:]]
    assert saved == pytest.approx(list(answer["zones"].values()), rel=0.01)
    assert zone_counts(page) == pytest.approx(saved, abs=0.5)

    before = zone_counts(page)[0]
    page.evaluate("scrollTo(0, 0)")  # the button to save may be below what was on the screen
    handle = page.locator(".handle").first.bounding_box()
    page.mouse.move(handle["x"] + 16, handle["y"] + 16)
    page.mouse.down()
    page.mouse.move(*at(0.02, 0.05), steps=3)
    page.mouse.up()
    assert zone_counts(page)[0] > before
    page.get_by_label("Remove Zone 1").click()
    expect(page.locator("#zones li")).to_have_count(1)


def test_everything_can_be_done_from_the_keyboard(visit: Any) -> None:
    page = visit()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.locator("[data-sample=plaza-day]:focus").count():
            break
    page.keyboard.press("Enter")
    whole = seen_count(page)
    page.locator("#rectangle").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".handle:focus")).to_have_attribute("aria-label", re.compile("Zone 1, corner 1 of 4: 25 %"))
    before = zone_counts(page)[0]
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("Shift+ArrowUp")
    expect(page.locator(".handle:focus")).to_have_attribute("aria-label", re.compile("0 % across, 0 % down"))
    assert before < zone_counts(page)[0] < whole
    expect(page.locator("#spoken")).to_have_text(re.compile(r"Zone 1: [\d.]+ people"))


def test_a_broken_file_is_named_and_the_next_one_is_counted(visit: Any, street: Any) -> None:
    page = visit()
    broken = {"name": "holiday.jpg", "mimeType": "image/jpeg", "buffer": street["buffer"][:200]}
    upload(page, broken)
    expect(page.get_by_role("alert")).to_contain_text("holiday.jpg: ")
    upload(page, {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"})
    expect(page.get_by_role("alert")).to_contain_text("notes.txt: not a picture")
    upload(page, {"name": "clip.mp4", "mimeType": "video/mp4", "buffer": b"hello"})
    expect(page.get_by_role("alert")).to_contain_text("clip.mp4: this browser cannot play it")
    upload(page, {"name": "huge.jpg", "mimeType": "image/jpeg", "buffer": bytes(5_000_001)})
    expect(page.get_by_role("alert")).to_contain_text("huge.jpg: over the limit of 5 MB")
    upload(page, street)
    seen_count(page)
    expect(page.locator("#error")).to_be_hidden()


def test_a_picture_can_be_dropped_or_pasted(visit: Any) -> None:
    for kind in ("drop", "paste"):
        page = visit()
        # Made in the page, since a test cannot reach the clipboard of a real desktop.
        page.evaluate(
            """async (kind) => {
              const blob = await (await fetch("page/samples/snow-market.jpg")).blob();
              const data = new DataTransfer();
              data.items.add(new File([blob], "pasted.jpg", { type: "image/jpeg" }));
              const options = { bubbles: true, cancelable: true };
              document.body.dispatchEvent(kind === "drop"
                ? new DragEvent("drop", { ...options, dataTransfer: data })
                : new ClipboardEvent("paste", { ...options, clipboardData: data }));
            }""",
            kind,
        )
        seen_count(page)
        expect(page.locator("#detail")).to_contain_text("pasted.jpg")


def test_what_is_seen_can_be_saved(visit: Any, street: Any, tmp_path: Path) -> None:
    page = visit()
    upload(page, street)
    whole = seen_count(page)
    page.click("#rectangle")
    page.get_by_label("Name of the zone").fill('=door, "left"')
    with page.expect_download() as download:
        page.click("#save-png")
    download.value.save_as(tmp_path / "saved.png")
    assert Image.open(tmp_path / "saved.png").size == (640, 572)
    with page.expect_download() as download:
        page.click("#save-csv")
    assert download.value.suggested_filename == "street-count.csv"
    head, row = Path(download.value.path()).read_text().splitlines()
    assert head == 'picture,people,"\'=door, ""left"""'
    name, people, zone = row.split(",")
    assert (name, round(float(people))) == ("street.png", whole)
    assert float(zone) < float(people)


def test_a_strip_of_a_picture_is_saved_with_a_footer_that_can_be_read(visit: Any, tmp_path: Path) -> None:
    strip = BytesIO()
    Image.new("RGB", (8, 1200), "grey").save(strip, "PNG")
    page = visit()
    page.set_input_files("#file", {"name": "strip.png", "mimeType": "image/png", "buffer": strip.getvalue()})
    expect(page.locator("#count")).to_have_text(re.compile(r"^\d"), timeout=PATIENCE)
    with page.expect_download() as download:
        page.click("#save-png")
    download.value.save_as(tmp_path / "saved.png")
    with Image.open(tmp_path / "saved.png") as saved:
        assert saved.size == (320, 1240)
        assert (np.asarray(saved.convert("L"))[-40:, :160] > 200).any()


def test_a_video_is_counted_frame_by_frame_into_a_chart(visit: Any, tmp_path: Path) -> None:
    page = visit()
    upload(page, write_video(tmp_path / "clip.webm", seconds=3))
    expect(page.locator("#progress")).to_have_text(re.compile("3 frames, 0:02 of 0:0[23]"), timeout=PATIENCE)
    expect(page.locator("#pause")).to_be_hidden()
    points = page.locator("#chart polyline.all").get_attribute("points")
    assert len(points.split()) == 3
    chart = page.locator("#chart")
    chart.focus()
    page.keyboard.press("Home")
    expect(page.locator("#detail")).to_contain_text("clip.webm at 0:00")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(r"^0:00: \d+ people$"))
    page.click("#rectangle")
    expect(page.locator("#chart polyline")).to_have_count(2)
    with page.expect_download() as download:
        page.click("#save-csv")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "seconds,people,Zone 1"
    assert [line.split(",")[0] for line in lines[1:]] == ["0.00", "1.00", "2.00"]


def write_video(path: Path, seconds: int) -> Path:
    av = pytest.importorskip("av", reason="PyAV writes the video")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libvpx", rate=10)
        stream.width, stream.height, stream.pix_fmt = 160, 128, "yuv420p"
        for number in range(10 * seconds):
            pixels = np.full((128, 160, 3), 5 * number, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(stream.encode())
    return path


def test_it_fits_a_phone_and_follows_the_fingers(visit: Any) -> None:
    page = visit(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page.tap("[data-sample=snow-market]")
    seen_count(page)
    page.tap("#draw")
    box = page.locator("#stage").bounding_box()
    for x, y in ((0.1, 0.1), (0.9, 0.1), (0.5, 0.9), (0.1, 0.1)):
        page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    expect(page.locator("#zones li")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.locator("button:visible:not(.handle)").evaluate_all(
        "buttons => buttons.filter(button => button.getBoundingClientRect().height < 40).length"
    )
    assert small == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(visit: Any, street: Any, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    upload(page, street)
    seen_count(page)
    ground = luminance(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert (ground > 0.5) == (scheme == "light")
    for text in ("#count", "#unit", "#detail", "#model"):
        ink = luminance(page.locator(text).evaluate("element => getComputedStyle(element).color"))
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """The relative luminance of a CSS colour, as accessibility guidelines define it."""
    shares = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_asks_for_the_token(visit: Any, serving: Any, street: Any) -> None:
    with serving(GBDGC_TOKEN="sesame") as locked:
        page = visit(locked.url)
        for refused, attempt in enumerate(("wrong", "\u65e5", "sesame")):
            expect(page.locator("#token-dialog")).to_be_visible()
            expect(page.locator("#token-refused")).to_be_visible(visible=refused > 0)
            page.fill("#token", attempt)
            page.keyboard.press("Enter")
        expect(page.locator("#model")).to_contain_text("tiny")
        upload(page, street)
        seen_count(page)


def test_the_docs_page_shows_every_route(visit: Any, service: Any) -> None:
    page = visit()
    page.goto(f"{service.url}/docs")
    expect(page.locator("#routes h2")).to_have_count(4)
    expect(page.locator("#routes")).to_contain_text("novelty")


def test_the_docs_page_gives_commands_for_the_address_it_was_opened_at(visit: Any, service: Any) -> None:
    address = service.url.replace("127.0.0.1", "docs.localhost")
    page = visit(f"{address}/docs?from=docs#routes")
    expect(page.locator("#routes h2")).to_have_count(4)
    for command in page.locator("#routes pre").all_inner_texts():
        assert f" {address}/v1/" in command or f" {address}/metrics" in command


def test_a_mask_lowers_the_count_and_zones_are_kept_in_a_file(
    visit: Callable[..., Any], service: Any, street: dict[str, Any], tmp_path: Path
) -> None:
    page = visit()
    upload(page, street)
    before = seen_count(page)
    page.get_by_role("button", name="Add a rectangle").click()
    inside = zone_counts(page)[0]
    page.get_by_label("What Zone 1 is for").select_option("mask")
    expect(page.locator("#count")).not_to_have_text(f"{before:,}")
    after = seen_count(page)
    assert after == pytest.approx(before - inside, abs=1 + 0.05 * before)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save zones").click()
    text = Path(saved.value.path()).read_text()
    data = {"zones": text}
    answer = httpx.post(f"{service.url}/v1/count", files={"image": street["buffer"]}, data=data, timeout=60).json()
    assert answer["count"] == pytest.approx(after, abs=1 + 0.05 * before)
    upload(page, street)
    expect(page.locator("#zones output")).to_have_count(0)  # another picture begins without zones
    expect(page.locator("#count")).to_have_text(f"{before:,}")
    file = {"name": "zones.json", "mimeType": "application/json", "buffer": text.encode()}
    page.set_input_files("#zones-file", file)
    expect(page.locator("#count")).to_have_text(f"{after:,}")
    page.set_input_files("#zones-file", file | {"buffer": b"{}"})
    expect(page.locator("#error")).to_contain_text("zones.json: no zones")


def test_heads_show_as_dots_on_the_page_and_in_the_saved_picture(
    visit: Callable[..., Any], street: dict[str, Any]
) -> None:
    page = visit()
    upload(page, street)
    count = seen_count(page)
    expect(page.locator("#dots")).to_be_hidden()
    page.get_by_label("A dot for each head").check()
    expect(page.locator("#dots")).to_be_visible()
    heads = page.locator("#dots path").first.get_attribute("d").count("M")
    assert heads == count > 0
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save PNG").click()
    picture = np.asarray(Image.open(saved.value.path()).convert("RGB"))
    assert (picture == (64, 255, 214)).all(axis=-1).any()
