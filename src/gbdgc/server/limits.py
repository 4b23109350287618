"""The limits of the service, and the one exception for requests beyond them."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fastapi.responses import JSONResponse
from pydantic import ConfigDict

from gbdgc.errors import InputError


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for, and how much all of them together.

    Together they bound the memory: uploads take no more than ``queue`` times ``upload_bytes``, and one picture at a
    time is decoded.
    """

    __pydantic_config__: ClassVar = ConfigDict(use_attribute_docstrings=True)  # they stand in /docs as well

    upload_bytes: int = 20_000_000
    """The whole body of a request."""
    pixels: int = 16_000_000
    """The picture's width times its height. Two slow cores count so many in about 20 seconds at full size."""
    queue: int = 16
    """Requests whose picture has arrived, and that wait or are being counted, at one time."""
    client_share: float = 0.5
    """The part of the queue, of the memory for uploads and of the connections that one client's address may hold."""
    connections: int = 512
    """Open connections; beyond them the one that has been idle longest is closed."""
    head_seconds: float = 10.0
    """How long a connection may stay open without a whole request head, and how long an answer may stay unread."""
    upload_rate: int = 4000
    """Bytes per second at which a body must arrive at least, after its first five seconds."""
    seconds: float = 30.0
    """How long a body may take to arrive, and then again how long a count may take, waiting included."""
    zones: int = 50
    """Zones in one request."""
    corners: int = 2000
    """Corners of all zones in one request."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise InputError(f"{name}={value:g}", "a limit of the service must be more than 0")

    def share_of(self, whole: int) -> int:
        """Return how much of a whole one client may hold; always something."""
        return max(1, math.ceil(min(1.0, self.client_share) * whole))


class Refusal(Exception):
    """An answer other than the one asked for; its code is the reason in one word, for programs, and never changes."""

    def __init__(
        self, status: int, code: str, message: str, next_step: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers
        self.content = {"error": {"code": code, "message": sendable(message), "next_step": sendable(next_step)}}

    def response(self) -> JSONResponse:
        """Return the answer."""
        return JSONResponse(self.content, self.status, self.headers)


def sendable(value: object) -> str:
    """Return a text that can be sent, whatever a model's file, a path or a client has put into it."""
    return str(value).encode(errors="replace").decode()
