"""Connections that ask nothing: however many there are, whoever asks is answered."""

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from gbdgc.counting import Counter
from gbdgc.server import Limits, Server, create_app
from gbdgc.server.connections import client_key

HALF_A_HEAD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process, which plays all clients, open as many files as the test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip(f"needs 3000 open files, and this machine allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def in_this_process(counter: Counter, limits: Limits) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(create_app(counter, limits=limits), limits, log_level="warning")
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)


def trickle(connection: socket.socket, text: bytes) -> None:
    for byte in text:
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


def is_closed(connection: socket.socket, seconds: float) -> bool:
    """Tell whether the other side closes within that time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.usefixtures("many_files")
def test_health_answers_while_idle_and_half_sent_connections_flood_the_service(serving: Callable[..., Any]) -> None:
    with serving(GBDGC_TOKEN="sesame") as service, ExitStack() as stack:
        assert httpx.get(f"{service.url}/v1/health", timeout=60).status_code == 200
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        port = httpx.URL(service.url).port or 80
        for number in range(1200):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            if number % 2:
                connection.sendall(HALF_A_HEAD)
            if number % 100 == 99:
                began = time.perf_counter()
                assert httpx.get(f"{service.url}/v1/health", timeout=30).status_code == 200
                assert time.perf_counter() - began < 5
        assert len(list(Path(f"/proc/{service.process.pid}/fd").iterdir())) < 900
        assert service.log.stat().st_size < 20_000


def test_a_head_that_does_not_come_ends_the_connection_however_it_trickles(counter: Counter) -> None:
    with in_this_process(counter, Limits(head_seconds=1.5)) as address, ExitStack() as stack:
        silent, trickling = (stack.enter_context(socket.create_connection(address)) for _ in range(2))
        with pytest.raises(ConnectionError):  # long before the minute that all of it would take
            trickle(trickling, HALF_A_HEAD + b"x" * 300)
        assert is_closed(silent, 30)


def test_an_answer_that_nobody_reads_ends_the_connection(counter: Counter) -> None:
    with in_this_process(counter, Limits(head_seconds=1.0)) as address, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect(address)
        deaf.settimeout(1)

        def ask_on_and_on() -> None:
            for _ in range(300):
                with suppress(TimeoutError):
                    deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
                time.sleep(0.1)

        with pytest.raises(ConnectionError):
            ask_on_and_on()


def test_one_client_displaces_its_own_idle_connections_and_not_those_of_others(counter: Counter) -> None:
    limits = Limits(connections=16, head_seconds=30)
    with in_this_process(counter, limits) as address, ExitStack() as stack:

        def connect(host: str) -> socket.socket:
            return stack.enter_context(socket.create_connection(address, source_address=(host, 0)))

        neighbour = connect("127.0.0.2")
        flood = [connect("127.0.0.3") for _ in range(40)]
        assert is_closed(flood[0], 5)
        assert not is_closed(neighbour, 0.2)
        assert not is_closed(flood[-1], 0.2)
        neighbour.settimeout(30)
        neighbour.sendall(HALF_A_HEAD + b"\r\n")
        assert b" 200 " in neighbour.recv(65_536)


def test_many_clients_together_have_no_more_connections_than_all_may(counter: Counter) -> None:
    with in_this_process(counter, Limits(connections=16, head_seconds=60)) as address, ExitStack() as stack:
        flood = [
            stack.enter_context(socket.create_connection(address, source_address=(f"127.0.0.{number % 8 + 2}", 0)))
            for number in range(32)
        ]
        assert all(is_closed(connection, 30) for connection in flood[:16])
        assert not any(is_closed(connection, 0.05) for connection in flood[16:])


def test_that_no_connection_can_be_accepted_is_logged_once(serving: Callable[..., Any]) -> None:
    with serving() as service, ExitStack() as stack:
        assert httpx.get(f"{service.url}/v1/health", timeout=60).status_code == 200
        files = len(list(Path(f"/proc/{service.process.pid}/fd").iterdir()))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (files + 2, hard))
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", httpx.URL(service.url).port or 80), timeout=30))
        time.sleep(4)  # it is tried anew every second, for each of those who wait
        assert service.log.read_text().count("cannot accept connections for now") == 1
        assert service.log.stat().st_size < 2000


def test_a_client_is_an_ipv4_address_or_the_network_of_an_ipv6_host() -> None:
    assert client_key("192.0.2.7") == client_key("::ffff:192.0.2.7") == "192.0.2.7"
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff:2") != client_key("2001:db8:0:1::1")
    assert client_key(None) == ""
