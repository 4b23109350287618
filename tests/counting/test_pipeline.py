"""The pipeline: pictures and videos in, results or failures out, in order, whoever asks."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc.counting import Counter, Failure, Moment, Outcome, Result, Source, Video, Zone, count_sources
from gbdgc.counting.video import Smoother

Picture = NDArray[np.uint8]


@pytest.fixture(scope="module")
def counter(model: Path) -> Counter:
    return Counter.load(model, device="cpu")


@pytest.fixture(scope="module")
def walk(pictures: list[Picture], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of three seconds."""
    pytest.importorskip("av", reason="the extra 'video' is not installed")
    from gbdgc.counting.video import VideoWriter

    path = tmp_path_factory.mktemp("film") / "walk.mp4"
    with VideoWriter(path, fps=10, size=(160, 128)) as video:
        for number in range(30):
            video.write(pictures[number // 10])
    return path


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


def test_outcomes_come_in_the_order_of_their_sources_and_a_bad_one_stops_nobody(
    counter: Counter, pictures: list[Picture], walk: Path, tmp_path: Path
) -> None:
    Image.fromarray(pictures[0]).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    sources = [tmp_path / "a.png", tmp_path / "b.png", Source(walk, moving=True), pictures[1], Source("x.mp4", True)]
    outcomes = list(count_sources(counter, sources))
    assert kinds(outcomes) == ["Result", "Failure", "Result", "Result", "Result", "Video", "Result", "Failure"]
    (bad, gone) = (outcome for outcome in outcomes if isinstance(outcome, Failure))
    assert (bad.source, bad.error.thing) == (str(tmp_path / "b.png"), str(tmp_path / "b.png"))
    assert (gone.source, gone.error.reason) == ("x.mp4", "no such file")
    assert isinstance(outcomes[0], Result)
    assert (outcomes[0].source, outcomes[0].count) == (str(tmp_path / "a.png"), counter(pictures[0]).count)


def test_a_batch_is_counted_together_and_keeps_its_order_around_failures(
    counter: Counter, pictures: list[Picture]
) -> None:
    sizes: list[int] = []

    class Watched(Counter):
        def count_together(self, images: list[Picture], **options: object) -> list[Result]:  # type: ignore[override]
            sizes.append(len(images))
            return super().count_together(images, **options)  # type: ignore[arg-type]

    together = Watched(counter.engine, batch=2)
    sources = [pictures[0], pictures[1], pictures[2], b"no picture", pictures[3], pictures[4][:64], pictures[5][:64]]
    outcomes = list(count_sources(together, sources))
    assert sizes == [2, 1, 1, 2]
    assert kinds(outcomes) == ["Result", "Result", "Result", "Failure", "Result", "Result", "Result"]


def test_zones_are_counted_in_pictures_and_in_frames(counter: Counter, pictures: list[Picture], walk: Path) -> None:
    left = Zone("left", ((0, 0), (0.5, 0), (0.5, 1), (0, 1)), relative=True)
    outcomes = list(count_sources(counter, [pictures[0], Source(walk, moving=True)], zones=[left]))
    for result in (outcome for outcome in outcomes if isinstance(outcome, Result)):
        assert 0 < result.zones["left"] < result.count


def test_each_frame_knows_its_time_its_number_and_its_video(counter: Counter, walk: Path) -> None:
    *frames, video = count_sources(counter, [Source(walk, moving=True)], every=1.0)
    assert isinstance(video, Video)
    assert (video.source, video.live, video.rate, video.expected) == (str(walk), False, 1.0, 3)
    counts = []
    for frame in frames:
        assert isinstance(frame, Result)
        assert frame.video is video
        assert frame.clock is None
        counts.append(frame.count)
    assert [frame.frame for frame in frames if isinstance(frame, Result)] == [0, 10, 20]
    assert (video.frames, video.total, video.highest) == (3, pytest.approx(sum(counts)), max(counts))


def test_a_video_is_gone_on_with_behind_what_was_counted_and_smoothed_alike(counter: Counter, walk: Path) -> None:
    film = [Source(walk, moving=True)]
    whole = [outcome for outcome in count_sources(counter, film, every=0.5) if isinstance(outcome, Result)]
    before = {str(walk): [Moment(result.time or 0.0, result.count) for result in whole[:4]]}
    *rest, video = count_sources(counter, film, every=0.5, counted=before)
    assert isinstance(video, Video)
    assert video.frames == len(whole) == 6
    assert [(r.time, r.smoothed) for r in rest if isinstance(r, Result)] == [(r.time, r.smoothed) for r in whole[4:]]


@pytest.mark.parametrize("half_life", [0, 30])
def test_the_half_life_of_the_smoothed_count_can_be_chosen(counter: Counter, walk: Path, half_life: float) -> None:
    *frames, _ = count_sources(counter, [Source(walk, moving=True)], every=0.5, half_life=half_life)
    smooth = Smoother(half_life)
    for frame in frames:
        assert isinstance(frame, Result)
        assert frame.time is not None
        assert frame.smoothed == pytest.approx(smooth(frame.count, frame.time))


def test_a_live_stream_without_an_end_must_be_the_only_source(
    counter: Counter, pictures: list[Picture], walk: Path
) -> None:
    live = Source(walk, moving=True)
    _, failure = count_sources(counter, [pictures[0], live], live=True, retries=0)
    assert isinstance(failure, Failure)
    assert failure.error.reason == "a live stream has no end"
    _, *outcomes = count_sources(counter, [pictures[0], live], live=True, seconds=0.2, every=0.0)
    assert isinstance(outcomes[-1], Video)
    assert outcomes[-1].live


def test_the_next_picture_of_a_list_is_read_in_a_thread_but_an_iterator_is_not_read_ahead(
    counter: Counter, pictures: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gbdgc.counting import pipeline

    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, picture in zip(paths, pictures, strict=False):
        Image.fromarray(picture).save(path)
    read: list[tuple[str, bool]] = []
    open_picture = pipeline.open_picture

    def watched(picture: Path, *, max_pixels: int) -> Picture:
        read.append((picture.name, threading.current_thread() is threading.main_thread()))
        return open_picture(picture, max_pixels=max_pixels)

    def coming() -> Iterator[Path]:
        yield from paths

    monkeypatch.setattr(pipeline, "open_picture", watched)
    next(count_sources(counter, coming()))
    assert read == [("0.png", True)]
    read.clear()
    assert len(list(count_sources(counter, paths))) == 3
    assert read == [(path.name, False) for path in paths]


def test_a_count_is_given_up_between_windows(model: Path, pictures: list[Picture]) -> None:
    class GivenUp(Exception):
        pass

    windows = 0

    def check() -> None:
        nonlocal windows
        windows += 1
        if windows == 3:
            raise GivenUp

    image = np.tile(np.concatenate(pictures[:4], axis=1), (4, 1, 1))
    with pytest.raises(GivenUp):
        list(count_sources(Counter.load(model, device="cpu", tile=384), [image], check=check))
    assert windows == 3
