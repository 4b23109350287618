"""Reading a multipart upload into memory: stops at the limit, takes bounded time, and never touches the disk."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from gbdgc.counting import Zone, zones_from_json
from gbdgc.errors import InputError
from gbdgc.server.limits import Limits, Refusal

_FIELDS = ("image", "zones", "overlay", "density", "points")
_SWITCH = {"true": True, "1": True, "false": False, "0": False, "": False}
_FIELD_BYTES = 256_000
_FIRST_SECONDS = 5.0  # so long a body may take whatever its size, before the least rate applies
_EXAMPLE = "send it as curl does: curl -F image=@street.jpg ADDRESS/v1/count"


class Upload(NamedTuple):
    """The fields of a request."""

    image: bytes
    zones: tuple[Zone, ...]
    overlay: bool
    density: bool
    points: bool


async def read_upload(request: Request, limits: Limits, hold: Callable[[int], None]) -> Upload:
    """Read the request's body, or say what is wrong with it; ``hold`` is told of every piece, and may refuse it."""
    content_type = request.headers.get("content-type", "")
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise Refusal(415, "not_multipart", f"the body: '{content_type[:80]}', not multipart/form-data", _EXAMPLE)
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in {"utf-8", "utf8"}:  # the parser would take any codec that Python has
        raise Refusal(400, "bad_multipart", f"the body: its charset is '{charset[:80]}', not UTF-8", _EXAMPLE)
    try:
        async with receiving(request, limits, hold) as body:
            parser = MultiPartParser(
                request.headers, body, max_files=1, max_fields=len(_FIELDS), max_part_size=_FIELD_BYTES
            )
            parser.spool_max_size = limits.upload_bytes  # What the body cannot exceed: so a part is never put on disk.
            form = await parser.parse()
    except MultiPartException as error:
        raise Refusal(400, "bad_multipart", f"the body: {error.message.rstrip('.')}", _EXAMPLE) from error
    try:
        return await _fields(form, limits)
    finally:
        await form.close()


@asynccontextmanager
async def receiving(
    request: Request, limits: Limits, hold: Callable[[int], None]
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Give the block the request's body as it comes, and refuse one that is too large, too slow or cut off."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.upload_bytes:
        raise _too_large(limits)
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(min(limits.seconds, _FIRST_SECONDS)) as patience:
            yield _bounded(request, limits, hold, patience)
    except TimeoutError as error:
        seconds = asyncio.get_running_loop().time() - began
        raise Refusal(
            408,
            "upload_too_slow",
            f"the body: not here after {seconds:.1f} seconds",
            f"send a smaller picture, or send it faster than {limits.upload_rate:,} bytes per second",
            {"Connection": "close"},
        ) from error
    except ClientDisconnect as error:
        raise Refusal(400, "gone", "the body: the connection was closed before its end", "ask again") from error


async def _bounded(
    request: Request, limits: Limits, hold: Callable[[int], None], patience: asyncio.Timeout
) -> AsyncGenerator[bytes, None]:
    """Yield the body as it comes; with every piece it may take a little longer, up to the limit of time."""
    began = asyncio.get_running_loop().time()
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limits.upload_bytes:
            raise _too_large(limits)
        hold(len(chunk))
        patience.reschedule(began + min(limits.seconds, _FIRST_SECONDS + received / limits.upload_rate))
        yield chunk


def _too_large(limits: Limits) -> Refusal:
    return Refusal(
        413,
        "upload_too_large",
        f"the body: over the limit of {limits.upload_bytes:,} bytes",
        "send a smaller picture, or have the service started with a larger --max-upload",
        {"Connection": "close"},
    )


async def _fields(form: FormData, limits: Limits) -> Upload:
    unknown = next((name for name in form if name not in _FIELDS), None)
    if unknown is not None:
        raise _bad(unknown[:80], "there is no such field", f"the fields are {', '.join(_FIELDS)}")
    repeated = next((name for name in _FIELDS if len(form.getlist(name)) > 1), None)
    if repeated is not None:
        raise _bad(repeated, "it is there twice", "send each field once, and each picture in a request of its own")
    image = form.get("image")
    if not isinstance(image, UploadFile):
        reason = "missing" if image is None else "a text, not a file"
        raise _bad("image", reason, _EXAMPLE)
    texts = {name: form.get(name, "") for name in _FIELDS[1:]}
    for name, value in texts.items():
        if isinstance(value, UploadFile):
            raise _bad(name, "a file, not a text", f"send it as curl does: -F '{name}=...'")
    zones, *switches = texts.items()
    return Upload(
        await image.read(), _zones(str(zones[1]), limits), *(_switch(name, str(text)) for name, text in switches)
    )


def _zones(text: str, limits: Limits) -> tuple[Zone, ...]:
    if not text:
        return ()
    try:
        zones = zones_from_json(text, most=limits.zones)
    except InputError as error:
        raise bad_zones(error.reason, error.next_step) from error
    # What each costs grows with the picture, and the one thread that counts does not give up in the midst of them.
    if (corners := sum(len(zone.corners) for zone in zones)) > limits.corners:
        raise bad_zones(f"{corners:,} corners in all, over the limit of {limits.corners:,}")
    return zones


def bad_zones(reason: str, next_step: str = "") -> Refusal:
    """Return the answer to zones that cannot be counted."""
    return _bad("zones", reason, next_step or "see /docs for the shape of zones")


def _switch(name: str, text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise _bad(name, f"'{text[:80]}' is neither true nor false", "write true or false")
    return _SWITCH[text.lower()]


def _bad(name: str, reason: str, next_step: str) -> Refusal:
    return Refusal(400, "bad_field", f"{name}: {reason}", next_step)
