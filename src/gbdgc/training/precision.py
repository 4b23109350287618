"""Which precision to train in: a rule, not a trial of what is faster, so that runs repeat to the bit."""

import torch

from gbdgc.errors import InputError

# None of Fabric's others: domains are found and models validated outside of its wrapper, on pixels of 32 bits.
PRECISIONS = ("auto", "32-true", "bf16-mixed", "16-mixed")


def choose_precision(wanted: str) -> str:
    """Return Fabric's name for the precision of a run: that which is wanted, or for "auto" the fastest there is."""
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
    return "bf16-mixed" if has_bf16 else "32-true"


def cpu_has_bf16() -> bool:
    """Return whether this CPU has bf16 instructions."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
