"""`gbdgc serve`."""

import math
import socket
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from gbdgc.cli.options import Engine, Host, Int8, Port, Threads, Token, Weights
from gbdgc.errors import InputError, as_input_error
from gbdgc.memory import give_back_freed_memory
from gbdgc.progress import stderr, stdout

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gbdgc.server import Limits


def _positive(_: Any, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError("must be a number above 0.")


def serve(
    *,
    weights: Weights = None,
    engine: Engine = None,
    int8: Int8 = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    max_upload: Annotated[float, Parameter(validator=_positive)] = 20.0,
    max_pixels: Annotated[int, Parameter(validator=Number(gt=0))] = 16_000_000,
    queue: Annotated[int, Parameter(validator=Number(gte=1))] = 16,
    client_share: Annotated[float, Parameter(validator=Number(gt=0, lte=1))] = 0.5,
    max_connections: Annotated[int, Parameter(validator=Number(gte=16))] = 512,
    timeout: Annotated[float, Parameter(validator=_positive)] = 30.0,
    threads: Threads = None,
) -> None:
    """Count over HTTP, with a page to drop pictures on.

    Parameters
    ----------
    max_upload
        Largest upload, in megabytes.
    max_pixels
        Refuse larger pictures.
    queue
        Pictures waiting or being counted at any one time; further requests get a 503.
    client_share
        The share of the queue and of the connections that one client address may hold.
    max_connections
        Open connections; beyond this number the longest idle one is closed.
    timeout
        Seconds that an upload may take, and then a count; what takes longer is cancelled.
    """
    require_server()

    from gbdgc.counting import Counter
    from gbdgc.server import Limits, create_app

    limits = Limits(
        upload_bytes=round(max_upload * 1e6),
        pixels=max_pixels,
        queue=queue,
        client_share=client_share,
        connections=max_connections,
        seconds=timeout,
    )
    token = check_token(token)
    listener = bind(host, port)  # first: a taken port is found in no time, a model is loaded in seconds
    counter = Counter.load(weights, engine=engine, int8=int8, threads=threads)
    run(create_app(counter, limits=limits, token=token, release_memory=give_back_freed_memory), limits, listener, token)


def require_server() -> None:
    """Name the missing extra when the packages of the service are not installed."""
    from gbdgc.counting.engines import require

    for module in ("uvicorn", "fastapi", "python_multipart", "prometheus_client"):
        require(module, "serve")


def check_token(token: str | None) -> str | None:
    """Return the token without surrounding spaces, or refuse one that clients cannot send."""
    token = token if token is None else token.strip()  # files of environment variables may end in spaces
    if token == "":
        raise InputError("--token", "it is empty", "give one, or leave it out for a service open to all who reach it")
    if token and not (token.isascii() and token.isprintable()):
        raise InputError("--token", "not every program can send it", "take letters, digits and signs of ASCII")
    return token


def run(
    app: "FastAPI", limits: "Limits", listener: socket.socket, token: str | None, *, log_requests: bool = True
) -> None:
    """Print the address and serve there until a signal."""
    from uvicorn.config import LOGGING_CONFIG

    from gbdgc.server import Server

    logging = deepcopy(LOGGING_CONFIG)
    logging["handlers"]["access"]["stream"] = "ext://sys.stderr"
    # A stop waits as long as what is in the queue may take, an upload and then a count; what is left is given up.
    stop = round(2 * limits.seconds) + 1
    server = Server(
        app,
        limits,
        log_config=logging,
        access_log=log_requests,
        server_header=False,
        timeout_graceful_shutdown=stop,
    )
    host, port = listener.getsockname()[:2]
    with _taken(host, port):  # two that were bound at the same time find out here
        listener.listen(128)  # callers queue from now on, so the address may be told before the server runs
    stdout.print(f"http://{f'[{host}]' if ':' in host else host}:{port}", soft_wrap=True)
    if token is None and not is_local(host):
        stderr.print("anyone who reaches this address can use the service: set GBDGC_TOKEN to change that")
    server.run(sockets=[listener])


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host.startswith("127.") or host in {"localhost", "::1"}


def bind(host: str, port: int) -> socket.socket:
    """Bind the address; nobody can connect before something listens there."""
    with _taken(host, port):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        return listener


def _taken(host: str, port: int) -> AbstractContextManager[None]:
    """Name the address that cannot be used, and what to do."""
    errors, advice = (OSError, OverflowError, UnicodeError), "choose another --host or --port"
    return as_input_error(errors, f"{host}:{port}", "cannot listen there ({error})", advice)
