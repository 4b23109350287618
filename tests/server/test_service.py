"""How the service behaves over time: full queues, slow clients, tokens, its end; and that nothing is kept."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

import gbdgc
from gbdgc.cli.serve import serve
from gbdgc.data.images import NotEnoughMemory
from gbdgc.errors import InputError
from gbdgc.server import Limits, create_app
from hostile_pictures import endless_jpeg
from in_process import run_gbdgc

Serving = Callable[..., Any]


@pytest.fixture(scope="module")
def large() -> bytes:
    """A picture that takes long enough to count for others to queue up behind it."""
    file = BytesIO()
    Image.effect_noise((1100, 1100), 60).convert("RGB").save(file, "JPEG", quality=50)
    return file.getvalue()


def post(url: str, image: bytes, **options: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/count", files={"image": image}, timeout=240, **options)


def open_upload(url: str) -> socket.socket:
    """Begin an upload and leave it unfinished."""
    address = httpx.URL(url)
    connection = socket.create_connection((address.host, address.port or 80), timeout=30)
    connection.sendall(
        b"POST /v1/count HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Content-Length: 1000\r\n\r\n--b\r\n"
    )
    return connection


def wait_for_queue(url: str, length: int) -> None:
    for _ in range(200):
        if httpx.get(f"{url}/v1/health").json()["queued"] == length:
            return
        time.sleep(0.05)
    raise AssertionError(f"the queue never had {length} in it")


def test_a_full_queue_answers_503_and_when_to_come_back(serving: Serving, street: bytes, large: bytes) -> None:
    with serving("--queue", "2", "--client-share", "1") as service, ThreadPoolExecutor(2) as threads:
        counting = [threads.submit(post, service.url, large) for _ in range(2)]
        wait_for_queue(service.url, 2)
        answer = post(service.url, street)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "busy"
        assert int(answer.headers["retry-after"]) >= 1
        assert httpx.get(f"{service.url}/v1/health").status_code == 200
        assert [each.result().status_code for each in counting] == [200, 200]
        wait_for_queue(service.url, 0)
        assert post(service.url, street).status_code == 200


def test_one_client_cannot_take_the_whole_queue(serving: Serving, street: bytes, large: bytes) -> None:
    """A proxy on this machine names its clients, and is believed."""
    with serving("--queue", "2") as service, ThreadPoolExecutor(1) as threads:
        counting = threads.submit(post, service.url, large, headers={"X-Forwarded-For": "192.0.2.1"})
        wait_for_queue(service.url, 1)
        greedy = post(service.url, street, headers={"X-Forwarded-For": "192.0.2.1"})
        other = post(service.url, street, headers={"X-Forwarded-For": "192.0.2.2"})
        assert (greedy.status_code, greedy.json()["error"]["code"]) == (503, "busy")
        assert "one client" in greedy.json()["error"]["message"]
        assert other.status_code == counting.result().status_code == 200


def test_uploads_that_trickle_in_take_no_slots_and_are_given_up(serving: Serving, street: bytes) -> None:
    with serving("--queue", "2", "--timeout", "60") as service, ExitStack() as stack:
        slow = [stack.enter_context(open_upload(service.url)) for _ in range(16)]
        began = time.perf_counter()
        while time.perf_counter() - began < 4:
            for connection in slow:
                connection.sendall(b"-")
            assert post(service.url, street).status_code == 200
            time.sleep(1)
        # Long before the minute that a body may take: a thousand bytes at one a second are too slow.
        assert [b" 408 " in connection.recv(65_536) for connection in slow] == [True] * 16
        assert time.perf_counter() - began < 20


def test_slow_uploads_and_slow_counts_are_given_up(serving: Serving, street: bytes, large: bytes) -> None:
    with serving("--timeout", "0.4") as service:
        with open_upload(service.url) as slow:
            assert b" 408 " in slow.recv(65_536)
        answer = post(service.url, large)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "too_slow"
        assert "retry-after" in answer.headers
        wait_for_queue(service.url, 0)


def test_counting_does_not_keep_others_waiting(service: Any, large: bytes) -> None:
    busy = threading.Thread(target=post, args=(service.url, large))
    busy.start()
    wait_for_queue(service.url, 1)
    started = time.perf_counter()
    for _ in range(3):
        assert httpx.get(f"{service.url}/v1/health").json()["queued"] == 1
    assert time.perf_counter() - started < 2
    busy.join()


def test_with_a_token_only_health_and_the_page_are_open(serving: Serving, street: bytes) -> None:
    with serving(GBDGC_TOKEN="sesame \n") as service:  # spaces around it are not part of it
        for address in ("/v1/health", "/", "/docs", "/openapi.json"):
            assert httpx.get(service.url + address).status_code == 200
        for address in ("/v1/model", "/metrics"):
            assert httpx.get(service.url + address).status_code == 401
        for header in ("", "Bearer", "Bearer wrong", "Bearer sesame2", "Basic sesame", "Bearer s\u00e9same"):
            answer = post(service.url, street, headers={"Authorization": header.encode()})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert post(service.url, street, headers={"Authorization": "Bearer sesame"}).status_code == 200


@pytest.mark.parametrize("token", ["s\u00e9same", " \n", "two\nlines"])
def test_a_token_that_nobody_could_send_is_refused_before_anything_starts(token: str) -> None:
    with pytest.raises(InputError, match="--token: "):
        serve(token=token)


def test_a_fault_of_ours_is_answered_logged_and_counted_like_anything_else(
    street: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr("gbdgc.server.app.count_upload", broken)
    answer, figures = ask_in_this_process(street)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "fault")
    assert "secret" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "a secret of ours" in caplog.text
    assert 'gbdgc_requests_total{route="/v1/count",status="500"} 1.0' in figures.text


def test_a_model_of_any_name_is_served() -> None:
    counter = gbdgc.Counter.load()
    counter.info |= {"name": "\ud800", "method": "\udfff", "build": []}

    async def ask() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(create_app(counter))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/v1/model"), await client.get("/metrics")

    about, figures = asyncio.run(ask())
    assert (about.status_code, figures.status_code) == (200, 200)
    assert (about.json()["name"], about.json()["about"]["method"]) == ("?", "?")


def test_want_of_memory_is_not_called_a_bad_picture(street: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def starved(*_: object, **__: object) -> None:
        raise NotEnoughMemory("the picture", "not enough memory for 9 x 9 pixels", "count a smaller one")

    monkeypatch.setattr("gbdgc.data.decoding.Decoder.read", starved)
    answer, _ = ask_in_this_process(street)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "out_of_memory"
    assert answer.json()["error"]["message"] == "image: not enough memory for 9 x 9 pixels"


def ask_in_this_process(picture: bytes) -> tuple[httpx.Response, httpx.Response]:
    """Send a picture to a service whose insides a test has changed, then ask for its figures."""

    async def ask() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(create_app(gbdgc.Counter.load()))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.post("/v1/count", files={"image": picture}), await client.get("/metrics")

    return asyncio.run(ask())


def test_a_stop_finishes_the_work_at_hand(serving: Serving, large: bytes) -> None:
    with serving() as service, ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(post, service.url, large) for _ in range(2)]
        wait_for_queue(service.url, 2)
        service.process.send_signal(signal.SIGTERM)
        assert [answer.result().status_code for answer in answers] == [200, 200]
        service.process.wait(timeout=30)
        assert "Traceback" not in service.log.read_text()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.url}/v1/health")


def test_a_count_that_nobody_waits_for_holds_up_neither_others_nor_the_stop(serving: Serving, street: bytes) -> None:
    huge = BytesIO()
    Image.new("RGB", (8000, 8000), (90, 120, 60)).save(huge, "PNG", compress_level=1)
    with serving("--timeout", "8", "--max-pixels", "64000000") as service:
        answer = post(service.url, huge.getvalue())
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_slow")
        assert post(service.url, street).status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{service.url}/v1/count", files={"image": huge.getvalue()}, timeout=2)
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(timeout=30)
        assert "Traceback" not in service.log.read_text()


def test_a_picture_whose_decoding_never_ends_holds_up_nobody_for_longer_than_the_timeout(
    serving: Serving, street: bytes
) -> None:
    with serving("--timeout", "8") as service:
        assert post(service.url, street).status_code == 200
        answer = post(service.url, endless_jpeg())
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_slow")
        assert post(service.url, street).status_code == 200


def test_memory_is_given_back_after_a_large_picture(serving: Serving, street: bytes) -> None:
    large = BytesIO()
    Image.new("F", (2400, 1200), 0.5).save(large, "TIFF", compression="tiff_adobe_deflate")
    assert len(large.getvalue()) < 100_000
    with serving("--timeout", "200") as service:
        assert post(service.url, street).status_code == 200
        before = resident_megabytes(service.process.pid)
        assert post(service.url, large.getvalue()).status_code == 200
        assert resident_megabytes(service.process.pid, "VmHWM:") - before < 500
        assert resident_megabytes(service.process.pid) - before < 40


def test_memory_is_given_back_after_pictures_that_were_refused_or_given_up() -> None:
    given_back: list[None] = []

    async def ask() -> None:
        release = partial(given_back.append, None)
        app = create_app(gbdgc.Counter.load(), limits=Limits(seconds=5), release_memory=release)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            for number, (picture, code) in enumerate(((b"no picture", "bad_picture"), (endless_jpeg(), "too_slow"))):
                answer = await client.post("/v1/count", files={"image": picture})
                assert answer.json()["error"]["code"] in {code, "too_slow"}  # the decoder has yet to start
                while len(given_back) <= number:
                    await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(ask(), 120))


def test_an_upload_never_touches_the_disk(service: Any) -> None:
    """Of more than 1 MB, Starlette by itself would make a temporary file."""
    pixels = np.random.default_rng(0).integers(0, 256, (900, 900, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    assert len(file.getvalue()) > 2_000_000
    post(service.url, file.getvalue())
    before = written_bytes(service.process.pid)
    assert post(service.url, file.getvalue()).status_code == 200
    # Once it is written, to the process that decodes it; a second time would be a file.
    assert written_bytes(service.process.pid) - before < len(file.getvalue()) + 10_000


def written_bytes(process: int) -> int:
    """Bytes that a process has written to files, pipes and other processes, but not to clients."""
    return int(Path(f"/proc/{process}/io").read_text().split("wchar:")[1].split()[0])


@pytest.mark.parametrize("option", ["--port=99999", "--port=-1", "--threads=0", "--max-pixels=0", "--max-pixels=0.5"])
def test_an_option_out_of_range_is_wrong_usage(option: str, tmp_path: Path) -> None:
    answer = run_gbdgc("serve", option, folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert f"for {option.partition('=')[0]}" in answer.stderr


def test_it_listens_on_this_machine_only_unless_told(service: Any) -> None:
    assert service.url.startswith("http://127.0.0.1:")
    port = httpx.URL(service.url).port
    taken = subprocess.run(
        [sys.executable, "-m", "gbdgc", "serve", "--weights", service.process.args[5], "--port", str(port)],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert taken.returncode == 1
    assert f"127.0.0.1:{port}: cannot listen there" in taken.stderr
    assert "Traceback" not in taken.stderr


@pytest.mark.slow
def test_a_load_of_two_hundred_requests_is_all_answered_and_memory_stays_flat(serving: Serving, street: bytes) -> None:
    with serving("--queue", "8") as service:

        def ask(_: int) -> int:
            return post(service.url, street).status_code

        with ThreadPoolExecutor(16) as clients:
            list(clients.map(ask, range(48)))
            before = resident_megabytes(service.process.pid)
            statuses = Counter(clients.map(ask, range(200)))
        assert set(statuses) <= {200, 503}
        assert sum(statuses.values()) == 200
        assert statuses[200] > 0
        assert resident_megabytes(service.process.pid) - before < 30
        assert httpx.get(f"{service.url}/v1/health").json()["queued"] == 0


def resident_megabytes(process: int, figure: str = "VmRSS:") -> float:
    return int(Path(f"/proc/{process}/status").read_text().split(figure)[1].split()[0]) / 1024
