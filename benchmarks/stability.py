"""How near to the truth and how steady over epochs discovered domains are, on drawn descriptors with fresh seeds.

    python benchmarks/stability.py [--seeds 10] [--first-seed 1000]

Every method sees the same epochs and is given its own labels of the epoch before. ARI to the truth, churn after
alignment and the smallest domain's share are means over epochs; the table gives their mean over seeds, and its
standard error.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import adjusted_rand_score

from descriptors import CONDITIONS, draw_descriptors
from gbdgc.domains import GranularBallDomains, KMeansDomains, RandomDomains, align_labels, stability
from gbdgc.errors import GbdgcWarning
from gbdgc.progress import stdout, track

SAMPLES, DOMAINS, EPOCHS = 300, 4, 8
METHODS: dict[str, Callable[[], object]] = {
    "random": partial(RandomDomains, DOMAINS, random_state=np.random.RandomState(0)),
    "K-means": partial(KMeansDomains, DOMAINS),
    "K-means, clipped": partial(KMeansDomains, DOMAINS, mode="stable"),
    "balls, paper": partial(GranularBallDomains, DOMAINS),
    "balls, stable": partial(GranularBallDomains, DOMAINS, mode="stable"),
    "K-means, stable": partial(KMeansDomains, DOMAINS, mode="stable"),
}
WITHOUT_MEMORY = {"K-means, clipped"}


def follow(name: str, epochs: list[np.ndarray]) -> list[np.ndarray]:
    """Labels over epochs. The clipped K-means gets the clip alone: no memory, only its names aligned."""
    estimator, history = METHODS[name](), []
    for Z in epochs:
        previous = history[-1] if history else None
        if name in WITHOUT_MEMORY:
            labels = estimator.fit(Z).labels_
            history.append(labels if previous is None else align_labels(labels, previous))
        else:
            history.append(estimator.fit(Z, previous_labels=previous).labels_)
    return history


def judge(history: list[np.ndarray], truth: np.ndarray) -> tuple[float, float, float]:
    rows = stability(history)
    ari = np.mean([adjusted_rand_score(truth, labels) for labels in history])
    return (
        float(ari),
        float(np.mean([row.churn for row in rows[1:]])),
        float(np.mean([row.smallest_share for row in rows])),
    )


def measure(seeds: range) -> dict[tuple[str, str], np.ndarray]:
    """For each condition and method, one row a seed: ARI, churn, smallest share."""
    results: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    jobs = [(condition, seed) for condition in CONDITIONS for seed in seeds]
    for condition, seed in track(jobs, "drawn sets", unit="sets"):
        drawn = draw_descriptors(SAMPLES, DOMAINS, EPOCHS, condition, seed=seed)
        for name in METHODS:
            results.setdefault((condition, name), []).append(judge(follow(name, drawn.epochs), drawn.truth))
    return {key: np.array(rows) for key, rows in results.items()}


def show(results: dict[tuple[str, str], np.ndarray], n_seeds: int) -> None:
    title = f"N={SAMPLES}, K={DOMAINS}, {EPOCHS} epochs, {n_seeds} seeds: mean (standard error)"
    table = Table("condition", "method", "ARI to truth", "churn", "smallest share", title=title)
    for condition in CONDITIONS:
        for name in METHODS:
            rows = results[condition, name]
            error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            cells = [f"{mean:.3f} ({wide:.3f})" for mean, wide in zip(rows.mean(axis=0), error, strict=True)]
            table.add_row(condition if name == "random" else "", name, *cells, end_section=name == "K-means, stable")
    Console(width=110).print(table)


def verdicts(results: dict[tuple[str, str], np.ndarray]) -> None:
    """Churn at most a quarter of plain K-means', ARI no lower than clipped K-means': over all, then by condition."""
    for condition in (None, *CONDITIONS):
        chosen = [condition] if condition else list(CONDITIONS)
        mean = {name: np.concatenate([results[c, name] for c in chosen]).mean(axis=0) for name in METHODS}
        churn, plain_churn = mean["balls, stable"][1], mean["K-means"][1]
        gain = np.concatenate(
            [results[c, "balls, stable"][:, 0] - results[c, "K-means, clipped"][:, 0] for c in chosen]
        )
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        quiet = word(churn <= plain_churn / 4)
        true = word(gain.mean() >= 0, within_error=gain.mean() >= -2 * error)
        stdout.print(
            f"{condition or 'all conditions'}: churn {churn:.4f} against {plain_churn:.4f} of K-means "
            f"(at most a quarter) {quiet}; ARI less that of clipped K-means {gain.mean():+.3f} ± {error:.3f} "
            f"(at least 0) {true}",
            soft_wrap=True,
        )


def word(met: bool, within_error: bool = False) -> str:
    return "[green]met[/]" if met else "[yellow]a tie within two errors[/]" if within_error else "[red]not met[/]"


def plainly(results: dict[tuple[str, str], np.ndarray]) -> None:
    """What is better and what is not, counted over all drawn sets."""

    def versus(ours: str, theirs: str) -> str:
        gain = np.concatenate([results[c, ours][:, 0] - results[c, theirs][:, 0] for c in CONDITIONS])
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        answer = "a tie" if abs(gain.mean()) <= 2 * error else "better" if gain.mean() > 0 else "worse"
        return f"ARI of {ours} less that of {theirs}: {gain.mean():+.3f} ± {error:.3f}, {answer}"

    stdout.print()
    for ours, theirs in (
        ("balls, paper", "K-means"),
        ("balls, stable", "K-means"),
        ("balls, stable", "K-means, clipped"),
        ("balls, stable", "K-means, stable"),
    ):
        stdout.print(versus(ours, theirs), soft_wrap=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="drawn sets for each condition, at least 2")
    parser.add_argument("--first-seed", type=int, default=1000, help="seeds not used in making the defaults")
    options = parser.parse_args()
    warnings.simplefilter("ignore", GbdgcWarning)
    found = measure(range(options.first_seed, options.first_seed + max(2, options.seeds)))
    show(found, max(2, options.seeds))
    verdicts(found)
    plainly(found)
