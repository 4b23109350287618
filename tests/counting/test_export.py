"""Export: the graph computes what the network does, and a drift of the counts is measured before anything is kept."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter
from gbdgc.checkpoint import load_model
from gbdgc.cli import app
from gbdgc.cli.export import read_some
from gbdgc.counting.export import drawn_scenes, export, export_to_cache, measure_drift
from gbdgc.counting.graph import CountingGraph
from gbdgc.errors import InputError, UsageError
from gbdgc.files import folder_beside
from gbdgc.models import build_network
from gbdgc.shipped import find_model
from in_process import run_gbdgc

Picture = NDArray[np.uint8]
REAL = os.environ.get("GBDGC_DATA")


@pytest.mark.parametrize("backbone", ["compact", "vgg16"])
@pytest.mark.parametrize("codebook", [True, False])
def test_the_graph_computes_what_the_network_does(backbone: str, codebook: bool) -> None:
    torch.manual_seed(0)
    network = build_network(backbone, pretrained=False, codebook=codebook, dim=24, codewords=40).eval()
    with torch.no_grad():
        network.semantic[0].weight.mul_(5)
    images = torch.randn(2, 3, 32, 48)
    with torch.inference_mode():
        density, _ = CountingGraph(network)(images)
        expected = network.count_map(images)
    assert expected.std() > 0.01 * expected.mean()
    torch.testing.assert_close(density, expected, rtol=1e-4, atol=1e-9)


def test_the_graph_gives_the_statistics_that_trust_was_learnt_from(model: Path) -> None:
    from gbdgc.descriptors import channel_statistics

    network = load_model(model)[0]
    images = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(CountingGraph(network)(images)[1], channel_statistics(network.feature_maps(images)))


def test_runtimes_get_kernels_of_odd_sides(exports: dict[str, Path]) -> None:
    import onnx

    graph = onnx.load(exports["m.onnx"]).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    kernels = [shapes[node.input[1]] for node in graph.node if node.op_type == "Conv"]
    assert {side for kernel in kernels for side in kernel[2:]} == {1, 3, 5}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["m.onnx", "m.xml"])
def test_counts_of_an_export_do_not_drift(
    file: str, model: Path, exports: dict[str, Path], pictures: list[Picture]
) -> None:
    drift = measure_drift(model, exports[file], pictures[:3])
    assert drift.images == 3
    assert drift.relative < 1e-4
    assert drift.speedup == pytest.approx(drift.torch_milliseconds / drift.milliseconds)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["m-int8.onnx", "m-int8.xml"])
def test_eight_bits_drift_a_little_and_take_less_room(
    file: str, model: Path, exports: dict[str, Path], pictures: list[Picture]
) -> None:
    drift = measure_drift(model, exports[file], pictures[8:14])
    assert 0 < drift.relative < 0.05
    plain, small = exports[file.replace("-int8", "")], exports[file]
    if file.endswith(".xml"):
        plain, small = plain.with_suffix(".bin"), small.with_suffix(".bin")
    assert small.stat().st_size < 0.5 * plain.stat().st_size
    assert abs(drift.bias) <= drift.relative


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("file", ["m-int8.onnx", "m-int8.xml"])
def test_the_factor_by_which_eight_bits_move_counts_is_taken_back(
    file: str, model: Path, exports: dict[str, Path], pictures: list[Picture], tmp_path: Path
) -> None:
    out = tmp_path / f"graph{Path(file).suffix}"  # as the file is called from which it is made
    export(model, out, calibration=pictures[:8])
    before, after = (measure_drift(model, path, pictures[:8]).bias for path in (exports[file], out))
    assert abs(before) > 1e-3, "nothing to take back here"
    assert abs(after) < 0.3 * abs(before)


@pytest.mark.slow
def test_eight_bits_trust_the_same_pictures(exports: dict[str, Path], pictures: list[Picture]) -> None:
    for file in ("m-int8.onnx", "m-int8.xml"):
        counter = Counter.load(exports[file])
        assert [counter(picture).domain for picture in pictures[:2]] == [0, 1]
        assert counter(np.zeros((64, 64, 3), np.uint8)).warnings


@pytest.mark.slow
def test_the_command_writes_a_model_and_says_how_it_compares(
    model: Path, tmp_path: Path, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "deep" / "counter.xml"
    monkeypatch.setattr("gbdgc.counting.export.DRAWN_CHECKED", 2)  # each is counted four times
    done = run_gbdgc("export", model, "--to", "openvino", "--out", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    speed, drift, made = done.stdout.splitlines()
    assert speed.startswith("speed: ")
    assert speed.endswith(" ms)")
    assert drift.startswith("drift: 0.00")
    assert drift.endswith("on 2 pictures")
    assert made == f"model: {out}"
    assert sorted(path.name for path in out.parent.iterdir()) == ["counter.bin", "counter.xml"]
    assert Counter.load(out)(pictures[0]).count == pytest.approx(Counter.load(model)(pictures[0]).count, rel=1e-3)


@pytest.mark.slow
def test_eight_bits_that_drift_too_far_are_refused_unless_forced(
    model: Path,
    exports: dict[str, Path],
    pictures: list[Picture],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number, picture in enumerate(pictures[:7]):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
    (tmp_path / "9.png").write_bytes(b"no picture")
    out = tmp_path / "m.onnx"
    calibrated_on: list[int] = []

    def copy_instead(weights: Path, path: Path, *, calibration: list[Picture]) -> None:
        """Stand in for the tracing, which takes long; the file is a real one in 8 bits."""
        calibrated_on.append(len(calibration))
        path.write_bytes(exports["m-int8.onnx"].read_bytes())

    monkeypatch.setattr("gbdgc.counting.export.export", copy_instead)
    monkeypatch.setattr("gbdgc.counting.export.MAX_DRIFT", 1e-9)
    command = ["export", str(model), "--to", "onnx", "--int8", "--calibrate", str(tmp_path), "--out", str(out)]
    with pytest.raises(InputError, match=r"m\.onnx: not written: in 8 bits the counts drift by .*--force"):
        app(command, result_action="return_value")
    assert not out.exists()
    said = capsys.readouterr()
    assert "on 3 pictures" in said.out
    assert "left out: " in said.err
    assert "9.png" in said.err
    app([*command, "--force"], result_action="return_value")
    assert out.exists()
    assert calibrated_on == [4, 4]


def test_a_folder_to_calibrate_on_has_pictures(model: Path, tmp_path: Path) -> None:
    for folder, message in (
        (tmp_path, "there are no pictures in it"),
        (tmp_path / "nowhere", "nowhere: no such folder"),
    ):
        command = ["export", str(model), "--to", "onnx", "--int8", "--calibrate", str(folder)]
        with pytest.raises(InputError, match=message):
            app(command, result_action="return_value")


def test_an_option_that_cannot_be_meant_is_wrong_usage(model: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["--out", str(tmp_path)], rf"{tmp_path}: a folder; name a file, such as .*best\.onnx"),
        (["--out", str(tmp_path / "a.xml")], r"a\.xml: files for onnx end in \.onnx"),
        (["--force"], "--force: only models in 8 bits .*; leave it out, or add --int8"),
    ):
        with pytest.raises(UsageError, match=message):
            app(["export", str(model), "--to", "onnx", *arguments], result_action="return_value")


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_the_cache_keeps_the_newest_exports_only(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    folder = tmp_path / "exported"
    folder.mkdir()
    for number in range(20):
        for suffix in (".xml", ".bin"):
            (folder / f"{number}{suffix}").touch()
            os.utime(folder / f"{number}{suffix}", (number, number))
    made = export_to_cache(model, "onnx")
    assert {path.name for path in folder.iterdir()} == {made.name} | {
        f"{number}{suffix}" for number in range(5, 20) for suffix in (".xml", ".bin")
    }


@pytest.mark.slow
@pytest.mark.minutes
@pytest.mark.skipif(REAL is None, reason="GBDGC_DATA names no folder with ShanghaiTech")
@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_the_bundled_model_fitted_by_drawn_scenes_counts_real_crowds_in_eight_bits(suffix: str, tmp_path: Path) -> None:
    assert REAL is not None
    weights = find_model(None)
    export(weights, tmp_path / f"m{suffix}", calibration=drawn_scenes())
    for part in ("part_A", "part_B"):
        images = read_some(Path(REAL) / "ShanghaiTech" / part / "test_data" / "images", 8)
        assert measure_drift(weights, tmp_path / f"m{suffix}", images).relative < 0.015


@pytest.mark.slow
def test_eight_bits_come_from_the_cache_after_the_first_use(
    exports: dict[str, Path], model: Path, pictures: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    monkeypatch.setattr("gbdgc.counting.export._DRAWN", 2)  # this is not about how well they fit
    first = Counter.load(model, engine="onnx", int8=True)
    (made,) = (tmp_path / "exported").glob("*.onnx")
    assert made.stat().st_size < 0.5 * exports["m.onnx"].stat().st_size
    written = made.stat().st_mtime_ns
    again = Counter.load(model, engine="onnx", int8=True)
    assert made.stat().st_mtime_ns == written
    assert again(pictures[0]).count == first(pictures[0]).count


@pytest.mark.slow
def test_eight_bits_that_drift_on_drawn_scenes_are_not_kept_in_the_cache(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    monkeypatch.setattr("gbdgc.counting.export._DRAWN", 2)
    monkeypatch.setattr("gbdgc.counting.export.MAX_DRIFT", 1e-9)
    with pytest.raises(InputError, match=r"in 8 bits its counts of drawn scenes drift by .*calibration pictures"):
        export_to_cache(model, "openvino", int8=True)
    assert list((tmp_path / "exported").iterdir()) == []


def test_eight_bits_are_of_engines_that_have_them(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"int8: torch counts in 32 bits; name one of onnx, openvino as the engine"):
        Counter.load(model, int8=True)
    with pytest.raises(InputError, match=r"int8: .*m\.onnx is exported already, in the bits it has; leave it out"):
        Counter.load(tmp_path / "m.onnx", int8=True)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has files that nobody can write or read")
def test_a_place_where_nothing_can_be_written_or_read_is_named(model: Path) -> None:
    with pytest.raises(InputError, match=r"^/proc/x\.onnx: could not be written \(No such file or directory\); make"):
        app(["export", str(model), "--to", "onnx", "--out", "/proc/x.onnx"], result_action="return_value")
    with pytest.raises(InputError, match=r"^/proc/x\.xml: could not be written"), folder_beside(Path("/proc/x.xml")):
        pass
    with pytest.raises(InputError, match=r"^/proc/self/mem: cannot be read \(Input/output error\)"):
        Counter.load("/proc/self/mem", engine="onnx")


def test_a_suffix_without_an_engine_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.trt: .*\.onnx"):
        export(model, tmp_path / "m.trt")
