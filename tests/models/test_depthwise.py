"""The depthwise convolution is the library's, and so are its gradients but for rounding."""

import pytest
import torch
from torch.nn import functional

from gbdgc.models.depthwise import depthwise


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (5, 1, 2), (4, 2, 1), (6, 2, 2)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_gradients_are_those_of_the_library(dtype, kernel, stride, padding, with_bias):
    torch.manual_seed(0)
    signal = torch.randn(2, 24, 18, 14).contiguous(memory_format=torch.channels_last).to(dtype).requires_grad_()
    weight = torch.randn(24, 1, kernel, kernel, dtype=dtype, requires_grad=True)
    bias = torch.randn(24, dtype=dtype, requires_grad=True) if with_bias else None
    leaves = [leaf for leaf in (signal, weight, bias) if leaf is not None]

    ours = depthwise(signal, weight, bias, stride, padding)
    gradient = torch.randn_like(ours)
    got = torch.autograd.grad(ours, leaves, gradient)

    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    library = functional.conv2d(*exact, *([] if with_bias else [None]), stride, padding, groups=24)
    wanted = torch.autograd.grad(library, exact, gradient.double())
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for mine, theirs in zip((ours, *got), (library, *wanted), strict=True):
        assert mine.dtype == dtype
        assert (mine.double() - theirs).abs().max() <= tolerance * theirs.abs().max()


def test_autocast_computes_in_16_bits_and_leaves_gradients_in_32():
    signal, weight = torch.randn(1, 8, 16, 16), torch.randn(8, 1, 5, 5, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        result = depthwise(signal, weight, None, 1, 2)
    assert result.dtype == torch.bfloat16
    result.float().sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
