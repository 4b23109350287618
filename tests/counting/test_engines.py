"""Engines: torch, onnxruntime and OpenVINO behind one call, giving the same numbers."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gbdgc import Counter
from gbdgc.checkpoint import load_model
from gbdgc.counting.engines import (
    ENGINES,
    Description,
    Engine,
    OnnxEngine,
    OpenVinoEngine,
    TorchEngine,
    exported_for,
    pack,
    unpack,
)
from gbdgc.errors import InputError

Picture = NDArray[np.uint8]
RUNTIMES = [pytest.param("m.onnx", id="onnx"), pytest.param("m.xml", id="openvino")]

pytestmark = pytest.mark.slow  # tracing the network for the exports takes long


def engine_for(path: Path) -> Engine:
    return ENGINES[exported_for(path) or "torch"](path, threads=1)


@pytest.mark.parametrize("file", RUNTIMES)
@pytest.mark.parametrize("shape", [(1, 3, 16, 16), (2, 3, 48, 160), (3, 3, 128, 32)])
def test_any_batch_and_any_sides_give_what_torch_gives(
    model: Path, exports: dict[str, Path], file: str, shape: tuple[int, ...]
) -> None:
    images = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    torch_engine, engine = TorchEngine(load_model(model)[0], device="cpu"), engine_for(exports[file])
    expected, density = torch_engine(images), engine(images)
    assert density.dtype == np.float32
    assert density.shape == (shape[0], 1, *shape[2:])
    np.testing.assert_allclose(density, expected, rtol=1e-3, atol=1e-3 * expected.max())


@pytest.mark.parametrize("file", RUNTIMES)
def test_descriptors_are_those_of_torch(model: Path, exports: dict[str, Path], file: str) -> None:
    images = np.random.default_rng(0).standard_normal((2, 3, 64, 64), dtype=np.float32)
    expected = TorchEngine(load_model(model)[0], device="cpu").describe(images)
    np.testing.assert_allclose(engine_for(exports[file]).describe(images), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("file", RUNTIMES)
def test_a_counter_on_another_engine_gives_the_same_results(
    model: Path, exports: dict[str, Path], file: str, pictures: list[Picture]
) -> None:
    plain, other = Counter.load(model, device="cpu"), Counter.load(exports[file])
    assert other.info == plain.info
    for picture in (pictures[0], pictures[1][:77, :103], np.zeros((40, 600, 3), np.uint8)):
        expected, result = plain(picture), other(picture)
        assert result.count == pytest.approx(expected.count, rel=1e-3)
        assert result.domain == expected.domain
        assert result.novelty == pytest.approx(expected.novelty, abs=0.02)


@pytest.mark.parametrize("file", [*RUNTIMES, "m-int8.onnx", "m-int8.xml"])
def test_several_threads_may_count_at_once(exports: dict[str, Path], file: str, pictures: list[Picture]) -> None:
    counter = Counter.load(exports[file])
    alone = [counter(picture).count for picture in pictures[:6]]
    with ThreadPoolExecutor(3) as pool:
        together = [result.count for result in pool.map(counter, pictures[:6])]
    assert together == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("file", RUNTIMES)
def test_an_exported_model_counts_without_loading_torch(exports: dict[str, Path], file: str) -> None:
    program = (
        "import sys, numpy, gbdgc\n"
        "sys.modules['torch'] = None\n"  # Python's own way to say: this cannot be imported
        "result = gbdgc.Counter.load(sys.argv[1])(numpy.zeros((64, 64, 3), numpy.uint8))\n"
        "assert result.novelty is not None\n"
    )
    done = subprocess.run([sys.executable, "-c", program, exports[file]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command_counts_without_torch_too(
    exports: dict[str, Path], pictures: list[Picture], tmp_path: Path
) -> None:
    Image.fromarray(pictures[0]).save(tmp_path / "a.png")
    program = (
        "import sys\nsys.modules['torch'] = None\nfrom gbdgc.cli import main\n"
        "sys.argv = ['gbdgc', 'count', 'a.png', '--weights', sys.argv[1], '--format', 'csv']\nmain()\n"
    )
    command = [sys.executable, "-c", program, exports["m.onnx"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_without_torch_a_model_that_needs_it_says_so(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for engine in ("torch", "onnx"):
        with pytest.raises(InputError, match=r'torch is not installed; pip install "gbdgc\[torch\]"'):
            Counter.load(model, engine=engine)


def test_an_engine_is_added_by_one_line(model: Path, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch) -> None:
    class Flat:
        """Sees one person on every hundred pixels."""

        name, batch = "flat", 2

        def __init__(self, path: Path, *, device: str | None = None, threads: int | None = None) -> None:
            self.description = Description({"name": path.stem}, {})

        def __call__(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
            return np.full_like(images_B3HW[:, :1], 0.01)

        def describe(self, images_B3HW: NDArray[np.float32]) -> NDArray[np.float32]:
            return images_B3HW.mean(axis=(2, 3))

    monkeypatch.setitem(ENGINES, "flat", Flat)
    counter = Counter.load(model, engine="flat")
    assert (counter.batch, counter.info["name"]) == (2, "best")
    assert counter(pictures[0][:50, :90]).count == pytest.approx(45, rel=1e-3)


def test_threads_of_torch_are_set_for_the_call_alone(model: Path, pictures: list[Picture]) -> None:
    import torch

    before = torch.get_num_threads()
    counter = Counter.load(model, threads=before + 1)
    during: list[int] = []
    counter.engine.network.register_forward_hook(lambda *_: during.append(torch.get_num_threads()))  # type: ignore[attr-defined]
    counter(pictures[0])
    assert during[0] == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("file", RUNTIMES)
def test_runtimes_take_no_more_threads_than_the_process_has_cores(
    exports: dict[str, Path], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    engine = ENGINES[exported_for(exports[file]) or ""](exports[file])
    if isinstance(engine, OnnxEngine):
        threads = engine.session.get_session_options().intra_op_num_threads
    else:
        assert isinstance(engine, OpenVinoEngine)
        threads = engine.model.get_property("INFERENCE_NUM_THREADS")
    assert threads == 1


def test_a_model_is_exported_once_for_another_engine(
    model: Path, exports: dict[str, Path], pictures: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gbdgc.counting import export

    made: list[Path] = []

    def copy_instead(weights: Path, out: Path, *, calibration: None) -> None:
        """Stand in for the tracing, which takes half a minute and is tested elsewhere."""
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(exports["m.onnx"].read_bytes())
        made.append(out)

    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    monkeypatch.setattr(export, "export", copy_instead)
    counts = [Counter.load(model, engine="onnx")(pictures[0]).count for _ in range(2)]
    assert counts[0] == counts[1]
    assert len(made) == 1
    assert made[0].is_relative_to(tmp_path)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(("engine", "damaged"), [("onnx", ".onnx"), ("openvino", ".xml"), ("openvino", ".bin")])
def test_a_damaged_export_in_the_cache_is_made_again(
    engine: str,
    damaged: str,
    model: Path,
    pictures: list[Picture],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    count = Counter.load(model, engine=engine)(pictures[0]).count
    assert not caplog.records
    (file,) = (tmp_path / "exported").glob(f"*{damaged}")
    whole = file.read_bytes()
    for content in (whole[:-7] + b"x" + whole[-6:], whole[: len(whole) // 2], b""):
        file.write_bytes(content)
        caplog.clear()
        assert Counter.load(model, engine=engine)(pictures[0]).count == count
        assert "damaged; exporting the model again" in caplog.text


def test_a_description_comes_back_as_it_was() -> None:
    arrays = {"trust/mean": np.arange(6, dtype=np.float32).reshape(2, 3), "trust/labels": np.array([3, 1])}
    info, extras = unpack(pack({"name": "ä", "max_side": None}, arrays))
    assert info == {"name": "ä", "max_side": None}
    for name, array in arrays.items():
        np.testing.assert_array_equal(extras[name], array)
        assert extras[name].dtype == array.dtype


@pytest.mark.parametrize("name", ["x.onnx", "x.xml"])
def test_a_damaged_file_and_one_of_strangers_are_refused(name: str, tmp_path: Path, exports: dict[str, Path]) -> None:
    path = tmp_path / name
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=f"{name}: (damaged|not exported by gbdgc)"):
        Counter.load(path)


@pytest.mark.parametrize("name", ["m.onnx", "m.xml", "m.bin"])
def test_an_export_with_one_flipped_bit_is_not_counted_with(
    name: str, tmp_path: Path, exports: dict[str, Path]
) -> None:
    for path in (exports["m.onnx"], exports["m.xml"], exports["m.xml"].with_suffix(".bin")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    damaged = tmp_path / name
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(InputError, match=r"m\.(onnx|xml): damaged: its content does not match its digest; export it"):
        Counter.load(damaged if name != "m.bin" else tmp_path / "m.xml")


def test_an_onnx_file_that_is_not_ours_is_named_as_such(tmp_path: Path, exports: dict[str, Path]) -> None:
    import onnx

    model = onnx.load(exports["m.onnx"])
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "stranger.onnx")
    with pytest.raises(InputError, match=r"stranger\.onnx: not exported by gbdgc; make it with: gbdgc export"):
        Counter.load(tmp_path / "stranger.onnx")


@pytest.mark.parametrize(
    ("module", "extra", "file"), [("onnxruntime", "onnx", "m.onnx"), ("openvino", "openvino", "m.xml")]
)
def test_a_runtime_that_is_missing_is_named_with_its_extra(
    module: str, extra: str, file: str, exports: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # Python's own way to say: this cannot be imported
    with pytest.raises(InputError, match=rf'{module} is not installed; pip install "gbdgc\[{extra}\]"'):
        Counter.load(exports[file])


@pytest.mark.parametrize("file", RUNTIMES)
def test_a_device_that_is_not_there_is_refused(exports: dict[str, Path], file: str) -> None:
    with pytest.raises(InputError, match="device 'abacus'"):
        Counter.load(exports[file], device="abacus")
