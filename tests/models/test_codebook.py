"""The codebook computes the written-out equations, by the fused kernel, without a positions x codewords matrix."""

import pytest
import torch

from gbdgc.models.codebook import Codebook


def written_out(codebook: Codebook, semantic: torch.Tensor) -> torch.Tensor:
    E = codebook.codewords_MD.T  # d x M_c
    recoded = torch.empty_like(semantic)
    for i in range(len(semantic)):
        s = semantic[i].flatten(1)  # d x positions
        a = torch.softmax(E.T @ s / E.shape[0] ** 0.5, dim=0)
        recoded[i] = (E @ a).reshape(semantic[i].shape)
    return recoded


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("dim", "codewords"), [(256, 1024), (128, 512), (7, 5)])
def test_equal_to_the_equations(dim: int, codewords: int, layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    codebook = Codebook(dim, codewords)
    semantic = torch.randn(2, dim, 6, 9).relu().contiguous(memory_format=layout)
    torch.testing.assert_close(codebook(semantic), written_out(codebook, semantic), atol=1e-5, rtol=1e-5)


def test_gradients_equal_those_of_the_equations() -> None:
    torch.manual_seed(0)
    codebook = Codebook(16, 32)
    gradients = []
    for compute in (codebook, lambda semantic: written_out(codebook, semantic)):
        semantic = torch.randn(2, 16, 3, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
        codebook.zero_grad()
        compute(semantic).pow(3).sum().backward()
        gradients.append((semantic.grad, codebook.codewords_MD.grad))
    for fused, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-4)


def largest_allocation(compute, semantic: torch.Tensor) -> int:  # type: ignore[no-untyped-def]
    with torch.inference_mode(), torch.profiler.profile(profile_memory=True) as profile:
        compute(semantic)
    return max(event.self_cpu_memory_usage for event in profile.key_averages())


def test_inference_holds_no_matrix_of_positions_by_codewords() -> None:
    codebook = Codebook(64, 1024)
    semantic = torch.randn(1, 64, 96, 128).contiguous(memory_format=torch.channels_last)
    matrix = 96 * 128 * 1024 * semantic.element_size()
    assert largest_allocation(lambda s: written_out(codebook, s), semantic) >= matrix
    assert largest_allocation(codebook, semantic) < matrix / 4


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_fused_kernel_is_really_taken(batch: int, layout: torch.memory_format) -> None:
    codebook = Codebook(64, 128)
    semantic = torch.randn(batch, 64, 8, 8).contiguous(memory_format=layout)
    with torch.profiler.profile() as profile:
        codebook(semantic).sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert any("flash_attention" in name and "backward" not in name for name in names)
    assert any("flash_attention" in name and "backward" in name for name in names)
