"""Which precision to train in: what the machine has, and on CPUs whatever a short trial shows to be faster."""

import time

import torch

from gbdgc.config import Config
from gbdgc.errors import InputError
from gbdgc.models import build_network

# None of Fabric's others: domains are found and models validated outside of its wrapper, on pixels of 32 bits.
PRECISIONS = ("auto", "32-true", "bf16-mixed", "16-mixed")


def choose_precision(config: Config, *, trial: bool) -> str:
    """Return Fabric's name for the precision of a run; without a trial, CPUs compute in 32 bits."""
    wanted = config.train.precision
    if wanted not in PRECISIONS:
        raise InputError(f"train.precision={wanted}", "not a precision", f"choose one of {', '.join(PRECISIONS)}")
    has_card = torch.cuda.is_available()
    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False) if has_card else cpu_has_bf16()
    if (wanted == "bf16-mixed" and not has_bf16) or (wanted == "16-mixed" and not has_card):
        raise InputError(
            f"train.precision={wanted}",
            "this machine computes it by emulation, many times slower than in 32 bits"
            if wanted == "bf16-mixed"
            else "16 bits need a graphics card",
            "take auto or 32-true",
        )
    if wanted != "auto":
        return wanted
    if has_card:
        return "bf16-mixed" if has_bf16 else "16-mixed"
    return faster_on_cpu(config) if has_bf16 and trial else "32-true"


def cpu_has_bf16() -> bool:
    """Tell whether this CPU multiplies bf16 numbers itself."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def faster_on_cpu(config: Config, rounds: int = 3) -> str:
    """Time steps of the network in bf16 and in 32 bits, in turns; plain convolutions gain, depthwise ones do not."""
    model = config.model
    network = build_network(model.backbone, pretrained=False, dim=model.dim, codewords=model.codewords, **model.options)
    side = config.augmentation.crop
    images = torch.zeros(2, 3, side, side).contiguous(memory_format=torch.channels_last)
    best = {"32-true": float("inf"), "bf16-mixed": float("inf")}
    for _ in range(rounds):
        for name in best:
            started = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16-mixed"):
                density = network.train()(images).density
            density.float().sum().backward()
            best[name] = min(best[name], time.perf_counter() - started)
    return min(best, key=best.__getitem__)
