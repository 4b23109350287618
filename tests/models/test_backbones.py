"""The backbones have the sizes that were promised, and the compact one's frozen norms are what they should be."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from gbdgc.models import Network
from gbdgc.models.compact import CompactBackbone, LiteEncoder
from gbdgc.models.network import BACKBONES
from gbdgc.models.vgg16 import VGG16Backbone, VGG16Decoder


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_vgg16_is_the_papers_to_the_parameter() -> None:
    with torch.device("meta"):
        backbone = VGG16Backbone()
        network = Network(backbone, dim=256, codewords=1024)
    assert parameters(backbone.encoder) == 14_714_688
    assert parameters(backbone.decoder) == 16_812_672
    assert parameters(backbone) == 31_527_360
    assert parameters(network) == 32_248_512


def test_vgg16_gives_the_three_relus_before_the_pools() -> None:
    with torch.device("meta"):
        features = VGG16Backbone()(torch.empty(2, 3, 64, 96))
    assert [tuple(level.shape[1:]) for level in features.encoder] == [(256, 16, 24), (512, 8, 12), (512, 4, 6)]
    assert [tuple(level.shape[1:]) for level in features.decoder] == [(128, 16, 24), (256, 8, 12), (512, 4, 6)]
    assert tuple(features.fused.shape) == (2, 896, 16, 24)


def test_vgg16_names_its_tensors_as_the_public_weights_do() -> None:
    with torch.device("meta"):
        names = set(VGG16Backbone().encoder.state_dict())
    places = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    assert names == {f"features.{place}.{part}" for place in places for part in ("weight", "bias")}


def test_the_compact_network_has_at_most_three_million_parameters_at_inference() -> None:
    with torch.device("meta"):
        backbone = CompactBackbone()
        for dim, codewords in ((backbone.suitable_dim, backbone.suitable_codewords), (256, 1024)):
            assert parameters(Network(backbone, dim=dim, codewords=codewords, style=False)) <= 3_000_000


def test_compact_levels_are_those_of_efficientnet_lite0() -> None:
    features = CompactBackbone()(torch.randn(1, 3, 64, 96))
    assert [tuple(level.shape[1:]) for level in features.encoder] == [(24, 16, 24), (40, 8, 12), (112, 4, 6)]
    assert features.fused.shape[2:] == (8, 12)


@pytest.mark.parametrize("name", BACKBONES)
def test_every_backbone_keeps_its_promises(name: str) -> None:
    with torch.device("meta"):
        backbone = BACKBONES[name]()
        features = backbone(torch.empty(1, 3, 32, 64))
        stride = backbone.feature_stride
        assert tuple(features.fused.shape) == (1, backbone.fused_channels, 32 // stride, 64 // stride)
        context = None if features.context is None else tuple(features.context.shape)
        assert context == ((1, backbone.context_channels, 2, 4) if backbone.context_channels else None)
        assert stride % backbone.cell == 0


def test_the_decoder_joins_from_coarse_to_fine() -> None:
    """With kernels that copy their first input channel, the coarsest level arrives enlarged at the finest."""
    decoder = VGG16Decoder((1, 1, 1), ((1, 1), (1, 1), (1, 1)))
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.zero_()
        for module in decoder.modules():
            if isinstance(module, nn.Conv2d):
                module.weight[:, 0, 1, 1] = 1
    coarse = torch.rand(1, 1, 2, 2)
    fine, middle, same = decoder((torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 4, 4), coarse))
    assert torch.equal(same, coarse)
    torch.testing.assert_close(middle, functional.interpolate(coarse, scale_factor=2.0, mode="bilinear"))
    torch.testing.assert_close(fine, functional.interpolate(middle, scale_factor=2.0, mode="bilinear"))


def shaken(encoder: LiteEncoder) -> LiteEncoder:
    """Give the norms statistics and scales that are not those of a fresh layer."""
    torch.manual_seed(0)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight.data, module.get_buffer("running_var")):
                tensor.uniform_(0.5, 1.5)
            for tensor in (module.bias.data, module.get_buffer("running_mean")):
                tensor.uniform_(-0.5, 0.5)
    return encoder


def test_a_folded_norm_is_the_norm_forward_and_backward() -> None:
    convolution = shaken(LiteEncoder()).eval().blocks[3].depthwise
    signal = torch.rand(2, 144, 8, 8)
    parts = [convolution.weight, convolution.norm.weight, convolution.norm.bias]
    folded = convolution(signal)
    margins = functional.pad(signal, (1, 2, 1, 2))  # TensorFlow's "same" for kernel 5 and stride 2
    plain = convolution.norm(functional.conv2d(margins, convolution.weight, stride=2, groups=144))
    torch.testing.assert_close(folded, plain, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(
        torch.autograd.grad(folded.pow(2).sum(), parts), torch.autograd.grad(plain.pow(2).sum(), parts), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-2, rtol=1e-4)


def test_frozen_statistics_stay_in_training_and_scales_still_learn() -> None:
    backbone = CompactBackbone().train()
    shaken(backbone.encoder)
    before = {name: buffer.clone() for name, buffer in backbone.named_buffers()}
    images = torch.randn(2, 3, 32, 32)
    features = backbone(images)
    training = features.fused
    (training.sum() + features.context.sum()).backward()
    assert all(torch.equal(before[name], buffer) for name, buffer in backbone.named_buffers())
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    torch.testing.assert_close(training, backbone.eval()(images).fused)


def test_batch_statistics_can_be_had() -> None:
    backbone = CompactBackbone(frozen_statistics=False).train()
    before = backbone.encoder.stem.norm.running_mean.clone()
    backbone(torch.randn(2, 3, 32, 32))
    assert not torch.equal(before, backbone.encoder.stem.norm.running_mean)


def test_frozen_blocks_stay_and_the_rest_learns() -> None:
    backbone = CompactBackbone(frozen_statistics=False, frozen_blocks=3).train()
    encoder = backbone.encoder
    before = encoder.stem.norm.running_mean.clone()
    backbone(torch.randn(2, 3, 32, 32)).fused.sum().backward()
    assert torch.equal(before, encoder.stem.norm.running_mean)
    assert encoder.blocks[3].depthwise.norm.training
    still = {*encoder.stem.parameters(), *encoder.blocks[:3].parameters()}
    assert still
    assert all((parameter.grad is None) == (parameter in still) for parameter in backbone.parameters())
