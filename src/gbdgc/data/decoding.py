"""Decoding untrusted pictures in a separate process, which can be killed.

A file of a few kilobytes can keep a decoder busy for hours (a progressive JPEG of a million scans), exhaust memory or
crash the process. A thread cannot be stopped from outside; a process can.
"""

import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gbdgc.data.images import RGB, image_size, raise_pillow_limit, read_image
from gbdgc.errors import InputError

_SECONDS_BETWEEN_CHECKS = 0.05
_BYTES_PER_PIXEL, _SPARE_BYTES = 32, 300_000_000
"""Address space that decoding may take beyond what the process has: a picture exists in several forms at once."""
_GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""For glibc: its own defaults, but given they stay; else it keeps ever larger blocks after it has freed the first."""


class Decoded(NamedTuple):
    """A picture, and the size that it has in its file."""

    image: RGB
    """The pixels; those of a JPEG possibly at a smaller size."""
    width: int
    height: int


class Decoder:
    """Decodes pictures in another process; a caller may give up waiting, which kills the process.

    Used from one thread at a time; the settings are those of `read_image`.
    """

    def __init__(self, max_pixels: int, reduce_to: int | None = None) -> None:
        self._settings = max_pixels, reduce_to
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def start(self) -> Connection:
        """Start the process, unless it runs."""
        if self._connection is not None and self._process is not None and self._process.poll() is None:
            return self._connection
        self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            # Not by multiprocessing, whose processes import the caller's main module, whatever that imports.
            code = f"from gbdgc.data.decoding import serve; serve({theirs.fileno()}, *{self._settings})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=[theirs.fileno()], env=os.environ | _GIVE_BACK
            )
        self._connection = Connection(ours.detach())
        return self._connection

    def warm_up(self) -> None:
        """Return when the process is ready, so that the first picture need not wait for it."""
        self.read(b"P6 1 1 255\n\0\0\0", lambda: None)

    def read(self, content: bytes, check: Callable[[], None]) -> Decoded:
        """Decode a picture; ``check`` is called while it lasts, and may raise to give up."""
        connection = self.start()
        try:
            connection.send_bytes(content)
            while not connection.poll(_SECONDS_BETWEEN_CHECKS):
                check()
            answer = connection.recv()
            if not isinstance(answer, InputError):
                decoded = Decoded(np.empty(answer[0], dtype=np.uint8), *answer[1])
                connection.recv_bytes_into(decoded.image.data.cast("B"))
                return decoded
        except BaseException as error:
            # End the process and start another at once, so that the next picture finds it ready.
            self.close()
            self.start()
            if isinstance(error, EOFError | OSError):
                step = "save it again with another program"
                raise InputError("the picture", "the decoder broke down over it", step) from error
            raise
        raise answer

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None


def serve(descriptor: int, max_pixels: int, reduce_to: int | None) -> None:
    """Answer each file with its pixels, or with what is wrong with it, until the other side closes."""
    connection = Connection(descriptor)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a stop of the service lets it finish what it has
    warnings.simplefilter("ignore")  # what Pillow has to say of a stranger's picture is not for the service's log
    raise_pillow_limit(max_pixels)
    if sys.platform.startswith("linux"):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + _SPARE_BYTES + _BYTES_PER_PIXEL * max_pixels
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    while True:
        try:
            content = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            size = image_size(content, max_pixels=max_pixels)
            image = read_image(content, max_pixels=max_pixels, reduce_to=reduce_to)
        except InputError as error:
            connection.send(error)
        else:
            connection.send((image.shape, size))
            connection.send_bytes(np.ascontiguousarray(image).data.cast("B"))
            del image
        del content
