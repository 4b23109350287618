"""Semantic codebook re-encoding: each position's feature becomes a soft mixture of learnt codewords.

Symbols of the paper: s_j feature at position j (d), E codebook (d x M_c), a_j assignment (M_c).
Shapes: B batch, D = d, H x W positions, M = M_c codewords.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Codebook(nn.Module):
    """Re-encode features by a learnt codebook of ``codewords`` vectors of ``dim`` numbers, drawn from N(0, 1)."""

    def __init__(self, dim: int, codewords: int) -> None:
        super().__init__()
        self.codewords_MD = nn.Parameter(torch.randn(codewords, dim))  # E^T: one codeword per row

    def forward(self, semantic_BDHW: Tensor) -> Tensor:
        """Return E a_j with a_j = softmax(E^T s_j / sqrt(d)) for every position j, in the shape of the input.

        This is attention with s_j as queries and the codewords as both keys and values, so the fused kernel
        computes it exactly, without ever holding the matrix of positions x codewords. Each image is a row of queries
        of its own: one row for the whole batch is as fast forward, but its backward pass runs on a single thread.
        """
        batch, dim, height, width = semantic_BDHW.shape
        position_BHWD = semantic_BDHW.permute(0, 2, 3, 1)
        if position_BHWD.stride(3) != 1:  # not channels_last; the kernel wants a position's channels side by side
            position_BHWD = position_BHWD.contiguous()
        queries = position_BHWD.reshape(batch, 1, height * width, dim)
        codewords = self.codewords_MD[None, None].expand(batch, -1, -1, -1)
        recoded = functional.scaled_dot_product_attention(queries, codewords, codewords)
        return recoded.reshape(batch, height, width, dim).permute(0, 3, 1, 2)
