"""The counter: anything that is a picture in, a Result out, and the same number whatever way it came in."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import gbdgc
from gbdgc import Counter, Result, checkpoint
from gbdgc.counting.conformal import Conformal, features_of
from gbdgc.errors import InputError
from gbdgc.evaluation import count_dataset
from gbdgc.models import build_network

Picture = NDArray[np.uint8]


@pytest.fixture(scope="module")
def counter(model: Path) -> Counter:
    return Counter.load(model, device="cpu")


@pytest.fixture
def street(pictures: list[Picture], tmp_path: Path) -> Path:
    path = tmp_path / "street.png"
    Image.fromarray(pictures[0]).save(path)
    return path


# What goes in


def test_a_path_a_picture_an_array_and_bytes_count_the_same(counter: Counter, street: Path) -> None:
    pixels = np.asarray(Image.open(street))
    kinds = [street, str(street), Image.open(street), pixels, street.read_bytes()]
    results = [counter(kind) for kind in kinds]
    assert {result.count for result in results} == {results[0].count}
    assert all(type(result) is Result for result in results)
    assert results[0].source == results[1].source == results[2].source == str(street)
    assert results[3].source is None
    assert results[0].milliseconds is not None


def test_the_count_is_what_evaluation_reports(
    counter: Counter, model: Path, pictures: list[Picture], tmp_path: Path
) -> None:
    Image.fromarray(pictures[1][:101, :83]).save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("image,x,y\na.png,3,4\n")
    data = gbdgc.load_dataset(tmp_path / "labels.csv")
    row = count_dataset(checkpoint.load_model(model)[0], data)[0]
    assert counter(tmp_path / "a.png").count == pytest.approx(row.count, rel=1e-5)


def test_a_list_gives_a_list_in_its_order_whatever_the_sizes(counter: Counter, pictures: list[Picture]) -> None:
    mixed = [pictures[0], pictures[1][:90, :50], pictures[2], pictures[3], pictures[4][:17, :200]]
    alone = [counter(picture).count for picture in mixed]
    for batch in (1, 2, 8):
        together = Counter(counter.engine, batch=batch)(mixed)
        assert [result.count for result in together] == pytest.approx(alone, rel=1e-5)
        assert [(result.height, result.width) for result in together] == [picture.shape[:2] for picture in mixed]
    assert [result.count for result in counter(picture for picture in mixed)] == alone  # a generator
    assert counter([]) == []


def test_grey_arrays_and_pictures_with_alpha_are_accepted(counter: Counter, pictures: list[Picture]) -> None:
    grey = pictures[0].mean(axis=2).astype(np.uint8)
    assert counter(grey).count == counter(np.stack([grey] * 3, axis=2)).count
    assert counter(Image.fromarray(pictures[0]).convert("RGBA")).count == counter(pictures[0]).count


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (15, 15), (16, 16), (17, 33), (2000, 3), (3, 2000)])
def test_pictures_of_any_size_are_counted(counter: Counter, size: tuple[int, int]) -> None:
    result = counter(np.full((*size, 3), 90, dtype=np.uint8))
    assert result.density.shape == size
    assert np.isfinite(result.count)


def test_a_picture_taken_sideways_is_turned_upright(counter: Counter, pictures: list[Picture], tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    sideways = Image.fromarray(np.rot90(pictures[0]).copy())
    sideways.save(tmp_path / "a.png", exif=exif)
    upright = counter(pictures[0])
    for turned in (counter(tmp_path / "a.png"), counter(Image.open(tmp_path / "a.png"))):
        assert (turned.width, turned.height) == (upright.width, upright.height)
        assert turned.count == upright.count


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((8, 8, 3)), r"float64: give eight bits .*astype\('uint8'\)"),
        (np.zeros((8, 8, 4), np.uint8), "8 x 8 x 4: give rows x columns x 3"),
        (np.zeros((2, 8, 8, 3), np.uint8), "a list of pictures gives a list"),
        (np.zeros((0, 8, 3), np.uint8), "nothing in it"),
        ("nowhere.jpg", "nowhere.jpg: no such file"),
        (b"not a picture", "not a picture"),
        ([3], "cannot count a int"),
        (None, "cannot count a NoneType"),
    ],
)
def test_what_is_no_picture_is_refused_with_a_reason(counter: Counter, wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        counter(wrong)  # type: ignore[call-overload]


def test_a_damaged_picture_that_pillow_has_opened_is_named(counter: Counter, street: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(street.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"broken\.png: damaged or truncated"):
        counter(Image.open(broken))


def test_a_result_does_not_wait_for_the_next_picture(counter: Counter, pictures: list[Picture]) -> None:
    asked: list[int] = []

    def coming() -> Iterator[Picture]:
        for number, picture in enumerate(pictures[:3]):
            asked.append(number)
            yield picture

    next(counter.each(coming()))
    assert asked == [0]


def test_a_bad_picture_does_not_lose_those_before_it(model: Path, pictures: list[Picture]) -> None:
    results = Counter.load(model, batch=8).each([*pictures[:2], "nowhere.jpg", pictures[2]])
    assert [next(results).width for _ in range(2)] == [160, 160]
    with pytest.raises(InputError, match="nowhere"):
        next(results)


# What comes out


def test_the_density_has_the_size_of_the_picture_and_sums_to_the_count(
    counter: Counter, pictures: list[Picture]
) -> None:
    result = counter(pictures[0][:101, :99])
    assert result.density.shape == (101, 99)
    assert result.density.sum(dtype=np.float64) == pytest.approx(result.count, rel=1e-6)
    assert result.count > 0


def test_a_model_with_a_limit_on_sides_sees_the_picture_smaller(model: Path, pictures: list[Picture]) -> None:
    large = np.asarray(Image.fromarray(pictures[0]).resize((640, 512)))
    limited = Counter.load(model, device="cpu", max_side=160)(large)
    as_seen = Counter.load(model, device="cpu")(
        np.asarray(Image.fromarray(large).resize((160, 128), Image.Resampling.BILINEAR))
    )
    assert limited.count == pytest.approx(as_seen.count, rel=1e-4)
    assert limited.density.shape == (512, 640)
    assert limited.image is not None
    assert limited.image.shape == large.shape
    top = [(0, 0), (640, 0), (640, 256), (0, 256)]
    assert limited.count_in(top) == pytest.approx(as_seen.density[:64].sum(), rel=1e-3)


def test_a_model_that_wants_its_pictures_enlarged_gets_them_so_after_their_limit(
    model: Path, pictures: list[Picture]
) -> None:
    def shown(width: int, height: int) -> float:
        enlarged = np.asarray(Image.fromarray(pictures[0]).resize((width, height), Image.Resampling.BILINEAR))
        return Counter.load(model, device="cpu")(enlarged).count

    enlarging = Counter.load(model, device="cpu", test_scale=1.5)(pictures[0])
    assert enlarging.count == pytest.approx(shown(240, 192), rel=1e-4)
    assert enlarging.density.shape == (128, 160)
    assert Counter.load(model, device="cpu", test_scale=1.5, max_side=200)(pictures[0]).count == enlarging.count
    limited = Counter.load(model, device="cpu", test_scale=1.5, max_side=80)(pictures[0])
    assert limited.count == pytest.approx(shown(120, 96), rel=1e-4)
    assert Counter.load(model, device="cpu", test_scale=1.0)(pictures[0]).count == shown(160, 128)
    with pytest.raises(InputError, match="test_scale=0: a size is above 0"):
        Counter.load(model, test_scale=0)


def test_a_picture_over_the_tile_is_counted_in_windows(pictures: list[Picture]) -> None:
    image = np.tile(np.concatenate(pictures[:4], axis=1), (4, 1, 1))
    whole, windows = Counter.load(device="cpu"), Counter.load(device="cpu", tile=384)
    assert whole(image).count > 1
    assert windows(image).count == pytest.approx(whole(image).count, rel=0.005)


def test_a_picture_like_those_of_training_is_trusted(counter: Counter, pictures: list[Picture]) -> None:
    for domain in (0, 1):
        result = counter(pictures[domain])
        assert result.domain == domain
        assert result.novelty is not None
        assert 0 <= result.novelty < 0.9
        assert result.warnings == ()


def test_a_picture_unlike_those_of_training_is_warned_of(counter: Counter) -> None:
    result = counter(np.zeros((64, 64, 3), np.uint8))
    assert result.novelty is not None
    assert 0.99 < result.novelty <= 1
    (warning,) = result.warnings
    assert "unlike the pictures the model was trained on" in warning


def test_a_model_without_a_training_cloud_says_nothing_of_trust(tmp_path: Path, pictures: list[Picture]) -> None:
    build = {"backbone": "compact", "dim": 16, "codewords": 16}
    network = build_network(**build, pretrained=False)
    checkpoint.save_model(tmp_path / "best.safetensors", network, build, {}, {})
    result = Counter.load(tmp_path, device="cpu")(pictures[0])
    assert result.domain is None
    assert result.novelty is None
    assert result.warnings == ()


# Loading


def test_an_unknown_engine_and_a_missing_file_are_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"engine 'tensorrt': .* torch, onnx, openvino"):
        Counter.load(model, engine="tensorrt")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"gone\.safetensors: no such file"):
        Counter.load(tmp_path / "gone.safetensors")
    with pytest.raises(InputError, match=r"gone\.onnx: no such file"):
        Counter.load(tmp_path / "gone.onnx")
    with pytest.raises(InputError, match="made for onnx, not for torch"):
        Counter.load(tmp_path / "gone.onnx", engine="torch")
    with pytest.raises(InputError, match="device 'abacus'"):
        Counter.load(model, device="abacus")
    with pytest.raises(InputError, match="threads=0: at least one"):
        Counter.load(model, threads=0)
    for side in (0, -5):
        with pytest.raises(InputError, match=f"max_side={side}: a side has at least one pixel; give None"):
            Counter.load(model, max_side=side)


@pytest.mark.parametrize("value", ["x", [], {}, -1, True, float("nan"), 10**12, 10**400, None])
@pytest.mark.parametrize("setting", ["max_side", "test_scale", "descriptor_size"])
def test_whatever_a_model_file_says_of_its_pictures_is_used_or_named(
    model: Path, tmp_path: Path, pictures: list[Picture], setting: str, value: object
) -> None:
    strange = tmp_path / "strange.safetensors"
    checkpoint.amend_model(model, strange, {setting: value})
    if setting == "max_side" and value in (10**12, None):  # however large, it only ever makes pictures smaller
        assert Counter.load(strange, device="cpu")(pictures[0]).count == Counter.load(model)(pictures[0]).count
    else:
        for load in (Counter.load, checkpoint.load_model):
            with pytest.raises(InputError, match=rf"strange\.safetensors: {setting}=.*; give "):
                load(strange)


NAN = float("nan")
WRONG_ARRAYS = {
    "mean cut": ("trust/mean", lambda mean: mean[:-1], r"trust: axes: of shape \d+ x \d+, not \d+ x \d+"),
    "mean of whole numbers": ("trust/mean", lambda mean: mean.int(), r"trust: mean: int32 in place of floating-point"),
    "mean of an odd type": ("trust/mean", lambda mean: mean.bfloat16(), r"trust/mean: torch\.bfloat16, which numpy"),
    "axes without one": ("trust/axes", lambda axes: axes[:, :-1], r"trust: cloud: of shape"),
    "axes not finite": ("trust/axes", lambda axes: axes * NAN, r"trust: axes: holds numbers that are not finite"),
    "cloud of nobody": ("trust/cloud", lambda cloud: cloud[:0], r"trust: cloud: of shape 0 x"),
    "cloud in a row": ("trust/cloud", lambda cloud: cloud.flatten(), r"trust: cloud: of shape \d+, not \d+ x"),
    "labels cut": ("trust/labels", lambda labels: labels[:-1], r"trust: labels: of shape 119, not 120"),
    "labels in parts": ("trust/labels", lambda labels: labels + 0.5, r"trust: labels: float32 in place of whole"),
    "labels below 0": ("trust/labels", lambda labels: labels - 5, r"trust: labels: a domain below 0"),
    "one distance": ("trust/distances", lambda distances: distances[0], r"trust: distances: of shape none, not 120"),
    "distances below 0": ("trust/distances", lambda distances: -distances, r"trust: distances: below 0"),
    "distances upside down": ("trust/distances", lambda distances: distances.flip(0), r"not in ascending order"),
    "no distances": ("trust/distances", lambda _: None, r"trust: distances: missing"),
    "an array too many": ("trust/more", lambda _: torch.ones(3), r"trust: more: not known"),
    "features cut": ("conformal/mean", lambda mean: mean[:-1], r"intervals: mean: of shape 2, not 3"),
    "deviation below 0": ("conformal/deviation", lambda deviation: -deviation, r"intervals: deviation: not above 0"),
    "weights turned": (
        "conformal/weights",
        lambda weights: weights.T,
        r"intervals: weights: of shape 4 x 2, not 2 x 4",
    ),
    "weights not finite": ("conformal/weights", lambda weights: weights / 0, r"intervals: weights: holds numbers that"),
    "weights beyond sense": (
        "conformal/weights",
        lambda weights: torch.full_like(weights, 1e308),
        r"intervals: weights: holds numbers that are not finite, or beyond 1e\+30",
    ),
    "a third quantile": ("conformal/quantiles", lambda two: two.repeat(2)[:3], r"quantiles: of shape 3, not 2"),
    "quantiles below 0": ("conformal/quantiles", lambda two: -two.abs() - 1, r"quantiles: both below 0"),
    "far out of its range": ("conformal/far", lambda far: far + 3, r"intervals: far: not between 0 and 1"),
    "no far": ("conformal/far", lambda _: None, r"intervals: far: missing"),
}


@pytest.fixture(scope="module")
def calibrated(model: Path) -> tuple[dict[str, torch.Tensor], dict[str, object]]:
    """Return the tensors of a model with intervals, and its description."""
    tensors, info = checkpoint.read(model)
    truth = np.arange(40) * 10.0
    features = [features_of(people * (1 + 0.2 * np.sin(people)), 0.5, 640, 480) for people in truth]
    arrays = Conformal.fit(truth, features).to_arrays()
    return tensors | {f"conformal/{name}": torch.from_numpy(array) for name, array in arrays.items()}, info


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_arrays_of_a_model_file_that_cannot_be_right_are_named_with_the_file(
    calibrated: tuple[dict[str, torch.Tensor], dict[str, object]], tmp_path: Path, case: str
) -> None:
    name, change, message = WRONG_ARRAYS[case]
    tensors, info = dict(calibrated[0]), calibrated[1]
    changed = change(tensors.pop(name, None))
    checkpoint.write(tmp_path / "m.safetensors", tensors | ({} if changed is None else {name: changed}), info)
    with pytest.raises(InputError, match=rf"m\.safetensors: .*{message}.*make it again"):
        Counter.load(tmp_path / "m.safetensors", device="cpu")


def test_a_cloud_of_another_network_is_named_with_the_file(model: Path, tmp_path: Path) -> None:
    other = {
        "trust/mean": torch.zeros(5),
        "trust/axes": torch.zeros(5, checkpoint.read(model)[0]["trust/axes"].shape[1]),
    }
    checkpoint.amend_model(model, tmp_path / "m.safetensors", {}, other)
    with pytest.raises(InputError, match=r"m\.safetensors: trust: mean: of 5 numbers, and the network describes"):
        Counter.load(tmp_path / "m.safetensors", device="cpu")


def test_an_export_with_wrong_arrays_is_named_too(exports: dict[str, Path], tmp_path: Path) -> None:
    import onnx

    from gbdgc.counting.engines import DESCRIPTION_KEY, pack, unpack

    graph = onnx.load(exports["m.onnx"])
    entry = next(each for each in graph.metadata_props if each.key == DESCRIPTION_KEY)
    info, extras = unpack(entry.value)
    entry.value = pack(info, extras | {"trust/labels": extras["trust/labels"] - 9})
    # Without its seal, as files from before there were any.
    del graph.metadata_props[[each.key for each in graph.metadata_props].index("sha256")]
    onnx.save(graph, tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"m\.onnx: trust: labels: a domain below 0"):
        Counter.load(tmp_path / "m.onnx")


def test_weights_whose_exponential_overflows_give_a_wide_interval(
    calibrated: tuple[dict[str, torch.Tensor], dict[str, object]], tmp_path: Path, pictures: list[Picture]
) -> None:
    tensors, info = calibrated
    huge = {"conformal/weights": torch.full((2, 4), 1e29, dtype=torch.float64)}
    checkpoint.write(tmp_path / "m.safetensors", tensors | huge, info)
    interval = Counter.load(tmp_path / "m.safetensors", device="cpu")(pictures[0]).interval
    assert interval is not None
    assert np.isfinite(interval).all()


@pytest.mark.parametrize("dropout", [NAN, -0.5, 2, "x", None])
def test_a_model_file_with_an_impossible_dropout_is_named(model: Path, tmp_path: Path, dropout: object) -> None:
    build = checkpoint.read(model)[1]["build"]
    checkpoint.amend_model(model, tmp_path / "m.safetensors", {"build": build | {"dropout": dropout}})
    with pytest.raises(InputError, match=r"m\.safetensors: made by another version of gbdgc, or damaged"):
        Counter.load(tmp_path / "m.safetensors", device="cpu")


def test_the_bundled_model_is_loaded_by_default_or_its_absence_explained(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: list[Picture]
) -> None:
    monkeypatch.setattr("gbdgc.shipped.WEIGHTS", tmp_path)
    with pytest.raises(InputError, match=r"no bundled model; train one \(docs/training\.md\) and give its run folder"):
        Counter.load()
    (tmp_path / "bundled.safetensors").write_bytes(model.read_bytes())
    assert Counter.load(device="cpu")(pictures[0]).count > 0


# Streams


def test_a_video_gives_results_with_time_and_a_smoothed_count(
    counter: Counter, pictures: list[Picture], tmp_path: Path
) -> None:
    pytest.importorskip("av")
    from gbdgc.counting.video import VideoWriter

    with VideoWriter(tmp_path / "walk.mp4", fps=10, size=(160, 128)) as video:
        for number in range(30):
            video.write(pictures[number // 10])
    results = list(counter.stream(tmp_path / "walk.mp4", every=1.0))
    assert [result.time for result in results] == pytest.approx([0, 1, 2], abs=0.06)
    assert all(result.count > 0 and result.smoothed is not None for result in results)
    assert results[0].smoothed == pytest.approx(results[0].count)
    assert results[0].source == str(tmp_path / "walk.mp4")
    assert results[2].to_dict()["time"] == results[2].time


def test_a_result_names_a_stream_without_its_password(
    counter: Counter, pictures: list[Picture], tmp_path: Path
) -> None:
    pytest.importorskip("av")
    from gbdgc.counting.video import VideoWriter

    with VideoWriter(tmp_path / "walk.mp4", fps=10, size=(160, 128)) as video:
        video.write(pictures[0])
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        place = f"127.0.0.1:{server.server_port}/walk.mp4"
        try:
            address = f"http://guard:secret@{place}?user=guard&pwd=secret"
            (result,) = counter.stream(address, live=False)
        finally:
            server.shutdown()
    assert result.source == result.to_dict()["source"] == f"http://***@{place}?user=guard&pwd=***"


def test_the_limit_on_pixels_holds_for_videos_too(model: Path, pictures: list[Picture], tmp_path: Path) -> None:
    pytest.importorskip("av")
    from gbdgc.counting.video import VideoWriter

    with VideoWriter(tmp_path / "walk.mp4", fps=10, size=(160, 128)) as video:
        video.write(pictures[0])
    small = Counter.load(model, max_pixels=20_000)
    with pytest.raises(InputError, match=r"walk\.mp4: 160 x 128 is over the limit of 20,000 pixels"):
        next(small.stream(tmp_path / "walk.mp4"))
    assert next(small.stream(tmp_path / "walk.mp4", max_pixels=30_000)).width == 160


# Memory


@pytest.mark.slow
def test_a_picture_of_36_megapixels_is_counted_in_under_1400_megabytes(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    encoded = BytesIO()
    Image.effect_noise((400, 400), 80).convert("RGB").resize((6_000, 6_000)).save(encoded, "JPEG", quality=80)
    path.write_bytes(encoded.getvalue())
    program = (
        "import re, sys, gbdgc\n"
        "result = gbdgc.Counter.load(sys.argv[1], device='cpu')(sys.argv[2])\n"
        "assert (result.width, result.height, result.stride) == (6000, 6000, 4) and result.count > 0\n"
        # Not getrusage: its mark begins with the memory of the process that forked this one.
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, model, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # It takes 1.15 GB, as one of 16 megapixels does: nearly all of it is windows. A copy in floats would be 0.4 more.
    assert int(done.stdout) < 1.4e9
