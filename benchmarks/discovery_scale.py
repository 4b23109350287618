"""Discovery in more rows than fit comfortably: fitted in their own memory, or on a sample and labelled in chunks.

    python benchmarks/discovery_scale.py [--rows 10000000] [--sample 100000] [--compare 1000000]

First the labels of samples of several sizes beside those of a fit on all rows; then time and memory of both ways at a
tenth of the rows and at all of them, 32 columns in float32. One thread; time is the processor's.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from descriptors import draw_descriptors
from gbdgc.domains import GranularBallDomains, align_labels
from gbdgc.domains.inputs import count_domains
from timing import verdict

COLUMNS = 32
CHUNK = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--sample", type=int, default=100_000, help="rows to fit on")
    parser.add_argument("--compare", type=int, default=1_000_000, help="rows to fit on as a whole, for comparison")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        compare(arguments.compare, arguments.sample)
    # In fresh processes: in this one, memory freed before would hide what is taken.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        sizes = (arguments.rows // 10, arguments.rows)
        for what, sample in (("fitting with copy=False", None), ("labelling by a sample", arguments.sample)):
            seconds, memory = zip(*fresh.map(label_many, sizes, [sample] * 2), strict=True)
            print(f"{what}: {sizes[0]:,} rows in {seconds[0]:.1f} s, {sizes[1]:,} rows in {seconds[1]:.1f} s")
            verdict("exponent of the growth of time", np.log10(seconds[1] / seconds[0]), at_most=1.15)
            verdict("memory / input, the input and the fit included", 1 + memory[1], at_most=1.2)


def compare(rows: int, sample: int) -> None:
    """Print how many rows get the label that a fit on all of them gives, by the size of the sample."""
    (Z, truth), domains = draw(rows), count_domains("auto", rows)
    before, began = start_of_peak(Z), time.process_time()
    whole = GranularBallDomains(domains).fit(Z)
    seconds, memory = time.process_time() - began, 1024 * (kibibytes("VmHWM") - before) / Z.nbytes
    print(
        f"{rows:,} rows, {domains} domains; fitted on all of them in {seconds:.1f} s, extra memory / input {memory:.1f}"
    )
    print("| fitted on | seconds | same label as the fit on all | ARI with it | ARI with the drawn domains |")
    print("|---|---|---|---|---|")
    print(f"| all | {seconds:.1f} | {agreement(whole.labels_, whole.labels_, truth)} |")
    print(f"| all, labelled by `predict` | | {agreement(label(whole, Z), whole.labels_, truth)} |")
    began = time.process_time()
    in_place = GranularBallDomains(domains, copy=False).fit(Z.copy()).labels_
    seconds = time.process_time() - began
    print(f"| all, `copy=False` | {seconds:.1f} | {agreement(in_place, whole.labels_, truth)} |")
    for size in (sample // 10, sample, min(rows, 3 * sample)):
        began = time.process_time()
        found = fit_on_sample(Z, size, domains)
        seconds = time.process_time() - began
        print(f"| {size:,} rows | {seconds:.1f} | {agreement(label(found, Z), whole.labels_, truth)} |")


def agreement(labels: np.ndarray, whole: np.ndarray, truth: np.ndarray) -> str:
    same = np.mean(align_labels(labels, whole) == whole)
    return f"{same:.1%} | {adjusted_rand_score(whole, labels):.3f} | {adjusted_rand_score(truth, labels):.3f}"


def label_many(rows: int, sample: int | None) -> tuple[float, float]:
    """Return the seconds of labelling rows, and by what part of them memory grew at its peak (Linux)."""
    Z, _ = draw(rows)
    before = start_of_peak(Z)
    with threadpool_limits(1):
        began = time.process_time()
        if sample is None:
            GranularBallDomains(copy=False).fit(Z)
        else:
            domains = fit_on_sample(Z, sample, count_domains("auto", rows))
            began = time.process_time()  # the fit takes the same time for any number of rows
            label(domains, Z)
    seconds = time.process_time() - began
    return seconds, 1024 * (kibibytes("VmHWM") - before) / Z.nbytes


def start_of_peak(Z: np.ndarray) -> int:
    """Compile what is compiled, let the peak of memory start anew, and return where it starts, in KiB (Linux)."""
    GranularBallDomains().fit(Z[:100])
    GranularBallDomains(copy=False).fit(Z[:100].copy())
    Path("/proc/self/clear_refs").write_text("5")
    return kibibytes("VmRSS")


def draw(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in float32 and their domains: a million at most, and then the same again with other noise."""
    drawn = draw_descriptors(min(rows, 1_000_000), n_domains=20, n_features=COLUMNS, seed=1)
    some = drawn.epochs[0].astype(np.float32)
    Z, rng = np.empty((rows, COLUMNS), dtype=np.float32), np.random.default_rng(0)
    for start in range(0, rows, len(some)):
        part = Z[start : start + len(some)]
        rng.standard_normal(dtype=np.float32, out=part)
        part *= 0.1
        part += some[: len(part)]
    return Z, np.resize(drawn.truth, rows)


def fit_on_sample(Z: np.ndarray, size: int, n_domains: int) -> GranularBallDomains:
    """Fit on rows drawn without replacement; how many domains goes by the number of all rows."""
    chosen = np.random.default_rng(0).choice(len(Z), size, replace=False)
    return GranularBallDomains(n_domains).fit(Z[np.sort(chosen)])


def label(domains: GranularBallDomains, Z: np.ndarray) -> np.ndarray:
    return np.concatenate([domains.predict(Z[start : start + CHUNK]) for start in range(0, len(Z), CHUNK)])


def kibibytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
