"""Counting over HTTP: a real client, a real server process."""

import base64
import json
from io import BytesIO

import httpx
import numpy as np
import pytest
from PIL import Image

from gbdgc import Counter


def test_the_answer_is_what_the_counter_says(client: httpx.Client, street: bytes, counter: Counter) -> None:
    answer = client.post("/v1/count", files={"image": street})
    assert answer.status_code == 200
    expected = counter(street)
    record = answer.json()
    assert record["count"] == pytest.approx(expected.count, rel=1e-6)
    assert record["novelty"] == pytest.approx(expected.novelty)
    assert (record["width"], record["height"], record["domain"]) == (160, 128, expected.domain)
    assert record["overlay"] is None
    assert record["density"] is None
    assert answer.headers["cache-control"] == "no-store"


def test_zones_are_counted_in_pixels_or_shares(client: httpx.Client, street: bytes, counter: Counter) -> None:
    left = [[0, 0], [80, 0], [80, 128], [0, 128]]
    expected = counter(street).count_in(left)
    relative = {"relative": True, "zones": {"left": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}}
    for zones in ({"left": left}, [{"name": "left", "polygon": left}], relative):
        answer = client.post("/v1/count", files={"image": street}, data={"zones": json.dumps(zones)})
        assert answer.json()["zones"] == {"left": pytest.approx(expected, rel=1e-5)}


def test_a_zone_outside_the_picture_is_warned_of(client: httpx.Client, street: bytes) -> None:
    zones = json.dumps({"far": [[500, 0], [600, 0], [600, 100]]})
    record = client.post("/v1/count", files={"image": street}, data={"zones": zones}).json()
    assert record["zones"] == {"far": 0.0}
    assert "zone 'far' lies outside the picture, which is 160 x 128" in record["warnings"]


def test_the_overlay_is_a_small_clear_png_with_a_scale(client: httpx.Client, street: bytes) -> None:
    overlay = client.post("/v1/count", files={"image": street}, data={"overlay": "true"}).json()["overlay"]
    picture = Image.open(BytesIO(base64.b64decode(overlay["png"])))
    assert picture.mode == "RGBA"
    assert picture.width / picture.height == pytest.approx(160 / 128, rel=0.02)
    assert overlay["peak"] >= 1
    assert overlay["square"] >= 10


@pytest.mark.parametrize("size", [(160, 128), (401, 23), (1, 1), (1111, 777)])
def test_the_density_sums_to_the_count_and_covers_the_picture(client: httpx.Client, size: tuple[int, int]) -> None:
    file = BytesIO()
    Image.new("RGB", size, (90, 120, 60)).save(file, "PNG")
    record = client.post("/v1/count", files={"image": file.getvalue()}, data={"density": "1"}).json()
    density = record["density"]
    people = np.frombuffer(base64.b64decode(density["people"]), "<f4")
    assert people.sum(dtype=np.float64) == pytest.approx(record["count"], rel=1e-5)
    assert people.size == density["columns"] * density["rows"]
    assert max(density["columns"], density["rows"]) <= 160
    for cells, side in ((density["columns"], size[0]), (density["rows"], size[1])):
        assert (cells - 1) * density["cell"] < side <= cells * density["cell"]


def test_a_picture_on_its_side_is_put_upright(client: httpx.Client, street: bytes) -> None:
    picture, file = Image.open(BytesIO(street)), BytesIO()
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(file, "JPEG", exif=exif)
    record = client.post("/v1/count", files={"image": file.getvalue()}).json()
    assert (record["width"], record["height"]) == (128, 160)


def test_health_model_and_figures_tell_what_runs(client: httpx.Client, street: bytes) -> None:
    assert client.get("/v1/health").json() == {"status": "ok", "queued": 0, "slots": 16}
    model = client.get("/v1/model").json()
    assert (model["name"], model["engine"], model["trust"]) == ("tiny", "torch", True)
    assert model["limits"] == {
        "upload_bytes": 4_000_000,
        "pixels": 2_000_000,
        "queue": 16,
        "client_share": 0.5,
        "connections": 512,
        "head_seconds": 10.0,
        "upload_rate": 4000,
        "seconds": 30.0,
        "zones": 50,
        "corners": 2000,
    }

    def counted() -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("gbdgc_count_seconds_count")).split()[1])

    before = counted()
    client.post("/v1/count", files={"image": street})
    assert counted() == before + 1


@pytest.mark.parametrize("address", ["/", "/docs", "/v1/health"])
def test_a_monitor_may_ask_for_the_head_alone(client: httpx.Client, address: str) -> None:
    answer = client.head(address)
    assert (answer.status_code, answer.content) == (200, b"")


def test_addresses_asked_for_do_not_become_labels(client: httpx.Client) -> None:
    for number in range(5):
        assert client.get(f"/nowhere/{number}").status_code == 404
    assert "nowhere" not in client.get("/metrics").text


@pytest.mark.parametrize("address", ["/", "/docs", "/v1/health", "/page/page.js", "/nowhere"])
def test_every_answer_carries_the_security_headers(client: httpx.Client, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_the_page_names_no_other_host(client: httpx.Client) -> None:
    for address in (
        "/",
        "/docs",
        *(f"/page/{name}" for name in ("page.js", "api.js", "page.css", "docs.js", "save.js")),
    ):
        text = client.get(address).text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


def test_a_page_the_browser_has_is_not_sent_again(client: httpx.Client) -> None:
    tag = client.get("/page/page.css").headers["etag"]
    again = client.get("/page/page.css", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
