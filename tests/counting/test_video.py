"""Moving pictures: real files, real local streams that are cut, and videos written and read back."""

import gc
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from itertools import count, pairwise
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc.counting.video import Smoother, VideoWriter, frames, parse_every
from gbdgc.counting.video.mailbox import Frame
from gbdgc.counting.video.opening import is_video, open_source
from gbdgc.errors import InputError

av = pytest.importorskip("av", reason="the extra 'video' is not installed")

WIDTH, HEIGHT, FPS = 64, 48, 10


def picture(index: int, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """A frame whose grey says its number, with a white upper left quarter."""
    image = np.full((height, width, 3), 4 * (index % 50), np.uint8)
    image[: height // 4, : width // 4] = 255
    return image


def number_in(image: NDArray[np.uint8]) -> int:
    return round(float(image[-8:, -8:].mean()) / 4)


def make_video(path: Path, seconds: float = 3, fps: int = FPS) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"g": "10", "tune": "zerolatency"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(round(seconds * fps)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(index), "rgb24")))
        container.mux(stream.encode())
    return path


def video_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gbdgc-video" and thread.is_alive()]


# Files


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "avi"])
def test_a_file_gives_one_frame_for_each_interval_by_its_timestamps(tmp_path: Path, suffix: str) -> None:
    got = list(frames(make_video(tmp_path / f"a.{suffix}"), every=0.5))
    assert [frame.index for frame in got] == [0, 5, 10, 15, 20, 25]
    assert [frame.time for frame in got] == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5], abs=2e-3)
    assert [number_in(frame.image) for frame in got] == pytest.approx([0, 5, 10, 15, 20, 25], abs=1)


def test_every_zero_gives_each_frame_and_a_slow_reader_loses_none(tmp_path: Path) -> None:
    got = []
    for frame in frames(make_video(tmp_path / "a.mp4"), every=0):
        time.sleep(0.01)
        got.append(frame.index)
    assert got == list(range(30))


def test_a_reader_can_go_on_behind_a_time_and_end_at_another(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4")
    reader = frames(path, every=0.5, after=0.5, seconds=2)
    assert (reader.live, reader.rate, reader.duration) == (False, FPS, pytest.approx(3, abs=0.01))
    assert [frame.index for frame in reader] == [10, 15]
    assert [frame.index for frame in frames(path, every=0, after=2.7)] == [28, 29]


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "avi"])
@pytest.mark.parametrize("every", [0, 0.3, 1])
def test_stretches_give_the_frames_of_the_whole(tmp_path: Path, suffix: str, every: float) -> None:
    path = make_video(tmp_path / f"a.{suffix}", seconds=6)
    whole = list(frames(path, every))
    ends = [1.7, 3.0, 4.1, None]
    cut = [
        frame
        for start, end in zip([0.0, *ends], ends, strict=False)
        for frame in frames(path, every, start=start or 0.0, seconds=end)
    ]
    assert [frame.time for frame in cut] == [frame.time for frame in whole]
    assert all((one.image == other.image).all() for one, other in zip(cut, whole, strict=True))


def test_frames_are_taken_by_time_where_their_rate_varies(tmp_path: Path) -> None:
    path = tmp_path / "vfr.mkv"
    times = [0.0, 0.1, 0.9, 1.4, 4.2, 4.3, 5.0]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"tune": "zerolatency"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for index, seconds in enumerate(times):
            shot = av.VideoFrame.from_ndarray(picture(index), "rgb24")
            shot.pts, shot.time_base = round(seconds * 1000), Fraction(1, 1000)
            container.mux(stream.encode(shot))
        container.mux(stream.encode())
    assert [round(frame.time, 2) for frame in frames(path, every=1)] == [0.0, 1.4, 4.2, 5.0]


@pytest.mark.parametrize(
    ("matrix", "white"),
    [((0, 1, -1, 0), (0, -1)), ((-1, 0, 0, -1), (-1, -1)), ((0, -1, 1, 0), (-1, 0))],
    ids=["a quarter turn clockwise", "half a turn", "a quarter turn anticlockwise"],
)
def test_a_film_is_turned_as_the_camera_was_held(
    tmp_path: Path, matrix: tuple[int, int, int, int], white: tuple[int, int]
) -> None:
    path = make_video(tmp_path / "a.mp4", seconds=0.5)
    content = path.read_bytes()
    start = content.index(b"tkhd") + 44  # the display matrix in the track's header
    a, b, c, d = (65536 * value for value in matrix)
    turned = np.array([a, b, 0, c, d, 0, 0, 0, 1 << 30], ">i4").tobytes()
    path.write_bytes(content[:start] + turned + content[start + 36 :])

    image = next(iter(frames(path))).image
    assert image.shape[:2] == ((WIDTH, HEIGHT) if matrix[0] == 0 else (HEIGHT, WIDTH))
    corners = {(row, column): image[row, column].mean() for row in (0, -1) for column in (0, -1)}
    assert max(corners, key=lambda corner: corners[corner]) == white


def test_leaving_early_ends_the_decoding_thread(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4")
    with closing(frames(path, every=0)) as reader:
        next(reader)
        assert len(video_threads()) == 1
    assert video_threads() == []
    for _ in frames(path, every=0):
        break
    assert video_threads() == []


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_pictures(content: bytes) -> bytes:
    start, end = content.index(b"mdat") + 4, content.index(b"moov") - 4
    return content[:start] + bytes(end - start) + content[end:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: b"no video at all\n" * 99, "not a video"),
        (half, "not a video"),
        (without_pictures, "not one picture can be decoded"),
    ],
    ids=["zero bytes", "text", "cut in half", "pictures overwritten"],
)
def test_a_file_that_is_no_video_is_named_with_the_reason(
    tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    path = make_video(tmp_path / "holiday.mp4")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=rf"holiday\.mp4: .*{reason}"):
        list(frames(path))


@pytest.mark.parametrize("name", ["notes.txt", "none.mp4", "."])
def test_what_cannot_be_opened_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("a plain text\n" * 50)
    with pytest.raises(InputError, match=r"not a video|no such file|not a file"):
        frames(tmp_path / name)


def test_a_video_of_too_many_pixels_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    path = make_video(tmp_path / "film.mp4", seconds=0.2)
    with pytest.raises(InputError, match=r"film\.mp4: 64 x 48 is over the limit of 3,071 pixels; raise max_pixels"):
        frames(path, max_pixels=WIDTH * HEIGHT - 1)
    assert len(list(frames(path, every=0, max_pixels=WIDTH * HEIGHT))) == 2


@pytest.mark.parametrize("live", [False, True])
def test_a_video_whose_pictures_grow_too_large_ends_there(tmp_path: Path, live: bool) -> None:
    path = tmp_path / "grows.mjpeg"
    with path.open("wb") as file:
        for side in [64] * 20 + [640] * 5:
            Image.new("RGB", (side, side)).save(file, "JPEG")
    reports: list[str] = []
    reader = frames(path, every=0, max_pixels=100_000, live=live, report=reports.append)
    got: list[Frame] = []
    with pytest.raises(InputError, match=r"grows\.mjpeg: 640 x 640 is over the limit of 100,000 pixels"):
        got.extend(reader)
    assert {frame.image.shape for frame in got} == {(64, 64, 3)}
    assert reports == [], "to connect again would not help"


def test_a_truncated_file_gives_its_frames_and_then_says_where_it_ends(tmp_path: Path) -> None:
    path = make_video(tmp_path / "long.mkv", seconds=20)
    path.write_bytes(half(path.read_bytes()))
    got: list[Frame] = []
    with pytest.raises(InputError, match=r"long\.mkv: truncated: it ends at \d+\.\d s of 20\.0 s"):
        got.extend(frames(path, every=0))
    reader = frames(path, every=1)
    assert [next(reader).index for _ in range(3)] == [0, 10, 20]


def test_an_error_keeps_nothing_of_its_caller_alive(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4")
    path.write_bytes(without_pictures(path.read_bytes()))

    def fail() -> weakref.ref[Frame]:
        large = Frame(0, picture(0), 0)
        with suppress(InputError):
            list(frames(path))
        return weakref.ref(large)

    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()


def test_damaged_parts_are_skipped_and_reported(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", seconds=4)
    content = bytearray(path.read_bytes())
    start, end = content.index(b"mdat") + 4, content.index(b"moov") - 4
    middle = (start + end) // 2
    content[middle : middle + 400] = bytes(400)
    path.write_bytes(content)
    reports: list[str] = []
    got = [number_in(frame.image) for frame in frames(path, every=0, report=reports.append)]
    assert 20 < len(got) < 40
    assert got[-1] == pytest.approx(39, abs=1)
    assert re.fullmatch(r".*a\.mp4: \d+ damaged parts were skipped", reports[0])


def test_a_missing_pyav_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['av'] = None\n"
        "from gbdgc.counting.video import frames\n"
        "try: frames('a.mp4')\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert 'pip install "gbdgc[video]"' in done.stdout


def test_importing_the_module_does_not_import_pyav() -> None:
    program = "import sys, gbdgc.counting.video; print('av' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


# Live streams


class Camera:
    """A network camera on the loopback: sends frames at its own pace, and can be cut off and come back."""

    scheme = "tcp"

    def __init__(self, pieces: list[bytes], seconds: float) -> None:
        self.pieces, self.seconds = pieces, seconds
        self.visits = 0
        self.online = threading.Event()
        self.online.set()
        self._gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.address = f"{self.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        self._thread.join()
        self._listener.close()

    def greet(self, connection: socket.socket) -> None:
        """Say what the protocol wants before pictures."""

    def _serve(self) -> None:
        while not self._gone.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection, suppress(OSError):
                self.greet(connection)
                self.visits += 1
                self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        began = time.monotonic()
        for index, piece in enumerate(self.pieces):
            pause = began + index * self.seconds / len(self.pieces) - time.monotonic()
            if not self.online.is_set() or self._gone.wait(max(0, pause)):
                return
            connection.sendall(piece)


def mpeg_camera(tmp_path: Path, seconds: float) -> Camera:
    """Plays a film of ten seconds in this many, as MPEG-TS over TCP."""
    film = make_video(tmp_path / "camera.ts", seconds=10, fps=25).read_bytes()
    return Camera([film[start : start + 188 * 4] for start in range(0, len(film), 188 * 4)], seconds)


class RtspCamera(Camera):
    """Speaks as much RTSP as one viewer needs: H.264 in RTP packets between the replies (RFC 2326, 6184)."""

    scheme = "rtsp"

    def __init__(self, seconds: float) -> None:
        encoder = av.CodecContext.create("libx264", "w")
        encoder.width, encoder.height, encoder.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        encoder.time_base, encoder.options = Fraction(1, 25), {"g": "5", "tune": "zerolatency"}
        shots = [encoder.encode(av.VideoFrame.from_ndarray(picture(index), "rgb24")) for index in range(250)]
        units = [re.split(b"\0\0\0?\1", bytes(packet))[1:] for packets in shots for packet in packets]
        numbers = count()
        super().__init__([b"".join(self._packets(unit, tick, numbers)) for tick, unit in enumerate(units)], seconds)

    @staticmethod
    def _packets(units: list[bytes], tick: int, numbers: Iterator[int]) -> Iterator[bytes]:
        for unit in units:
            last = 0x80 if unit is units[-1] else 0
            packet = struct.pack(">BBHII", 0x80, last | 96, next(numbers) % 65536, tick * 3600, 7) + unit
            yield struct.pack(">cBH", b"$", 0, len(packet)) + packet

    def greet(self, connection: socket.socket) -> None:
        description = (
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n"
            "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:video\r\n"
        )
        with connection.makefile("r", newline="\r\n") as requests:
            method = ""
            while method != "PLAY":
                lines = list(iter(lambda: requests.readline().strip(), ""))
                method = lines[0].split(" ")[0]
                number = next(line for line in lines if line.startswith("CSeq"))
                body = description if method == "DESCRIBE" else ""
                connection.sendall(
                    f"RTSP/1.0 200 OK\r\n{number}\r\nSession: 1\r\nPublic: DESCRIBE, SETUP, PLAY\r\n"
                    "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nContent-Type: application/sdp\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
                )


@pytest.mark.parametrize("kind", ["rtsp", "tcp"])
def test_a_stream_that_is_cut_is_connected_again_and_the_frames_go_on(tmp_path: Path, kind: str) -> None:
    reports: list[str] = []
    served = RtspCamera(seconds=5) if kind == "rtsp" else mpeg_camera(tmp_path, seconds=5)
    with served, closing(frames(served.address, every=0, retries=1, pause=0.1, report=reports.append)) as reader:
        got = [[next(reader) for _ in range(3)]]
        for cuts in (1, 2):
            served.online.clear()
            deadline = time.monotonic() + 10
            while len(reports) < cuts and time.monotonic() < deadline:
                time.sleep(0.01)
            served.online.set()
            got.append([next(reader) for _ in range(4)][1:])  # the first may be left from before
    assert served.visits == 3
    for earlier, later in pairwise(frame for part in got for frame in part):
        assert earlier.time < later.time
        assert earlier.index < later.index
    assert got[-1][-1].image.shape == (HEIGHT, WIDTH, 3)
    assert reports == [f"{served.address}: lost (it ended); connecting again in 0.1 s, attempt 1 of 1"] * 2
    assert video_threads() == []


def test_a_stream_that_stays_away_is_given_up_after_ever_longer_pauses(tmp_path: Path) -> None:
    reports: list[str] = []
    with mpeg_camera(tmp_path, seconds=0.5) as served:
        reader = frames(served.address, every=0, live=True, pause=0.05, retries=3, report=reports.append)
        next(reader)
    with pytest.raises(InputError, match=r"lost \(.*refused.*\); 3 attempts to connect again failed"):
        list(reader)
    assert [report.split(" in ")[1] for report in reports] == [
        "0.05 s, attempt 1 of 3",
        "0.1 s, attempt 2 of 3",
        "0.2 s, attempt 3 of 3",
    ]


def test_a_slow_reader_of_a_live_stream_gets_the_newest_frame_and_the_others_are_dropped(tmp_path: Path) -> None:
    with mpeg_camera(tmp_path, seconds=3) as served, closing(frames(served.address, every=0, retries=0)) as reader:
        began = time.monotonic() - next(reader).time
        got: list[Frame] = []
        ages = []
        for _ in range(5):
            time.sleep(0.2)
            got.append(next(reader))
            ages.append(time.monotonic() - began - got[-1].time)
        dropped = reader.dropped
    steps = np.diff([frame.index for frame in got])
    assert steps.sum() > 20, "250 frames in 3 seconds: in each fifth of a second some 16 go by"
    assert dropped >= got[-1].index - len(got), "all that went by unread, and what came since"
    assert np.median(ages) < 0.5


def test_a_live_stream_ends_by_the_clock_also_when_nothing_comes(tmp_path: Path) -> None:
    with mpeg_camera(tmp_path, seconds=0.5) as served:
        began = time.monotonic()
        reader = frames(served.address, every=0, live=True, seconds=1.5, pause=60, report=lambda line: None)
        assert reader.live
        assert all(frame.time < 1.5 for frame in reader)
        assert 1.4 < time.monotonic() - began < 6


def test_an_end_without_a_number_is_refused_and_one_after_all_centuries_is_not(tmp_path: Path) -> None:
    with mpeg_camera(tmp_path, seconds=1) as served:
        for seconds in (float("inf"), float("nan")):
            with pytest.raises(InputError, match=r"must be a number of seconds; leave it out for no end"):
                frames(served.address, seconds=seconds)
        with closing(frames(served.address, every=0, live=True, seconds=1e300)) as reader:
            assert next(reader).image.shape == (HEIGHT, WIDTH, 3)


def test_a_long_wait_for_a_lost_stream_ends_when_the_reader_is_closed(tmp_path: Path) -> None:
    lost = threading.Event()
    with mpeg_camera(tmp_path, seconds=0.3) as served:
        reader = frames(served.address, every=0, pause=60, report=lambda line: lost.set())
        next(reader)
    assert lost.wait(10)
    reader.close()
    assert video_threads() == []


def test_a_wrong_address_fails_at_once_and_never_shows_the_password() -> None:
    with pytest.raises(InputError, match="refused") as caught:
        frames("rtsp://guard:half@secret@127.0.0.1:9/door")
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith("rtsp://***@127.0.0.1:9/door")


@pytest.mark.parametrize("source", ["concat://a|b", "gopher://x/y"])
def test_an_address_of_another_kind_is_refused(source: str) -> None:
    with pytest.raises(InputError, match="the streams known are http"):
        open_source(source)


@pytest.mark.skipif(sys.platform != "linux", reason="names of devices are Linux's")
@pytest.mark.parametrize("source", ["99", 99, "/dev/video99"])
def test_a_camera_that_is_not_there_is_named(source: str | int) -> None:
    with pytest.raises(InputError, match="no camera /dev/video99"):
        frames(source)


def test_videos_are_known_by_name() -> None:
    assert all(map(is_video, ["a.MP4", "b/c.mkv", "rtsp://x/y", "http://x/live", "/dev/video0", "0"]))
    assert not any(map(is_video, ["a.jpg", "folder", "b.tar.gz", "1200.jpg"]))


# Writing

HAS_OPENH264 = "libopenh264" in av.codecs_available
FREE_CODEC, MOV_CODEC = ("h264", "h264") if HAS_OPENH264 else ("vp9", "mpeg4")


@pytest.mark.parametrize("size", [(64, 48), (65, 47), (1, 1)])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_what_is_written_needs_no_gpl_and_reads_back(tmp_path: Path, size: tuple[int, int], suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    with VideoWriter(path, fps=2.5, size=size) as writer:
        # By the encoder: what it wrote is H.264 alike, be it of OpenH264 or of x264.
        assert writer._stream.codec_context.name in {"libopenh264", "libvpx-vp9", "mpeg4"}
        for index in range(5):
            writer.write(picture(10 + index, *size))
        assert not path.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    with av.open(str(path)) as container:
        context = container.streams.video[0].codec_context
        assert (context.codec.canonical_name, context.pix_fmt) == (FREE_CODEC, "yuv420p")
        assert (context.width, context.height) == (size[0] + size[0] % 2, size[1] + size[1] % 2)
    got = list(frames(path, every=0))
    assert [frame.time for frame in got] == pytest.approx([0, 0.4, 0.8, 1.2, 1.6], abs=2e-3)


@pytest.mark.parametrize(
    ("codec", "suffix", "written"),
    [("h264", "mp4", "h264"), ("vp9", "mkv", "vp9"), ("mpeg4", "mp4", "mpeg4"), (None, "mov", MOV_CODEC)],
)
def test_another_codec_is_written_where_it_is_asked_for(
    tmp_path: Path, codec: str | None, suffix: str, written: str
) -> None:
    path = tmp_path / f"out.{suffix}"
    with VideoWriter(path, fps=10, size=(64, 64), codec=codec) as writer:
        for index in range(5):
            writer.write(picture(index, 64, 64))
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.codec.canonical_name == written
    assert len(list(frames(path, every=0))) == 5


@pytest.mark.parametrize(("codec", "suffix"), [("theora", "mp4"), ("vp9", "mov")])
def test_a_codec_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path, codec: str, suffix: str) -> None:
    with pytest.raises(InputError, match=r"choose (h264|another)"):
        VideoWriter(tmp_path / f"out.{suffix}", 10, (64, 64), codec)
    assert list(tmp_path.iterdir()) == []


def test_pictures_with_a_time_are_shown_at_it(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.mp4", fps=2, size=(64, 48)) as writer:
        for index, seconds in enumerate([0, 0.51, 3.02, 3.04, 4]):
            writer.write(picture(index), seconds)
    got = [frame.time for frame in frames(tmp_path / "a.mp4", every=0)]
    assert got == pytest.approx([0, 0.5, 3, 3.5, 4], abs=2e-3), "in steps of half a second, and none at once"


@pytest.mark.parametrize("every", [1.5, 1800, 3600, 6 * 3600])
def test_pictures_may_be_hours_apart(tmp_path: Path, every: float) -> None:
    with VideoWriter(tmp_path / "a.mp4", fps=1 / every, size=(64, 48)) as writer:
        for index in range(3):
            writer.write(picture(index), index * every)
    got = [frame.time for frame in frames(tmp_path / "a.mp4", every=0)]
    assert got == pytest.approx([0, every, 2 * every])


def test_colours_survive_writing_and_reading(tmp_path: Path) -> None:
    colours = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [240, 200, 20]], np.uint8)
    image = np.repeat(np.repeat(colours[None], 64, axis=0), 32, axis=1)
    with VideoWriter(tmp_path / "a.mp4", fps=5, size=(128, 64)) as writer:
        writer.write(image)
    (got,) = frames(tmp_path / "a.mp4")
    assert np.abs(got.image[32, 16::32].astype(int) - colours).max() < 12


def test_a_failure_while_writing_leaves_a_video_of_what_was_written(tmp_path: Path) -> None:
    def fail_after_three() -> None:
        with VideoWriter(tmp_path / "a.mp4", fps=10, size=(64, 48)) as writer:
            for index in range(3):
                writer.write(picture(index))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_after_three()
    assert len(list(frames(tmp_path / "a.mp4", every=0))) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_picture_there_is_no_file_and_the_old_one_stays(tmp_path: Path) -> None:
    (tmp_path / "old.mp4").write_text("old")
    for name in ("old.mp4", "new.mp4"):
        with VideoWriter(tmp_path / name, fps=10, size=(64, 48)):
            pass
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"old.mp4": "old"}


def test_a_picture_of_another_size_is_scaled(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.mp4", fps=10, size=(64, 48)) as writer:
        writer.write(picture(1))
        writer.write(picture(2, 128, 96))
    assert [frame.image.shape for frame in frames(tmp_path / "a.mp4", every=0)] == [(48, 64, 3)] * 2


@pytest.mark.parametrize(
    ("name", "fps", "size", "reason"),
    [
        ("a.gif", 10, (64, 48), r"cannot write '\.gif'; choose \.mp4"),
        ("a.mp4", 0, (64, 48), r"0 pictures per second, .*; choose another time between them, or write no video"),
        ("a.mp4", 10, (0, 48), "nothing to show"),
    ],
)
def test_a_video_that_cannot_be_is_refused(
    tmp_path: Path, name: str, fps: float, size: tuple[int, int], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        VideoWriter(tmp_path / name, fps, size)
    assert list(tmp_path.iterdir()) == []


# Times and smoothing


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("500ms", 0.5), ("2", 2), (" 1.5 s ", 1.5), (".5", 0.5), ("2min", 120), ("1h", 3600), ("0", 0), (3, 3)],
)
def test_a_time_is_read_in_its_unit(text: str | float, seconds: float) -> None:
    assert parse_every(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 frame", "1e9", "nan", "inf", "9" * 400])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError, match=r"every=.*: not a time; write 1s, 500ms"):
        parse_every(text)


def smooth(counts: Iterable[float], times: Iterable[float], **options: int) -> list[float]:
    smoother = Smoother(**options)
    return [smoother(count, time) for count, time in zip(counts, times, strict=True)]


def test_one_wild_count_does_not_move_the_smoothed_count() -> None:
    assert smooth([10, 10, 900, 10, 10], [0, 1, 2, 3, 4]) == pytest.approx([10] * 5)


def test_after_a_lasting_change_half_the_way_is_gone_in_each_half_life() -> None:
    counts = smooth([*[0] * 20, 100, 100, 100], [5 * index for index in range(23)], half_life=5)
    assert counts[-2:] == pytest.approx([50, 75], abs=0.1)


def test_the_first_count_does_not_outweigh_what_follows() -> None:
    """Four seconds after a crowd of 97 became one of 49, it is 49 that is shown."""
    assert smooth([97, 49, 49, 49, 49], range(5))[-1] == pytest.approx(49, rel=0.1)
    assert smooth([97] * 10 + [49] * 5, range(15))[-1] == pytest.approx(49, rel=0.2)


def test_smoothing_depends_on_the_time_passed_and_not_on_the_number_of_frames() -> None:
    # Two counts at the moment of the change, as the median takes a single one for an outlier.
    sparse = smooth([0, 0, 100, 100], [0, 4, 4, 8])
    dense = smooth([0, 0, *[100] * 41], [0, 4, *(4 + index / 10 for index in range(41))])
    assert 50 < sparse[-1] < 90
    assert dense[-1] == pytest.approx(sparse[-1])


def test_smoothing_lessens_noise_and_keeps_the_level() -> None:
    raw = 100 + np.random.default_rng(0).normal(0, 10, 300)
    steady = np.array(smooth(raw, range(300)))[20:]
    assert steady.std() < 0.5 * raw.std()
    assert steady.mean() == pytest.approx(100, abs=2)
