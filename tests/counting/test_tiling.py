"""Windows: they tile the picture, keep to the network's grid, and the count stays what it was."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gbdgc.checkpoint import load_model
from gbdgc.counting import tiling
from gbdgc.counting.engines import TorchEngine
from gbdgc.data.transforms import STRIDE
from gbdgc.errors import InputError

Images = NDArray[np.float32]


def brightness(images: Images) -> Images:
    """An engine that counts by the pixel alone, so that every window must agree with the whole exactly."""
    return images.mean(axis=1, keepdims=True) + 3


def picture(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def watch(engine: Callable[[Images], Images], seen: list[tuple[int, ...]]) -> Callable[[Images], Images]:
    def watching(images: Images) -> Images:
        seen.append(images.shape)
        return engine(images)

    return watching


def test_margins_and_windows_lie_on_the_grid_of_the_network() -> None:
    assert tiling.MARGIN % STRIDE == tiling.TILE % STRIDE == 0


@given(length=st.integers(1, 20_000), tile=st.integers(24, 100).map(lambda tiles: 16 * tiles))
def test_cores_tile_the_axis_and_windows_stay_small_and_on_the_grid(length: int, tile: int) -> None:
    spans = tiling.spans(length, tile)
    assert spans[0].core_start == 0
    assert spans[-1].core_stop == length
    for before, after in pairwise(spans):
        assert before.core_stop == after.core_start
        assert before.stop == min(length, before.core_stop + tiling.MARGIN)
        assert after.start == max(0, after.core_start - tiling.MARGIN)
    assert all(span.start % STRIDE == span.core_start % STRIDE == 0 for span in spans)
    assert all(span.stop - span.start <= tile for span in spans)


@pytest.mark.parametrize("size", [(1, 1), (15, 17), (400, 16), (500, 1), (391, 777), (1200, 800)])
@pytest.mark.parametrize("stride", [1, 4])
def test_every_pixel_is_counted_once_and_in_its_place(size: tuple[int, int], stride: int) -> None:
    image = picture(*size)
    whole = brightness(tiling.stack([image]))[0, 0, : size[0], : size[1]]
    expected = np.add.reduceat(whole, np.arange(0, size[0], stride), axis=0)
    expected = np.add.reduceat(expected, np.arange(0, size[1], stride), axis=1)
    cells = tiling.count_cells(brightness, [image], stride=stride, tile=384)
    np.testing.assert_allclose(cells[0], expected, rtol=1e-5)


def test_no_window_is_larger_than_asked_for() -> None:
    seen: list[tuple[int, ...]] = []
    tiling.count_cells(watch(brightness, seen), [picture(1000, 700)], tile=400)
    assert len(seen) == 7 * 5
    assert all(height <= 400 and width <= 400 and height % 16 == width % 16 == 0 for _, _, height, width in seen)


def test_a_check_that_raises_ends_the_count_before_the_next_window() -> None:
    seen: list[tuple[int, ...]] = []

    def enough() -> None:
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiling.count_cells(watch(brightness, seen), [picture(1000, 700)], tile=400, check=enough)
    assert len(seen) == 2


def test_pictures_of_one_size_go_together_and_stay_apart() -> None:
    images, seen = [picture(50, 70, seed) for seed in range(3)], []
    cells = tiling.count_cells(watch(brightness, seen), images)
    assert seen == [(3, 3, 64, 80)]
    for own, image in zip(cells, images, strict=True):
        np.testing.assert_array_equal(own, tiling.count_cells(brightness, [image])[0])


def test_a_trained_network_counts_the_same_in_windows(pictures: list[NDArray[np.uint8]]) -> None:
    """The bundled one: what random weights make of far pixels does not fade as it does after training."""
    engine = TorchEngine(load_model("default")[0], device="cpu")
    image = np.tile(np.concatenate(pictures[:5], axis=1), (6, 1, 1))  # 800 x 768
    whole = tiling.count_cells(engine, [image])
    windows = tiling.count_cells(engine, [image], tile=384)
    assert windows.sum() == pytest.approx(whole.sum(), rel=0.005)
    assert np.abs(windows - whole).max() < 0.05 * whole.max()


def test_without_a_margin_the_count_would_differ(
    model: Path, pictures: list[NDArray[np.uint8]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: this network does look beyond the core."""
    engine = TorchEngine(load_model(model)[0], device="cpu")
    image = np.tile(np.concatenate(pictures[:3], axis=1), (3, 1, 1))
    whole = tiling.count_cells(engine, [image])
    monkeypatch.setattr(tiling, "MARGIN", 0)
    apart = tiling.count_cells(engine, [image], tile=128)
    assert np.abs(apart - whole).max() > 0.05 * whole.max()


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    height=st.integers(1, 150),
    width=st.integers(1, 150),
    stride=st.sampled_from([1, 2, 4]),
)
def test_bringing_a_map_to_another_size_loses_nobody(
    rows: int, columns: int, height: int, width: int, stride: int
) -> None:
    density = np.random.default_rng(rows).gamma(0.3, 0.1, (rows, columns)).astype(np.float32)
    cells = tiling.regrid(density, height, width, stride)
    assert cells.shape == (-(-height // stride), -(-width // stride))
    assert cells.sum(dtype=np.float64) == pytest.approx(density.sum(dtype=np.float64), rel=1e-5)
    assert cells.min() >= 0


def test_a_map_brought_to_twice_its_size_shares_each_pixel_out_evenly() -> None:
    density = np.array([[4.0, 0.0], [0.0, 8.0]], dtype=np.float32)
    np.testing.assert_allclose(tiling.regrid(density, 4, 4), np.kron(density / 4, np.ones((2, 2))))


def test_a_tile_without_room_for_its_margins_is_refused() -> None:
    assert tiling.check_tile(1000) == 992
    with pytest.raises(InputError, match=r"tile=200: .* at least 384"):
        tiling.check_tile(200)
