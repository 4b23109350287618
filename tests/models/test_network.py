"""The network counts on images of any size, trains from its first step, and needs no style branch to count."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gbdgc.counting.engines import TorchEngine
from gbdgc.counting.tiling import count_cells
from gbdgc.data.transforms import normalise
from gbdgc.errors import InputError
from gbdgc.models import Network, build_network


def small(**options: object) -> Network:
    torch.manual_seed(0)
    return build_network("compact", pretrained=False, **{"dim": 32, "codewords": 64, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def network() -> Network:
    return small()


def test_training_gives_all_that_the_losses_need(network: Network) -> None:
    output = network.train()(torch.randn(2, 3, 64, 96))
    assert output.density.shape == (2, 1, 8, 12)
    assert output.occupancy.shape == (2, 1, 4, 6)
    assert output.style is not None
    assert output.semantic.shape == output.recoded.shape == output.style.shape == (2, 32, 8, 12)
    assert [level.shape[1] for level in output.levels] == [24, 40, 112]


def test_evaluation_does_not_compute_the_style_branch(network: Network) -> None:
    images = torch.randn(1, 3, 32, 32)
    with FlopCounterMode(display=False) as with_style:
        assert network.eval()(images).style is None
    with FlopCounterMode(display=False) as without:
        small(style=False).eval()(images)
    assert with_style.get_total_flops() == without.get_total_flops() > 0


def test_both_branches_projected_at_once_are_what_each_gives_alone() -> None:
    network = small(dropout=0.0).train()
    images = torch.randn(2, 3, 32, 48)
    output = network(images)
    fused = network.backbone(images).fused
    assert network.style is not None
    torch.testing.assert_close(output.semantic, network.semantic(fused))
    torch.testing.assert_close(output.style, network.style(fused))


def test_dropping_the_style_branch_changes_no_count(network: Network) -> None:
    without = small(style=False)
    missing = without.load_state_dict(network.state_dict(), strict=False)
    assert missing.missing_keys == []
    assert all(key.startswith("style.") for key in missing.unexpected_keys)
    images = torch.randn(1, 3, 48, 64)
    assert torch.equal(network.eval().count_map(images), without.eval().count_map(images))


@pytest.mark.parametrize("size", [(64, 96), (50, 75), (17, 16), (1, 1)])
def test_counts_have_the_size_of_the_image(network: Network, size: tuple[int, int]) -> None:
    counts = count_cells(TorchEngine(network, device="cpu"), [np.zeros((*size, 3), np.uint8)] * 2)
    assert counts.shape == (2, *size)
    assert counts.min() >= 0


@pytest.mark.parametrize("size", [(50, 64), (64, 50), (17, 16)])
def test_a_count_map_of_other_sides_than_multiples_of_sixteen_is_refused(
    network: Network, size: tuple[int, int]
) -> None:
    with pytest.raises(InputError, match="multiples of 16"):
        network.eval().count_map(torch.zeros(1, 3, *size))


def test_the_count_map_spreads_the_cells_and_keeps_their_people(network: Network) -> None:
    images = torch.randn(1, 3, 64, 96)
    with torch.inference_mode():
        people, pixels = network.eval()(images).density, network.count_map(images)
    assert people.sum() > 0
    torch.testing.assert_close(pixels.sum(), people.sum())
    # Half a cell from the border nothing of the neighbours is mixed in: a corner is its cell's.
    torch.testing.assert_close(pixels[0, 0, 0, 0], people[0, 0, 0, 0] / 64)


def test_a_patch_without_anybody_has_no_density() -> None:
    network = small().eval()
    assert network.occupancy is not None
    images = torch.randn(1, 3, 64, 64)
    with torch.inference_mode():
        assert network(images).density.max() > 1e-3
        network.occupancy.bias.fill_(-50)
        assert network(images).density.max() < 1e-12


def test_padding_to_sixteen_is_with_the_mean_colour(network: Network) -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    by_hand = np.zeros((1, 3, 48, 48), np.float32)
    by_hand[..., :40, :40] = normalise(image)
    engine = TorchEngine(network, device="cpu")
    assert np.array_equal(count_cells(engine, [image]), engine(by_hand)[:, 0, :40, :40])


def test_images_of_a_batch_do_not_touch_each_other(network: Network) -> None:
    images = torch.randn(3, 3, 32, 32)
    with torch.inference_mode():
        together = network.eval().count_map(images)
        alone = network.count_map(images[1:2])
    torch.testing.assert_close(together[1:2], alone, atol=1e-8, rtol=1e-4)


@pytest.mark.parametrize("codebook", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_network_is_alive_in_every_parameter(seed: int, codebook: bool) -> None:
    torch.manual_seed(seed)
    network = build_network("compact", pretrained=False, codebook=codebook, dim=64, codewords=128).train()
    output = network(torch.randn(2, 3, 64, 64))
    assert (output.density > 0).float().mean() > 0.7
    assert output.style is not None
    ((output.density - 0.5).square().sum() + output.style.sum()).backward()
    dead = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert dead == []


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_head_gives_a_small_positive_density_for_any_size_of_features(seed: int, scale: float) -> None:
    torch.manual_seed(seed)
    network = build_network("compact", pretrained=False)
    assert network.codebook is not None
    with torch.no_grad():
        density = network.head(network.codebook(scale * torch.randn(1, 128, 8, 8).relu()))
    assert density.min() > 0
    assert density.max() < 1


def test_a_density_that_fell_to_zero_everywhere_comes_back_where_people_are() -> None:
    torch.manual_seed(0)
    network = build_network("compact", pretrained=False, dim=16, codewords=32, dropout=0.0).train()
    with torch.no_grad():
        network.head.weight.neg_()
    images, wanted = torch.randn(2, 3, 64, 64), torch.zeros(2, 1, 8, 8)
    assert network(images).density.max() == 0
    empty = (network(images).density - wanted).square().mean()
    empty.backward()
    assert network.head.weight.grad is not None
    assert network.head.weight.grad.abs().max() == 0  # where nobody is, zero is right
    wanted[..., 2:6, 2:6] = 3.0
    optimizer = torch.optim.Adam(network.head.parameters(), 1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        (network(images).density - wanted).square().mean().backward()
        optimizer.step()
    density = network(images).density
    assert density[..., 3:5, 3:5].mean() > 0.02
    assert density.min() >= 0


def test_a_few_steps_bring_the_loss_down() -> None:
    network = small(dropout=0.0).train()
    images, target = torch.randn(2, 3, 64, 64), torch.full((2, 1, 8, 8), 0.6)
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        optimiser.zero_grad()
        loss = (network(images).density - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_convolutions_run_in_the_layout_that_is_fast_on_cpus(network: Network) -> None:
    levels = network.eval()(torch.randn(1, 3, 32, 32)).levels
    assert all(level.is_contiguous(memory_format=torch.channels_last) for level in levels)


def test_a_backbone_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(InputError, match=r"resnet.*vgg16, compact"):
        build_network("resnet")


def test_random_weights_are_never_frozen() -> None:
    assert all(parameter.requires_grad for parameter in small(frozen_blocks=3).parameters())


def test_an_option_of_another_backbone_is_named_and_none_takes_it_out() -> None:
    with pytest.raises(InputError, match=r"model\.options\.frozen_blocks: vgg16 has no such option .*=null"):
        build_network("vgg16", pretrained=False, frozen_blocks=3)
    small(frozen_blocks=None)


def test_vgg16_counts_too() -> None:
    torch.manual_seed(0)
    network = build_network("vgg16", pretrained=False, dim=32, codewords=64).eval()
    with torch.inference_mode():
        assert network.count_map(torch.randn(1, 3, 32, 48)).shape == (1, 1, 32, 48)
