"""The application: four routes, the page, and what every answer has in common."""

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gbdgc import __version__
from gbdgc.counting import Counter
from gbdgc.data.decoding import Decoder
from gbdgc.server.answers import Count, Health, Model, ProblemAnswer, count_upload, describe_model
from gbdgc.server.connections import client_key
from gbdgc.server.files import PageFile, page_files
from gbdgc.server.limits import Limits, Refusal
from gbdgc.server.metrics import Metrics
from gbdgc.server.upload import read_upload
from gbdgc.server.work import WorkQueue

log = logging.getLogger("uvicorn.error")

_LARGE_PIXELS = 2_000_000  # after a larger picture memory is given back; after a smaller one the next will want it
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_ZONES = (
    'JSON: {"name": [[x, y], ...]} with corners in pixels, or {"relative": true, "zones": {...}, "masks": {...}, '
    '"ground": {...}} with corners from 0 to 1; nobody is counted inside masks, and people per square metre come of '
    'the ground, {"corners": [...], "metres": [...]}'
)
_FIELDS = {
    "image": {"type": "string", "format": "binary", "description": "the picture's file"},
    "zones": {"type": "string", "description": _ZONES},
    "overlay": {"type": "boolean", "default": False, "description": "send the coloured density"},
    "density": {"type": "boolean", "default": False, "description": "send the density itself"},
    "points": {"type": "boolean", "default": False, "description": "send the heads as points"},
}
_SCHEMA = {"type": "object", "required": ["image"], "additionalProperties": False, "properties": _FIELDS}
_FORM = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _SCHEMA}}}}

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": ProblemAnswer, "description": "The picture or a field is bad"},
    408: {"model": ProblemAnswer, "description": "The upload took too long"},
    413: {"model": ProblemAnswer, "description": "Too many bytes or pixels"},
    415: {"model": ProblemAnswer, "description": "Not multipart/form-data"},
    503: {"model": ProblemAnswer, "description": "The queue is full; Retry-After says when to ask again"},
}
_LOCKED: dict[int | str, dict[str, Any]] = {
    401: {"model": ProblemAnswer, "description": "The service wants a token, and this is not it"}
}


def create_app(
    counter: Counter,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    release_memory: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the service; its own limit on pixels replaces the counter's.

    Requests must bear the token, if there is one: ``Authorization: Bearer TOKEN``. The page asks for it; health is
    open. ``release_memory`` is called after a picture that was large, refused or given up, to return to the system what
    the process has freed.
    """
    limits = limits or Limits()
    queue = WorkQueue(limits)
    decoder = Decoder(limits.pixels, counter.max_side)
    model = describe_model(counter, limits)
    metrics = Metrics(queue, model.name)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(decoder.warm_up)
        yield
        queue.close()
        decoder.close()

    app = FastAPI(
        title="gbdgc",
        summary="Count people in pictures.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    locked = locked_by(token)

    @app.post("/v1/count", responses=_PROBLEMS | _LOCKED, dependencies=locked, openapi_extra=_FORM)
    async def count(request: Request) -> Count:
        """Count the people in a picture."""
        client = client_key(request.client.host if request.client else None)
        with queue.upload(client) as hold:
            upload = await read_upload(request, limits, hold)
            started = time.perf_counter()
            with queue.slot(client):
                try:
                    answer = await queue.run(partial(count_upload, counter, decoder, upload))
                except BaseException:
                    # It may be of any size, and if it was given up the thread is still at it.
                    if release_memory is not None:
                        queue.afterwards(release_memory)
                    raise
        metrics.seconds.observe(time.perf_counter() - started)
        metrics.megapixels.observe(answer.width * answer.height / 1e6)
        if release_memory is not None and answer.width * answer.height > _LARGE_PIXELS:
            release_memory()
        metrics.unfamiliar.inc((answer.novelty or 0) > counter.far)
        return answer

    # HEAD, which load balancers and monitors like to send, FastAPI does not give to what has GET.
    @app.head("/v1/health", include_in_schema=False)
    @app.get("/v1/health")
    async def health() -> Health:
        """Report that the service is up, and how busy it is."""
        return Health(status="ok", queued=queue.taken, slots=queue.slots)

    @app.get("/v1/model", responses=_LOCKED, dependencies=locked)
    async def about_model() -> Model:
        """Describe the model and the limits of the service."""
        return model

    @app.get("/metrics", responses=_LOCKED, dependencies=locked, response_class=_PrometheusText)
    async def figures() -> Response:
        """Return figures for Prometheus."""
        return _PrometheusText(metrics.text())

    return furnish(app, page_files("index.html"), metrics)


def furnish(app: FastAPI, files: dict[str, PageFile], metrics: Metrics) -> FastAPI:
    """Add what every service here has: its page, errors that say what to do, and the common headers."""
    for address, file in files.items():
        app.add_api_route(address, file.response, methods=["GET", "HEAD"], include_in_schema=False)

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> Response:
        metrics.refusals.labels(refusal.code).inc()
        return refusal.response()

    @app.exception_handler(HTTPException)
    async def no_such_route(request: Request, error: HTTPException) -> Response:
        reason = HTTPStatus(error.status_code).phrase.lower()
        message = f"{request.method} {request.url.path[:200]}: {reason}"
        headers = dict(error.headers or {})
        return Refusal(error.status_code, reason.replace(" ", "_"), message, "see /docs", headers).response()

    app.add_middleware(_CommonHeaders, metrics=metrics)
    return app


def locked_by(token: str | None) -> list[Any]:
    """Return the dependencies of a route that requires the token, if there is one."""
    return [Depends(partial(_check_token, token))] if token else []


class _PrometheusText(Response):
    media_type = "text/plain; version=0.0.4; charset=utf-8"


async def _check_token(token: str, request: Request) -> None:
    """Compare in constant time, so that a token cannot be guessed letter by letter."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), token.encode()):
        step = "send the header Authorization: Bearer TOKEN"
        raise Refusal(401, "unauthorised", "the token: missing or wrong", step, {"WWW-Authenticate": "Bearer"})


class _CommonHeaders:
    """Puts the security headers on every answer, errors included, and counts it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name for name, _ in message["headers"]}
                for name, value in ({"Cache-Control": "no-store"} | _HEADERS).items():
                    if name.lower().encode() not in present:
                        message["headers"].append((name.lower().encode(), value.encode()))
                # The route as it is written, not the address asked for: strangers must not add labels without end.
                route = getattr(scope.get("route"), "path", "none")
                self.metrics.requests.labels(route, message["status"]).inc()
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            log.exception("a request failed by a fault of ours")
            if begun:
                raise
            fault = Refusal(500, "fault", "the service: a fault of its own", "its log says more; please report it")
            await fault.response()(scope, receive, send_with_headers)
