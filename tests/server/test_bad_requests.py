"""Whatever is sent, the answer is a clear refusal, never a fault."""

import json
import random
import socket
import struct
from contextlib import suppress
from io import BytesIO
from typing import Any

import httpx
import pytest
from PIL import Image

from gbdgc.data.images import PictureTooLarge, image_size
from hostile_pictures import png_header


def refused(answer: httpx.Response, status: int, code: str, *words: str) -> None:
    """Check that the answer says what, why, and what to do."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["next_step"]
    for word in words:
        assert word in error["message"]


def saved(kind: str, **options: Any) -> bytes:
    file = BytesIO()
    Image.effect_noise((64, 48), 60).convert("RGB").save(file, kind, **options)
    return file.getvalue()


def corpus() -> dict[str, bytes]:
    """Files that are no pictures, or were some once."""
    chance = random.Random(0)
    whole = {kind: saved(kind) for kind in ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")}
    bad = {
        "nothing": b"",
        "a text": b"hello",
        "zeros": bytes(4096),
        "noise": chance.randbytes(4096),
        "a postscript program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run\n",
        "an svg": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
        "a path": b"/etc/passwd",
        "a pdf": b"%PDF-1.7\n1 0 obj\n",
        "a zip": b"PK\x03\x04" + bytes(200),
        "an empty png": png_header(0, 0),
        "a png without pixels": png_header(800, 600),
    }
    for kind, content in whole.items():
        bad[f"half a {kind}"] = content[: len(content) // 2]
        bad[f"the first bytes of a {kind}"] = content[:20]
        for round_ in range(6):
            damaged = bytearray(content)
            for _ in range(24):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            bad[f"a {kind} damaged {round_}"] = bytes(damaged)
    return bad


CORPUS = corpus()


@pytest.mark.parametrize("name", CORPUS)
def test_no_upload_makes_a_fault(client: httpx.Client, name: str) -> None:
    answer = client.post("/v1/count", files={"image": CORPUS[name]}, data={"overlay": "1", "density": "1"})
    assert answer.status_code in {200, 400, 413}
    if answer.status_code != 200:
        assert answer.json()["error"]["message"].startswith("image: ")


def test_what_is_no_picture_is_named(client: httpx.Client) -> None:
    refused(client.post("/v1/count", files={"image": b"hello"}), 400, "bad_picture", "not a picture")
    refused(client.post("/v1/count", files={"image": b""}), 400, "bad_picture", "nothing in it")


def test_a_truncated_picture_is_answered_with_one_next_step(client: httpx.Client) -> None:
    whole = saved("JPEG")
    answer = client.post("/v1/count", files={"image": whole[: len(whole) // 2]})
    refused(answer, 400, "bad_picture", "damaged or truncated")
    assert "copy it again" not in answer.json()["error"]["message"]
    assert answer.json()["error"]["next_step"] == "copy it again from where it came"


def test_a_picture_of_too_many_pixels_is_refused_by_its_header(client: httpx.Client) -> None:
    for size in ((2000, 1001), (60_000, 60_000), (2**31 - 1, 2**31 - 1)):
        answer = client.post("/v1/count", files={"image": png_header(*size)})
        refused(answer, 413, "picture_too_large", "over the limit of 2,000,000 pixels")
    answer = client.post("/v1/count", files={"image": png_header(2000, 1001)})
    refused(answer, 413, "picture_too_large", "2000 x 1001")


def test_a_few_bytes_that_would_be_laid_out_when_opened_take_no_memory(client: httpx.Client) -> None:
    # Pillow fills the whole frame of a GIF that asks to be disposed of to the background before anybody sees its size.
    side = struct.pack("<HH", 65_535, 65_535)
    frame = b"\x21\xf9\x04\x08\0\0\0\0" + b"\x2c" + bytes(4) + side + b"\0\x02\x02\x44\x01\0\x3b"
    bomb = b"GIF89a" + side + b"\x80\0\0" + bytes(6) + frame
    refused(client.post("/v1/count", files={"image": bomb}), 413, "picture_too_large", "2,000,000 pixels")
    before = Image.MAX_IMAGE_PIXELS
    with pytest.raises(PictureTooLarge):
        image_size(bomb, max_pixels=2_000_000)
    assert before == Image.MAX_IMAGE_PIXELS


def test_too_many_zones_are_refused_before_any_is_looked_at(client: httpx.Client, street: bytes) -> None:
    zones = json.dumps({f"{number:x}": "no polygon" for number in range(10_000)})
    answer = client.post("/v1/count", files={"image": street}, data={"zones": zones})
    refused(answer, 400, "bad_field", "10,000 of them, over the limit of 50")


def test_an_upload_over_the_limit_is_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/count", files={"image": bytes(4_000_001)})
    refused(answer, 413, "upload_too_large", "4,000,000 bytes")


def test_a_declared_size_over_the_limit_is_refused_before_anything_is_read(client: httpx.Client) -> None:
    request = (
        "POST /v1/count HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        "Content-Length: 900000000000\r\n\r\n"
    )
    assert b" 413 " in raw(client, request.encode())


def test_an_endless_body_is_cut_at_the_limit(client: httpx.Client) -> None:
    sent = 0

    def endless() -> Any:
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="image"; filename="x"\r\n\r\n'
        while sent < 60_000_000:
            sent += 65_536
            yield bytes(65_536)

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    # Or the connection is closed while we still write, which is as good.
    with suppress(httpx.TransportError):
        refused(client.post("/v1/count", content=endless(), headers=headers), 413, "upload_too_large")
    assert sent < 30_000_000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"zones": "{"}, "not JSON"),
        ({"zones": "[" * 100_000}, "not JSON"),
        ({"zones": "{}"}, "no zone"),
        ({"zones": "7"}, "zones must be"),
        ({"zones": '{"a": [[0, 0], [9, 9]]}'}, "at least three"),
        ({"zones": '{"a": [[0, 0], [9, 9], [NaN, 1]]}'}, "finite"),
        ({"zones": '{"a": [[0, 0], [9, 9], [1e999, 1]]}'}, "finite"),
        ({"zones": f'{{"a": [[0, 0], [9, 9], [{"9" * 400}, 1]]}}'}, "pairs of numbers"),
        ({"zones": f'{{"a": [[0, 0], [9, 9], [{"9" * 9000}, 1]]}}'}, "not JSON"),
        ({"zones": '{"\\ud800": [[0, 0], [9, 9], [0, 9]]}'}, "not JSON"),
        ({"zones": '{"a": [[0, 0], [9, 9], [0, 9]], "a": [[0, 0], [9, 9], [0, 9]]}'}, "twice"),
        ({"zones": json.dumps({str(n): [[0, 0], [9, 9], [0, 9]] for n in range(51)})}, "limit of 50"),
        ({"zones": json.dumps({str(n): [[k % 2, k] for k in range(900)] for n in range(3)})}, "2,700 corners in all"),
        (
            {"zones": json.dumps({"star": [[n * 7919 % 997, n * 6007 % 991] for n in range(400)]})},
            "zone 'star': its sides",
        ),
        ({"overlay": "maybe"}, "neither true nor false"),
        ({"colour": "red"}, "no such field"),
        ({"path": "/etc/passwd"}, "no such field"),
    ],
)
def test_a_bad_field_is_named(client: httpx.Client, street: bytes, fields: dict[str, str], words: str) -> None:
    refused(client.post("/v1/count", files={"image": street}, data=fields), 400, "bad_field", words)


def test_a_request_of_the_wrong_shape_is_told_the_right_one(client: httpx.Client, street: bytes) -> None:
    refused(client.post("/v1/count", json={"image": "x"}), 415, "not_multipart", "application/json")
    refused(client.post("/v1/count"), 415, "not_multipart")
    refused(client.post("/v1/count", files={"zones": street}), 400, "bad_field", "image: missing")
    refused(client.post("/v1/count", data={"image": "x"}, files={"zones": b""}), 400, "bad_field", "a text, not a file")
    two = client.post("/v1/count", files=[("image", street), ("image", street)])
    refused(two, 400, "bad_multipart", "Too many files")
    text = client.post("/v1/count", data={"zones": "x" * 300_000}, files={"image": street})
    refused(text, 400, "bad_multipart", "size")
    for body in (
        b"",
        b"--b",
        b"--b\r\n\r\n\r\n--b--",
        bytes(100),
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
    ):
        answer = client.post("/v1/count", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
        assert answer.status_code == 400
    answer = client.post("/v1/count", content=b"x", headers={"Content-Type": "multipart/form-data"})
    refused(answer, 400, "bad_multipart", "boundary")


@pytest.mark.parametrize("charset", ["undefined", "idna", "unicode_escape", "utf-16", "x" * 200])
def test_fields_in_another_charset_are_refused(client: httpx.Client, charset: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="\\ud800"\r\n\r\nx\r\n--b--\r\n'
    headers = {"Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
    refused(client.post("/v1/count", content=body, headers=headers), 400, "bad_multipart", "not UTF-8")
    headers = {"Content-Type": "multipart/form-data; boundary=b; charset=UTF-8"}
    refused(client.post("/v1/count", content=body, headers=headers), 400, "bad_field", "no such field")


def test_what_clients_do_wrong_is_answered_without_a_warning_in_the_log(client: httpx.Client, service: Any) -> None:
    before = len(service.log.read_text())
    for wrong in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        assert b" 400 " in raw(client, wrong)
    for kind in ("websocket", "h2c"):
        upgrade = {"Connection": "Upgrade", "Upgrade": kind}
        assert client.get("/v1/health", headers=upgrade).status_code == 200
    assert "WARNING" not in service.log.read_text()[before:], "only the lines of access"


@pytest.mark.parametrize(
    "target", ["/page/../app.py", "/page/..%2fapp.py", "/page//etc/passwd", "/%2e%2e/app.py", "/page/%00"]
)
def test_no_address_leads_to_the_file_system(client: httpx.Client, target: str) -> None:
    assert b" 404 " in raw(client, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())


def test_a_wrong_method_is_told_the_right_one(client: httpx.Client) -> None:
    answer = client.get("/v1/count")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


def raw(client: httpx.Client, request: bytes) -> bytes:
    """Send bytes as they are, which no HTTP library would, and return the first of the answer."""
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=20) as connection:
        connection.sendall(request)
        return connection.recv(65_536)
