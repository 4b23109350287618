"""Descriptors are the channel statistics of the levels asked for, and taking them leaves the network alone."""

import numpy as np
import pytest
import torch

from gbdgc.descriptors import channel_statistics, describe
from gbdgc.errors import InputError
from gbdgc.models import Network, build_network


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return build_network("compact", pretrained=False, dim=8, codewords=16)


def batches() -> list[tuple[list[str], torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(ids, torch.randn(len(ids), 3, 64, 64, generator=generator)) for ids in (["a", "b"], ["c"])]


def test_statistics_are_mean_and_unbiased_deviation_level_by_level() -> None:
    levels = [torch.randn(2, 3, 4, 5), torch.randn(2, 2, 2, 2)]
    columns = []
    for level in levels:
        flat = level.numpy().reshape(2, level.shape[1], -1)
        columns += [flat.mean(axis=2), np.sqrt(flat.var(axis=2, ddof=1) + 1e-5)]
    assert channel_statistics(levels).numpy() == pytest.approx(np.concatenate(columns, axis=1), abs=1e-6)


def test_a_flat_channel_has_a_small_but_positive_deviation() -> None:
    assert channel_statistics([torch.ones(1, 1, 4, 4)])[0].tolist() == pytest.approx([1.0, 1e-5**0.5])


@pytest.mark.parametrize(("levels", "channels"), [("encoder", 24 + 40 + 112), ("decoder", 3 * 96), ("style", 8)])
def test_every_image_gets_one_row(network: Network, levels, channels: int) -> None:  # type: ignore[no-untyped-def]
    ids, z = describe(network, batches(), levels)
    assert ids == ["a", "b", "c"]
    assert z.shape == (3, 2 * channels)
    assert z.dtype == np.float32
    assert np.isfinite(z).all()


def test_a_row_depends_on_its_own_image_only(network: Network) -> None:
    _, together = describe(network, batches())
    _, apart = describe(network, [(["c"], batches()[1][1])])
    assert together[2] == pytest.approx(apart[0], abs=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_network_keeps_its_mode_even_if_reading_fails(network: Network, training: bool) -> None:
    network.train(training)
    first = describe(network, batches(), "style")[1]
    assert network.training is training
    assert first == pytest.approx(describe(network, batches(), "style")[1])  # no dropout

    def broken():  # type: ignore[no-untyped-def]
        yield from batches()
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        describe(network, broken())
    assert network.training is training


def test_what_cannot_be_described_is_said(network: Network) -> None:
    with pytest.raises(InputError, match="no images"):
        describe(network, [])
    without = build_network("compact", pretrained=False, style=False, dim=8, codewords=16)
    with pytest.raises(InputError, match="no style branch"):
        describe(without, batches(), "style")
