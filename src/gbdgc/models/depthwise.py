"""Depthwise convolution with a weight gradient of our own: on CPUs the library's takes most of a backward pass.

Everything else, forward and the gradient of the signal, is the library's. `benchmarks/training.py` measures both.
"""

from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def depthwise(signal_BCHW: Tensor, weight_C1KK: Tensor, bias_C: Tensor | None, stride: int, padding: int) -> Tensor:
    """Convolve each channel with a kernel of its own."""
    if weight_C1KK.requires_grad and torch.is_grad_enabled() and signal_BCHW.device.type == "cpu":
        if torch.is_autocast_enabled("cpu"):
            signal_BCHW, weight_C1KK = (part.to(torch.get_autocast_dtype("cpu")) for part in (signal_BCHW, weight_C1KK))
            bias_C = None if bias_C is None else bias_C.to(signal_BCHW.dtype)
        result: Tensor = _Depthwise.apply(signal_BCHW, weight_C1KK, bias_C, stride, padding)  # type: ignore[no-untyped-call]
        return result
    return functional.conv2d(signal_BCHW, weight_C1KK, bias_C, stride, padding, groups=len(weight_C1KK))


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, signal: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
        context.save_for_backward(signal, weight)
        context.stride, context.padding, context.has_bias = stride, padding, bias is not None
        return functional.conv2d(signal, weight, bias, stride, padding, groups=len(weight))

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        signal, weight = context.saved_tensors
        stride, padding = context.stride, context.padding
        exact_signal, exact_gradient = signal.float(), gradient.float()
        for_signal = None
        if context.needs_input_grad[0]:
            # In 16 bits the library has no fast gradient at a stride.
            parts = (gradient, signal, weight) if stride == 1 else (exact_gradient, exact_signal, weight.float())
            settings = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], len(weight), [True, False, False])
            for_signal = torch.ops.aten.convolution_backward(*parts, None, *settings)[0].to(signal.dtype)
        signal_BHWC, gradient_BhwC = (part.permute(0, 2, 3, 1).contiguous() for part in (exact_signal, exact_gradient))
        side = weight.shape[-1]
        for_weight_KKC = np.zeros((side, side, len(weight)), dtype=np.float32)
        _weight_gradient(signal_BHWC.numpy(), gradient_BhwC.numpy(), for_weight_KKC, stride, padding)
        for_weight = torch.from_numpy(for_weight_KKC).permute(2, 0, 1)[:, None].to(weight.dtype)
        for_bias = gradient_BhwC.sum(dim=(0, 1, 2)).to(weight.dtype) if context.has_bias else None
        return for_signal, for_weight, for_bias, None, None


@numba.njit(cache=True, nogil=True, fastmath=True)
def _weight_gradient(
    signal_BHWC: NDArray[np.float32],
    gradient_BhwC: NDArray[np.float32],
    sums_KKC: NDArray[np.float32],
    stride: int,
    padding: int,
) -> None:
    """Add up signal times gradient at every offset of the kernel; channels are innermost, so that it vectorises."""
    batch, height, width, channels = signal_BHWC.shape
    rows, columns = gradient_BhwC.shape[1:3]
    side = len(sums_KKC)
    for image in range(batch):
        for row in range(rows):
            for down in range(side):
                y = row * stride + down - padding
                if y < 0 or y >= height:
                    continue
                for across in range(side):
                    for column in range(columns):
                        x = column * stride + across - padding
                        if x < 0 or x >= width:
                            continue
                        for channel in range(channels):
                            sums_KKC[down, across, channel] += (
                                signal_BHWC[image, y, x, channel] * gradient_BhwC[image, row, column, channel]
                            )
