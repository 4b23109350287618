"""`gbdgc count` on real pictures, videos and streams."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc.counting.video import HALF_LIFE
from in_process import run_gbdgc

av = pytest.importorskip("av", reason="the extra 'video' is not installed")

COMMAND = (sys.executable, "-m", "gbdgc", "count")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
WIDTH, HEIGHT, FPS = 112, 96, 10
FREE_CODEC = "h264" if "libopenh264" in av.codecs_available else "vp9"
Pictures = list[NDArray[np.uint8]]
Answer = subprocess.CompletedProcess[str]


def run(folder: Path, *arguments: object) -> Answer:
    """Count in a folder of its own, where the run folders go."""
    return run_gbdgc("count", *arguments, folder=folder)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def film(path: Path, pictures: Pictures, frames: int) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"g": "10", "tune": "zerolatency"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(frames):
            picture = np.roll(pictures[0], 3 * number, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")))
        container.mux(stream.encode())
    return path


def facts_of_film(path: Path) -> tuple[str, int, float]:
    """Codec, number of frames that decode, seconds."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        codec = stream.codec_context.codec.canonical_name
        return codec, sum(1 for _ in container.decode(stream)), float(container.duration / 1e6)


@pytest.fixture(scope="module")
def small(pictures: Pictures) -> Pictures:
    return [np.asarray(Image.fromarray(picture).resize((WIDTH, HEIGHT))) for picture in pictures]


@pytest.fixture(scope="module")
def mixture(small: Pictures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything in it: names that are hard, names that collide, a bad file in the middle, a video."""
    folder = tmp_path_factory.mktemp("count")
    names = ["a.png", "A.bmp", "sub/a.png", "we ird[1]\nß.png", "z.jpg"]
    for name, picture in zip(names, small, strict=False):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / "in" / name)
    noise = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "in/noise.png")
    (folder / "in/m.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut off")
    film(folder / "in/clip.mp4", small, frames=30)
    left = [[0, 0], [WIDTH / 2, 0], [WIDTH / 2, HEIGHT], [0, HEIGHT]]
    right = [[WIDTH - x, y] for x, y in left]
    (folder / "zones.json").write_text(json.dumps({"left": left, "right, too": right}))
    return folder


@pytest.fixture(scope="module")
def whole(mixture: Path, model: Path) -> tuple[Answer, Path]:
    """One run over all of it, with everything that can be asked for."""
    options = ("--weights", model, "--zones", "zones.json", "--every", "500ms", "--format", "json")
    answer = run(mixture, "in", "--recursive", "--density", *options)
    return answer, mixture / "runs/count/in-1"


def test_each_source_becomes_one_line_of_json_and_a_bad_file_stops_nobody(whole: tuple[Answer, Path]) -> None:
    answer, _ = whole
    assert answer.returncode == 1
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    sources = [record["source"] for record in records if record["time"] is None]
    assert sources == ["in/A.bmp", "in/a.png", "in/noise.png", "in/we ird[1]\nß.png", "in/z.jpg", "in/sub/a.png"]
    assert [record["time"] for record in records if record["source"] == "in/clip.mp4"] == [0, 0.5, 1, 1.5, 2, 2.5]
    assert all(record["count"] > 0 and record["width"] == WIDTH for record in records)
    for record in records:
        assert sum(record["zones"].values()) == pytest.approx(record["count"], abs=0.01)


def test_stderr_names_the_bad_file_the_progress_and_at_last_the_folder(whole: tuple[Answer, Path]) -> None:
    answer, folder = whole
    assert "failed: in/m.jpg: damaged or truncated" in answer.stderr
    assert "7/7" in answer.stderr
    assert "Traceback" not in answer.stderr
    *_, summary, last = answer.stderr.splitlines()
    assert summary == "12 counted; 1 failed, listed in errors.csv"
    assert last == "results: runs/count/in-1"
    assert [row["source"] for row in rows(folder / "errors.csv")] == ["in/m.jpg"]


def test_counts_csv_says_what_was_printed(whole: tuple[Answer, Path]) -> None:
    answer, folder = whole
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    table = rows(folder / "counts.csv")
    assert [row["source"] for row in table] == [record["source"] for record in records]
    assert [float(row["count"]) for row in table] == [record["count"] for record in records]
    assert [float(row["zone:right, too"]) for row in table] == [record["zones"]["right, too"] for record in records]
    assert [row["smoothed"] != "" for row in table] == [row["source"] == "in/clip.mp4" for row in table]


def test_a_picture_unlike_the_training_is_warned_of_once_and_in_the_outputs(whole: tuple[Answer, Path]) -> None:
    answer, folder = whole
    assert answer.stderr.count("warning: in/noise.png: unlike the pictures the model was trained on") == 1
    warned = {row["source"] for row in rows(folder / "counts.csv") if row["warnings"]}
    assert "in/noise.png" in warned
    assert "in/a.png" not in warned


def test_names_in_the_run_folder_never_collide(whole: tuple[Answer, Path]) -> None:
    _, folder = whole
    pictures = [row for row in rows(folder / "counts.csv") if not row["time"]]
    for kind in ("overlay", "density"):
        made = [row[kind] for row in pictures]
        assert len({name.casefold() for name in made}) == len(pictures)
        assert all((folder / name).is_file() for name in made)
    assert len(list((folder / "overlays").iterdir())) == len(pictures) + 1


def test_an_overlay_is_the_picture_above_a_footer_with_the_number(whole: tuple[Answer, Path]) -> None:
    _, folder = whole
    row = next(row for row in rows(folder / "counts.csv") if row["source"] == "in/z.jpg")
    with Image.open(folder / row["overlay"]) as overlay:
        pixels = np.asarray(overlay.convert("L"), dtype=int)
    picture_height = round(pixels.shape[1] * HEIGHT / WIDTH)
    number = pixels[picture_height + 4 :, : pixels.shape[1] // 5]
    assert (number > 200).sum() > 50, "white digits on the dark footer"
    assert np.median(number) < 40


def test_density_sums_to_the_count(whole: tuple[Answer, Path]) -> None:
    _, folder = whole
    for row in rows(folder / "counts.csv"):
        with np.load(folder / row["density"]) as saved:
            assert saved["cells"].sum() == pytest.approx(float(row["count"]), abs=0.01)


def test_the_annotated_video_has_a_frame_for_each_count_and_lasts_as_long(whole: tuple[Answer, Path]) -> None:
    _, folder = whole
    codec, frames, seconds = facts_of_film(folder / "overlays/clip.mp4")
    assert (codec, frames) == (FREE_CODEC, 6)
    assert seconds == pytest.approx(3, abs=0.1)
    (video,) = rows(folder / "videos.csv")
    counts = [float(row["count"]) for row in rows(folder / "counts.csv") if row["source"] == "in/clip.mp4"]
    assert (video["source"], video["frames"], video["dropped"]) == ("in/clip.mp4", "6", "0")
    assert float(video["mean"]) == pytest.approx(np.mean(counts), abs=0.01)


def test_a_half_life_that_is_asked_for_is_used_and_the_smoothed_count_then_shown(
    whole: tuple[Answer, Path], mixture: Path, model: Path, tmp_path: Path
) -> None:
    default = rows(whole[1] / "counts.csv")
    options = ("--weights", model, "--zones", "zones.json", "--every", "500ms", "--format", "json")
    for half_life in (HALF_LIFE, 0):
        answer = run(mixture, "in/clip.mp4", *options, "--smooth", half_life, "--out", tmp_path / str(half_life))
        assert answer.returncode == 0, answer.stderr
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    newest = [record["count"] for record in records]
    medians = [np.median(newest[max(0, number - 2) : number + 1]) for number in range(len(newest))]
    assert [record["smoothed"] for record in records] == pytest.approx(medians, abs=0.01)
    assert [row["smoothed"] for row in default if row["source"] == "in/clip.mp4"] == [
        row["smoothed"] for row in rows(tmp_path / str(HALF_LIFE) / "counts.csv")
    ]
    shown, unasked = (
        last_frame(folder / "overlays/clip.mp4").astype(int) for folder in (tmp_path / str(HALF_LIFE), whole[1])
    )
    footer = slice(round(shown.shape[1] * HEIGHT / WIDTH) + 4, None)
    assert np.abs(shown[footer] - unasked[footer]).max() > 100


def last_frame(film: Path) -> NDArray[np.uint8]:
    with av.open(str(film)) as container:
        *_, last = container.decode(video=0)
        return np.asarray(last.to_ndarray(format="rgb24"), dtype=np.uint8)


def test_the_run_can_be_repeated_from_what_its_folder_says(whole: tuple[Answer, Path], model: Path) -> None:
    _, folder = whole
    settings = json.loads((folder / "config.yaml").read_text())
    assert (settings["sources"], settings["weights"], settings["every"]) == (["in"], str(model), 0.5)
    assert (folder / "environment.json").is_file()


def test_resuming_a_finished_run_counts_only_what_is_new_or_mended(
    whole: tuple[Answer, Path], mixture: Path, model: Path, small: Pictures, tmp_path: Path
) -> None:
    place = shutil.copytree(mixture, tmp_path / "copy")
    folder = place / whole[1].relative_to(mixture)
    before = rows(folder / "counts.csv")
    Image.fromarray(small[7]).save(place / "in/m.jpg")
    options = ("--weights", model, "--zones", "zones.json", "--recursive", "--resume")
    answer = run(place, "in", "--every", "0.5s", "--format", "csv", *options)
    assert answer.returncode == 0
    (record,) = csv.DictReader(answer.stdout.splitlines())
    assert (record["source"], record["overlay"]) == ("in/m.jpg", "runs/count/in-1/overlays/m.jpg")
    assert "1 counted; 7 counted before" in answer.stderr
    table = rows(folder / "counts.csv")
    assert table[:-1] == before
    assert not (folder / "errors.csv").exists()

    other = run(place, "in", "--every", "2s", *options)
    assert other.returncode == 1
    assert "was started with other settings (every); resume with the same ones, or start a new run" in " ".join(
        other.stderr.split()
    )
    assert rows(folder / "counts.csv") == table


def test_a_table_for_people_ends_with_the_place_of_the_results(small: Pictures, model: Path, tmp_path: Path) -> None:
    for number in (1, 2, 10):
        Image.fromarray(small[number]).save(tmp_path / f"p{number}.png")
    command = [*COMMAND, "-", "--weights", str(model), "--no-overlays"]
    names = "p1.png\nnowhere.png\np1*.png\n"
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=tmp_path, input=names, env=ENVIRONMENT
    )
    assert answer.returncode == 1
    heading, *lines, last = answer.stdout.splitlines()
    assert heading.split() == ["people", "smoothed", "time", "source"]
    assert [line.split()[-1] for line in lines] == ["p1.png", "p10.png"]
    assert last == "results: runs/count/list-1"
    assert "failed: nowhere.png: no such file or folder" in answer.stderr
    assert not (tmp_path / "runs/count/list-1/overlays").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_another_engine_counts_the_same_from_a_cache_of_its_own(
    small: Pictures, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    Image.fromarray(small[0]).save(tmp_path / "a.png")
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path / "cache"))
    counts = []
    for options in ((), ("--engine", engine), ("--engine", engine)):
        answer = run(tmp_path, "a.png", "--weights", model, "--format", "json", *options)
        assert answer.returncode == 0, answer.stderr
        counts.append(json.loads(answer.stdout)["count"])
    assert counts[1] == counts[2] == pytest.approx(counts[0], rel=1e-3, abs=2e-3)
    assert len({path.stem for path in (tmp_path / "cache/exported").iterdir()}) == 1
    config = json.loads((tmp_path / "runs/count/a-3/config.yaml").read_text())
    assert config["engine"] == engine


def test_json_goes_through_a_pipe_while_a_terminal_shows_the_bar(small: Pictures, model: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="terminals are POSIX's")
    Image.fromarray(small[0]).save(tmp_path / "a.png")
    ours, theirs = pty.openpty()
    command = [*COMMAND, "a.png", "--weights", str(model), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=ENVIRONMENT) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):
            while part := os.read(ours, 65536):
                shown += part
        assert process.stdout is not None
        record = json.loads(process.stdout.read())
    os.close(ours)
    assert record["source"] == "a.png"
    assert b"counting" in shown
    assert b'"source"' not in shown


@contextmanager
def interrupted(folder: Path, wait_for_rows: int, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start a count, press Ctrl-C when its table has that many rows, and wait for its end."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
        # Whatever starts the tests in the background has Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            table = folder / "out/counts.csv"
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if table.exists() and table.read_bytes().count(b"\n") > wait_for_rows:
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_ctrl_c_leaves_whole_files_of_what_was_done_and_resume_goes_on(
    small: Pictures, model: Path, tmp_path: Path
) -> None:
    for number in range(30):
        (tmp_path / "in").mkdir(exist_ok=True)
        Image.fromarray(small[number % len(small)]).save(tmp_path / f"in/{number}.png")
    options = ("in", "--weights", model, "--out", "out")
    with interrupted(tmp_path, 3, *options) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "stopped: the same command with --resume goes on" in errors
    assert output.splitlines()[-1] == "results: out"
    done = rows(tmp_path / "out/counts.csv")
    assert 3 <= len(done) < 30
    for row in done:
        with Image.open(tmp_path / "out" / row["overlay"]) as overlay:
            overlay.load()
    assert not list(tmp_path.rglob("*.part"))

    refused = run(tmp_path, *options)
    assert refused.returncode == 1
    assert "resume it, or choose another folder" in " ".join(refused.stderr.split())
    again = run(tmp_path, *options, "--resume")
    assert again.returncode == 0
    assert f"{30 - len(done)} counted; {len(done)} counted before" in again.stderr
    table = rows(tmp_path / "out/counts.csv")
    assert table[: len(done)] == done
    assert [row["source"] for row in table] == [f"in/{number}.png" for number in range(30)]
    assert len({row["overlay"] for row in table}) == 30


@pytest.mark.slow
def test_ctrl_c_in_a_video_leaves_one_that_plays_and_resume_goes_on_behind_it(
    small: Pictures, model: Path, tmp_path: Path
) -> None:
    film(tmp_path / "clip.mp4", small, frames=40)
    options = ("clip.mp4", "--weights", model, "--out", "out", "--every", "0")
    with interrupted(tmp_path, 3, *options) as process:
        process.communicate(timeout=60)
    assert process.returncode == 130
    done = rows(tmp_path / "out/counts.csv")
    assert 3 <= len(done) < 40
    first = facts_of_film(tmp_path / "out/overlays/clip.mp4")
    assert first[0] == FREE_CODEC
    assert first[1] == pytest.approx(len(done), abs=1), "a frame may be drawn and its row not yet written"

    assert run(tmp_path, *options, "--resume").returncode == 0
    table = rows(tmp_path / "out/counts.csv")
    assert [float(row["time"]) for row in table] == pytest.approx([number / FPS for number in range(40)], abs=2e-3)
    assert facts_of_film(tmp_path / "out/overlays/clip-2.mp4")[1] == 40 - len(done)
    (video,) = rows(tmp_path / "out/videos.csv")
    assert video["frames"] == "40"


@contextmanager
def camera(path: Path) -> Iterator[str]:
    """Send a film over the loopback at its own pace, again and again, to one viewer."""
    pieces = [path.read_bytes()[start:][: 188 * 4] for start in range(0, path.stat().st_size, 188 * 4)]
    gone = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            for number in range(10**6):
                if gone.wait(0.01):
                    return
                connection.sendall(pieces[number % len(pieces)])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        gone.set()
        thread.join()


def test_a_live_stream_is_counted_for_the_time_asked_and_says_when_and_what_it_dropped(
    small: Pictures, model: Path, tmp_path: Path
) -> None:
    with camera(film(tmp_path / "live.ts", small, frames=100)) as address:
        answer = run(tmp_path, address, "--weights", model, "--seconds", 4, "--every", 0, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(records) >= 2
    assert records[-1]["time"] < 4
    assert records[0]["clock"] < records[-1]["clock"]
    assert records[0]["source"] == address
    (folder,) = (tmp_path / "runs/count").iterdir()
    (video,) = rows(folder / "videos.csv")
    if dropped := int(video["dropped"]):
        assert f"{dropped} frames dropped" in answer.stderr


def test_a_password_is_written_nowhere(model: Path, small: Pictures, tmp_path: Path) -> None:
    Image.fromarray(small[0]).save(tmp_path / "a.png")
    addresses = ("rtsp://guard:half@secret@127.0.0.1:9/door", "http://127.0.0.1:9/mjpg?user=guest&pwd=secret")
    answer = run(tmp_path, *addresses, "a.png", "--weights", model)
    assert answer.returncode == 1
    assert "failed: http://127.0.0.1:9/mjpg?user=guest&pwd=***: could not be opened" in answer.stderr
    assert "failed: rtsp://***@127.0.0.1:9/door: could not be opened" in answer.stderr
    written = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert "secret" not in answer.stdout + answer.stderr
    assert b"secret" not in written
    assert b"guard" not in written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Usage: gbdgc count"),
        (("x.jpg", "--format", "xml"), 'Choose from: "table", "json", "csv"'),
        (("x.jpg", "--seconds=-1"), 'Invalid value "-1.0" for --seconds'),
        (("x.jpg", "--seconds", "inf"), "--seconds inf: not a time; leave it out"),
        (("x.jpg", "--seconds", "nan"), 'Invalid value "nan" for --seconds'),
        (("x.jpg", "--every", "soon"), "--every=soon: not a time; write 1s, 500ms"),
        (("x.mp4", "--every", "7h"), "--every 7h: no video shows a frame for more than six hours; choose a shorter"),
        (("-", "--every", "7h"), "or have no annotated video drawn by --no-overlays"),
        (("x.jpg", "--tile", "5"), "--tile=5: windows have a margin of 128 pixels each side"),
        (("x.jpg", "--max-pixels", "0"), 'Invalid value "0" for --max-pixels'),
        (("x.jpg", "--everry", "1s"), "--everry: no such option; did you mean --every?"),
    ],
)
def test_wrong_usage_is_2_and_says_what_is_right(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "x.mp4").touch()
    answer = run(tmp_path, *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_without_overlays_the_time_between_frames_has_no_limit(small: Pictures, model: Path, tmp_path: Path) -> None:
    film(tmp_path / "clip.mp4", small, frames=5)
    options = ("clip.mp4", "--weights", model, "--every", "7h", "--no-overlays", "--out", "out")
    answer = run(tmp_path, *options)
    assert answer.returncode == 0, answer.stderr
    assert len(rows(tmp_path / "out/counts.csv")) == 1
    again = run(tmp_path, *options, "--resume")
    assert again.stdout == "results: out\n", "a heading without rows says nothing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("empty",), "empty: no pictures or videos in it; name a folder that has some"),
        (("a.jpg", "--zones", "nowhere.json"), "nowhere.json: zones could not be read"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_made(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.jpg").touch()
    answer = run(tmp_path, *arguments)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert message in " ".join(answer.stderr.split())
    assert not (tmp_path / "runs").exists()


def test_a_list_from_a_closed_stdin_is_wrong_usage(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$0" -m gbdgc count - <&-', sys.executable]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=ENVIRONMENT)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "-: stdin, where the list should be, is closed; pipe a list into it" in answer.stderr


def test_the_limit_on_pixels_holds_for_pictures_and_videos(model: Path, small: Pictures, tmp_path: Path) -> None:
    Image.fromarray(small[0]).save(tmp_path / "a.png")
    film(tmp_path / "clip.mp4", small, frames=5)
    answer = run(tmp_path, "a.png", "clip.mp4", "--weights", model, "--max-pixels", "10000")
    assert answer.returncode == 1
    for name in ("a.png", "clip.mp4"):
        assert f"failed: {name}: 112 x 96 is over the limit of 10,000 pixels" in answer.stderr


def test_the_options_are_those_of_the_library() -> None:
    from typing import get_args

    from gbdgc.cli.options import EngineName
    from gbdgc.counting.engines import ENGINES

    assert get_args(EngineName) == tuple(ENGINES)


def test_measured_ground_gives_people_per_square_metre_in_every_output(
    small: Pictures, model: Path, tmp_path: Path
) -> None:
    Image.fromarray(small[0]).save(tmp_path / "gate.png")
    corners = [[0, 0], [1, 0], [1, 1], [0, 1]]
    # Seen from straight above, and so small that nobody could stand there: red.
    zones = {"gate": corners}
    file = {"relative": True, "zones": zones, "ground": {"corners": corners, "metres": [0.5, 0.4]}}
    (tmp_path / "zones.json").write_text(json.dumps(file))
    options = ("--weights", model, "--zones", "zones.json", "--no-overlays")
    record = json.loads(run(tmp_path, "gate.png", *options, "--format", "json").stdout)
    assert record["per_m2"] == {"gate": pytest.approx(record["count"] / 0.2, rel=1e-3)}
    (row,) = rows(tmp_path / "runs/count/gate-1/counts.csv")
    assert float(row["per_m2:gate"]) == record["per_m2"]["gate"]
    heading, line = run(tmp_path, "gate.png", *options).stdout.splitlines()[:2]
    assert heading.split() == ["people", "gate", "gate/m²", "source"]
    assert line.split()[2:] == [f"{record['per_m2']['gate']:.2f}", "red", "gate.png"]
    file["ground"]["metres"] = [50, 40]
    (tmp_path / "zones.json").write_text(json.dumps(file))
    changed = run(tmp_path, "gate.png", *options, "--resume")
    assert changed.returncode == 1, "another ground needs another table"
    assert "zones" in changed.stderr
