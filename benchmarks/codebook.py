"""The codebook by the fused kernel against its equations written out: time and memory, side by side in one run.

    python benchmarks/codebook.py [--repeats 5]

Prints for each size the shortest time of either (forward; forward and backward) and the most memory that one
operation takes, as ratios written-out / fused.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from gbdgc.models.codebook import Codebook
from gbdgc.progress import stdout
from timing import fastest

SIZES = [(128, 512), (256, 1024)]
BATCH = 8
POSITIONS = (80, 80)  # stride 4 of the paper's crops of 320 x 320


def written_out(codebook: Codebook, semantic_BDHW: Tensor) -> Tensor:
    batch, dim, height, width = semantic_BDHW.shape
    flat_PD = semantic_BDHW.permute(0, 2, 3, 1).reshape(-1, dim)
    assignment_PM = torch.softmax(flat_PD @ codebook.codewords_MD.T / dim**0.5, dim=1)
    return (assignment_PM @ codebook.codewords_MD).reshape(batch, height, width, dim).permute(0, 3, 1, 2)


def peak(run: Callable[[], object]) -> float:
    """Megabytes that the hungriest operation allocates."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    return max(event.self_cpu_memory_usage for event in profile.key_averages()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.manual_seed(0)
    for dim, codewords in SIZES:
        codebook = Codebook(dim, codewords)
        semantic = torch.randn(BATCH, dim, *POSITIONS).relu().contiguous(memory_format=torch.channels_last)
        semantic.requires_grad_()

        def plain(codebook: Codebook = codebook, semantic: Tensor = semantic) -> Tensor:
            return written_out(codebook, semantic)

        def fused(codebook: Codebook = codebook, semantic: Tensor = semantic) -> Tensor:
            return codebook(semantic)

        with torch.inference_mode():
            forward = fastest(plain, fused, rounds=repeats)
            memory = [peak(plain), peak(fused)]
        both_ways = fastest(lambda: plain().sum().backward(), lambda: fused().sum().backward(), rounds=repeats)
        stdout.print(
            f"d={dim} M_c={codewords}, {BATCH} maps of {POSITIONS[0]}x{POSITIONS[1]}: written out / fused "
            f"forward {forward[0] / forward[1]:.2f} ({forward[0]:.3f} s / {forward[1]:.3f} s), "
            f"with backward {both_ways[0] / both_ways[1]:.2f} ({both_ways[0]:.3f} s / {both_ways[1]:.3f} s), "
            f"largest allocation {memory[0] / memory[1]:.1f} ({memory[0]:.0f} MB / {memory[1]:.0f} MB)",
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
