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
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from gbdgc.domains import GranularBallDomains, divide
from gbdgc.domains.drawn import draw_descriptors
from gbdgc.domains.inputs import count_domains
from gbdgc.progress import stderr, stdout

AXES = 32
AT_MOST = {300: 0.7, 1_200: 0.7, 5_000: 0.3, 100_000: 0.03}
EXPONENT, MEMORY = 1.15, 2.1


def rows(n: int) -> np.ndarray:
    return draw_descriptors(n, n_domains=count_domains("auto", n), n_features=AXES, seed=n).epochs[0]


def seconds(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least time of each job; the jobs take turns, so that what disturbs one disturbs all."""
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            best[name] = min(best[name], time.process_time() - start)
    return best


def passes(tree) -> float:
    """How often the division reads the data: measuring each ball, seeding, and each assignment."""
    tried = tree.iterations > 0
    return float((tree.size * (1 + tried + tree.iterations)).sum() / tree.size[0])


def against_kmeans() -> list[str]:
    names = ["discovery", "KMeans 10", "KMeans 1", "Bisecting", "MiniBatch", "floor"]
    table = Table("N", "K", *names, "ratio", "limit", title=f"Whole discovery after PCA, d={AXES}, one thread; ms")
    verdicts = []
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
        best = seconds(jobs, repeats=3 if n > 50_000 else 15)
        best["floor"] *= passes(divide(Z))
        ratio = best["discovery"] / best["KMeans 10"]
        table.add_row(f"{n:,}", str(k), *(f"{1e3 * best[name]:.4g}" for name in names), f"{ratio:.3f}", f"{limit}")
        verdicts.append(verdict(f"N={n:,}: {ratio:.3f} of KMeans(n_init=10)", ratio, limit))
    Console(width=110).print(table)
    stdout.print("KMeans 10, KMeans 1: n_init=10, n_init=1; ratio: discovery / KMeans 10")
    stdout.print("floor: one matrix-vector product over the data, times the passes of the division\n")
    return verdicts


def growth(largest: int) -> list[str]:
    table = Table("N", "division, s", "passes", "extra memory / input", title=f"Division alone, d={AXES}")
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= largest]
    times, memory = [], []
    for n in sizes:
        stderr.print(f"division of N={n:,} ...")
        Z = rows(n)
        times.append(seconds({"divide": lambda Z=Z: divide(Z)}, repeats=5 if n < 500_000 else 3)["divide"])
        memory.append(memory_of_division(Z) / Z.nbytes)
        tree = divide(Z)
        table.add_row(f"{n:,}", f"{times[-1]:.3f}", f"{passes(tree):.0f}", f"{memory[-1]:.2f}")
    exponent = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
    stdout.print(table)
    return [
        verdict(f"growth from N={sizes[0]:,} to {sizes[-1]:,}: exponent {exponent:.2f}", exponent, EXPONENT),
        verdict(f"extra memory: {max(memory):.2f} times the input", max(memory), MEMORY),
    ]


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


def verdict(what: str, value: float, limit: float) -> str:
    return (
        f"[green]met[/]      {what} (at most {limit})"
        if value <= limit
        else f"[red]not met[/]  {what} (at most {limit})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows at most in the measurement of growth")
    with threadpool_limits(1):
        divide(rows(50))
        lines = against_kmeans() + growth(parser.parse_args().largest)
    for line in lines:
        stdout.print(line)
