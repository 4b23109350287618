"""Writing videos that browsers and players can show, with an encoder whose licence does not restrict distribution."""

from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gbdgc.counting.video.opening import load_av
from gbdgc.errors import InputError
from gbdgc.files import AnyPath, atomic_write

FORMATS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska"}

_OPTIONS = {
    "libopenh264": {},
    "libvpx-vp9": {"crf": "30", "b": "0", "deadline": "realtime", "cpu-used": "7", "row-mt": "1"},
    "mpeg4": {"qscale": "3"},
    "libx264": {"crf": "21", "preset": "veryfast"},
}
CODECS = {"h264": ("libopenh264", "libx264"), "vp9": ("libvpx-vp9",), "mpeg4": ("mpeg4",)}
"""The encoders of each codec that can be asked for."""
_UNASKED = ("libopenh264", "libvpx-vp9", "mpeg4")
"""The first of these that this PyAV has and the container holds. Not libx264, which is under the GPL."""
_NOT_IN = {"mov": {"libvpx-vp9"}}
_BT709 = 1
LONGEST_SECONDS = 6 * 3600
"""For which one picture can be shown; MP4 counts it in 31 bits, and fails at a day."""


class VideoWriter:
    """Write RGB pictures as a video; the file takes its name when it is complete.

    Used in a ``with`` statement, it completes the file also when the block fails, so that what was written until then
    can be watched. Without any picture there is no file.

    Parameters
    ----------
    path : ``.mp4``, ``.m4v``, ``.mov`` or ``.mkv``.
    fps : pictures per second, as played.
    size : width and height. Encoders want both even: an odd one is extended by a pixel. Pictures of another size are
        scaled to it.
    codec : "h264", "vp9" or "mpeg4"; by default the first that needs no GPL encoder: H.264 where PyAV has
        OpenH264, else VP9, and MPEG-4 in ``.mov``.
    """

    def __init__(self, path: AnyPath, fps: float, size: tuple[int, int], codec: str | None = None) -> None:
        av = load_av()
        self.path = Path(path)
        if self.path.suffix.lower() not in FORMATS:
            raise InputError(path, f"cannot write '{self.path.suffix}'", f"choose {', '.join(FORMATS)}")
        if not 1 / LONGEST_SECONDS <= fps <= 1000:
            reason = f"{fps:g} pictures per second, and a video has between one in six hours and 1000"
            raise InputError(path, reason, "choose another time between them, or write no video")
        if min(size) < 1:
            raise InputError(path, f"a video of {size[0]} x {size[1]} pixels has nothing to show")
        if codec is not None and codec not in CODECS:
            raise InputError(f"codec {codec!r}", "not one that can be written", f"choose {', '.join(CODECS)}")
        container = FORMATS[self.path.suffix.lower()]
        usable = av.codecs_available - _NOT_IN.get(container, set())
        encoder = next((name for name in (CODECS[codec] if codec else _UNASKED) if name in usable), None)
        if encoder is None:
            raise InputError(path, f"no encoder here writes {codec or 'a video'} into it", "choose another codec")
        self.size = size
        self.written = 0
        self._place = -1
        with ExitStack() as stack:
            file = stack.enter_context(atomic_write(self.path))
            self._container = av.open(file, "w", format=container)
            # Below one a second it is the time between two that is a handy number: an hour, say.
            slow = fps < 1
            rate = Fraction(1 / fps if slow else fps).limit_denominator(1001)
            self._rate = 1 / rate if slow else rate
            self._stream = self._container.add_stream(encoder, rate=self._rate)
            self._stream.width, self._stream.height = (side + side % 2 for side in size)
            self._stream.pix_fmt = "yuv420p"
            self._stream.options = _OPTIONS[encoder]
            # Without these tags players guess the colours, and guess differently.
            self._stream.codec_context.colorspace = self._stream.codec_context.color_primaries = _BT709
            self._stream.codec_context.color_trc = _BT709
            self._unfinished: ExitStack | None = stack.pop_all()

    def write(self, image: NDArray[np.uint8], time: float = 0.0) -> None:
        """Append a picture; one whose time, in seconds from the first, is later than its turn waits until then."""
        av = load_av()
        if image.shape[1::-1] != self.size:
            image = np.asarray(Image.fromarray(image).resize(self.size, Image.Resampling.BICUBIC))
        height, width = image.shape[:2]
        if height % 2 or width % 2:
            image = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
        picture = picture.reformat(format="yuv420p", dst_colorspace="ITU709")
        self._place = max(self._place + 1, round(time * self._rate))
        picture.pts, picture.time_base = self._place, 1 / self._rate
        self._container.mux(self._stream.encode(picture))
        self.written += 1

    def close(self) -> None:
        """Complete the file and give it its name; further calls do nothing."""
        if self._unfinished is None:
            return
        unfinished, self._unfinished = self._unfinished, None
        with suppress(_NothingWritten), unfinished:
            if not self.written:
                raise _NothingWritten
            self._container.mux(self._stream.encode())
            self._container.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _NothingWritten(Exception):
    """Makes the atomic write leave no file."""
