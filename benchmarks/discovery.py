"""Speed and memory of latent-domain discovery, beside scikit-learn's K-means in the same process on the same rows.

    python benchmarks/discovery.py [--largest 1000000]

One thread, 32 axes, the least of several runs taken in turn. Time is the processor's, which on one thread is the
clock's as long as nobody else wants the core.
"""

import argparse
import subprocess
import sys
import tempfile
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from descriptors import draw_descriptors
from gbdgc.domains import GranularBallDomains, divide
from gbdgc.domains.inputs import count_domains
from gbdgc.progress import stderr, stdout
from timing import fastest, verdict

AXES = 32
AT_MOST = {300: 0.7, 1_200: 0.7, 5_000: 0.3, 100_000: 0.03}
EXPONENT, MEMORY = 1.15, 2.1


def rows(n: int) -> np.ndarray:
    return draw_descriptors(n, n_domains=count_domains("auto", n), n_features=AXES, seed=n).epochs[0]


def passes(tree) -> float:
    """How often the division reads the data: measuring each ball, seeding, and each assignment."""
    tried = tree.iterations > 0
    return float((tree.size * (1 + tried + tree.iterations)).sum() / tree.size[0])


def against_kmeans() -> None:
    names = ["discovery", "KMeans 10", "KMeans 1", "Bisecting", "MiniBatch", "floor"]
    table = Table("N", "K", *names, "ratio", "limit", title=f"Whole discovery after PCA, d={AXES}, one thread; ms")
    ratios = {}
    for n, limit in AT_MOST.items():
        Z, k = rows(n), count_domains("auto", n)
        vector = np.ones(AXES)
        jobs = {
            "discovery": lambda Z=Z, k=k: GranularBallDomains(k, n_components=None).fit(Z),
            "KMeans 10": lambda Z=Z, k=k: KMeans(k, n_init=10, random_state=0).fit(Z),
            "KMeans 1": lambda Z=Z, k=k: KMeans(k, n_init=1, random_state=0).fit(Z),
            "Bisecting": lambda Z=Z, k=k: BisectingKMeans(k, random_state=0).fit(Z),
            "MiniBatch": lambda Z=Z, k=k: MiniBatchKMeans(k, n_init=10, random_state=0).fit(Z),
            "floor": lambda Z=Z, vector=vector: Z @ vector,
        }
        stderr.print(f"N={n:,} ...")
        times = fastest(*jobs.values(), rounds=3 if n > 50_000 else 15, clock=time.process_time)
        best = dict(zip(jobs, times, strict=True))
        best["floor"] *= passes(divide(Z))
        ratios[n] = best["discovery"] / best["KMeans 10"]
        table.add_row(f"{n:,}", str(k), *(f"{1e3 * best[name]:.4g}" for name in names), f"{ratios[n]:.3f}", f"{limit}")
    Console(width=110).print(table)
    stdout.print("KMeans 10, KMeans 1: n_init=10, n_init=1; ratio: discovery / KMeans 10")
    stdout.print("floor: one matrix-vector product over the data, times the passes of the division")
    for n, ratio in ratios.items():
        verdict(f"N={n:,}: discovery / KMeans(n_init=10)", ratio, at_most=AT_MOST[n])


def growth(largest: int) -> None:
    table = Table("N", "division, s", "passes", "extra memory / input", title=f"Division alone, d={AXES}")
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= largest]
    times, memory = [], []
    for n in sizes:
        stderr.print(f"division of N={n:,} ...")
        Z = rows(n)
        times += fastest(lambda Z=Z: divide(Z), rounds=5 if n < 500_000 else 3, clock=time.process_time)
        memory.append(memory_of_division(Z) / Z.nbytes)
        tree = divide(Z)
        table.add_row(f"{n:,}", f"{times[-1]:.3f}", f"{passes(tree):.0f}", f"{memory[-1]:.2f}")
    exponent = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
    stdout.print(table)
    verdict(f"exponent of the growth from N={sizes[0]:,} to {sizes[-1]:,}", exponent, at_most=EXPONENT)
    verdict("extra memory / input", max(memory), at_most=MEMORY)


def memory_of_division(Z: np.ndarray) -> int:
    """By how many bytes a fresh process (Linux) grows at its peak; in this one, memory freed before would hide it."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, Z)
        file.flush()
        answer = subprocess.run([sys.executable, "-c", _MEASURE, file.name], capture_output=True, text=True, check=True)
    return int(answer.stdout)


_MEASURE = """
import sys
from pathlib import Path
import numpy as np
from gbdgc.domains import divide

def kibibytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

Z = np.load(sys.argv[1])
divide(Z[:50])
before = kibibytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
divide(Z)
print(1024 * (kibibytes("VmHWM") - before))
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, choices=(100_000, 1_000_000), default=1_000_000, help="rows at most")
    largest = parser.parse_args().largest
    with threadpool_limits(1):
        divide(rows(50))
        against_kmeans()
        growth(largest)
