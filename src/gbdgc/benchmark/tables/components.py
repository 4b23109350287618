"""What each part of the method adds."""

from gbdgc.benchmark.declaration import Benchmark
from gbdgc.benchmark.layout import one_error_table
from gbdgc.benchmark.measures import errors_on_target
from gbdgc.benchmark.protocol import to_every_other

COMPONENTS = Benchmark(
    name="components",
    caption="What each part of the method adds",
    variants={
        # SCR is the codebook; SBR is the style branch with all three losses that speak of pseudo-domains.
        "baseline": ["method.name=erm"],
        "+SCR": ["method.semantic=0", "method.style=0", "method.orthogonality=0"],
        "+SCR+SBR": [],
        "without L_sem": ["method.semantic=0"],
        "without L_sty": ["method.style=0"],
        "without L_orth": ["method.orthogonality=0"],
    },
    pairs=to_every_other,
    measure=errors_on_target,
    layout=one_error_table,
)
