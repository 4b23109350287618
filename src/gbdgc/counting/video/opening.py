"""Opening video files, cameras and streams."""

import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gbdgc.errors import InputError, as_input_error, install_advice
from gbdgc.runs import without_password

if TYPE_CHECKING:
    from av.container import InputContainer

VIDEO_SUFFIXES = frozenset(
    {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".wmv", ".flv", ".3gp"}
)
STREAMS = frozenset({"rtsp", "rtsps", "rtmp", "rtmps", "http", "https", "tcp", "udp", "rtp", "srt"})
TIMEOUT = 10.0
"""Seconds without data after which a stream counts as lost."""

_CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}")}
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def load_av() -> ModuleType:
    """Import PyAV, or explain how to install it."""
    with as_input_error(ImportError, "", "video needs PyAV, which is not installed", install_advice("video")):
        import av
    return av


def parse_every(text: str | float) -> float:
    """Return seconds: ``"1s"``, ``"500ms"``, ``"2min"``, ``"1h"``; a bare number is seconds, 0 is every frame."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|min|h)?\s*", str(text))
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else math.nan
    if not math.isfinite(seconds):
        raise InputError(f"every={text}", "not a time", "write 1s, 500ms, 2min, or 0 for every frame")
    return seconds


def is_video(source: str) -> bool:
    """Whether the source is a video by its name: a film's suffix, a camera, an address."""
    return _camera(source) is not None or _scheme(source) is not None or Path(source).suffix.lower() in VIDEO_SUFFIXES


def open_source(source: str | int | Path) -> "InputContainer":
    """Open a file, a camera (its number or ``/dev/videoN``) or a stream's address for reading with PyAV."""
    av = load_av()
    name, options = public_name(source), {}
    camera, scheme = _camera(source), _scheme(source)
    if camera is not None:
        kind, address = camera
        if address.startswith("/") and not Path(address).exists():
            raise InputError(name, f"there is no camera {address}", "`ls /dev/video*` lists those there are")
    elif scheme is not None:
        if scheme not in STREAMS:
            known = f"the streams known are {', '.join(sorted(STREAMS))}"
            raise InputError(name, f"cannot read {scheme}://", known)
        # RTP over UDP, the default, loses packets on the first busy network.
        kind, address, options = None, str(source), {"rtsp_transport": "tcp"} if scheme == "rtsp" else {}
    else:
        path = Path(str(source))
        if not path.is_file():
            raise InputError(path, "not a file" if path.exists() else "no such file")
        if path.stat().st_size == 0:
            raise InputError(path, "the file is empty", "copy it again from where it came")
        kind, address = None, f"file:{path}"
    try:
        container: InputContainer = av.open(address, format=kind, options=options, timeout=TIMEOUT if scheme else None)
    except av.FFmpegError as error:
        what = "not a video that can be read" if scheme is None and camera is None else "could not be opened"
        raise InputError(name, f"{what} ({reason_of(error)})") from error
    # FFmpeg can show plain text as a terminal would, which nobody means by a video.
    if container.format.name == "tty" or not container.streams.video:
        container.close()
        raise InputError(name, "not a video: there are no moving pictures in it")
    return container


def is_live(source: str | int | Path, container: "InputContainer") -> bool:
    """Whether frames arrive in real time and cannot wait: cameras, and streams without an end."""
    return _camera(source) is not None or (_scheme(source) is not None and container.duration is None)


def public_name(source: str | int | Path) -> str:
    """Return the name of a source for messages, without passwords."""
    return f"camera {source}" if isinstance(source, int) else without_password(str(source))


def reason_of(error: Exception) -> str:
    """FFmpeg's reason in words, without the address, which may hold a password."""
    if type(error).__name__ == "ExitError":  # PyAV interrupts a read that takes too long
        return f"no data for {TIMEOUT:g} s"
    return getattr(error, "strerror", None) or str(error)


def _camera(source: str | int | Path) -> tuple[str, str] | None:
    """Return FFmpeg's format and address of a camera, or None for anything else."""
    match = re.fullmatch(r"(?:/dev/video)?(\d{1,3})", str(source))
    if match is None:
        return None
    if sys.platform not in _CAMERAS:
        reason = "cameras are read on Linux and macOS only"
        raise InputError(f"camera {source}", reason, "give a stream's address instead")
    kind, address = _CAMERAS[sys.platform]
    return kind, address.format(match[1])


def _scheme(source: str | int | Path) -> str | None:
    match = re.match(r"([a-z][a-z0-9+.-]+)://", str(source), re.IGNORECASE)
    return match[1].lower() if match else None
