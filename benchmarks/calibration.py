"""Calibrate the intervals of a trained model, and hold them against pictures that had no part in it.

    python benchmarks/calibration.py runs/train/bundled-1 --model bundled.safetensors --halve JHU-CROWD++ \
        --test part_A part_B --out calibrated.safetensors

Calibrated on the pictures that the run kept aside from its training, as its config says, and on one half of the val
part of each data set in --halve. Prints how many true counts of the other half and of the test parts lie in their 90 %
intervals, and how the error grows with novelty. What is counted is kept in --counts, and not counted again.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from gbdgc.config import load_config
from gbdgc.counting.conformal import OFFSET, features_of
from gbdgc.evaluation import Row, evaluate, save_calibrated
from gbdgc.evaluation.calibration import coverage
from gbdgc.runs import TrainingRun
from gbdgc.training.state import load_source

_BANDS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.01)


def main() -> None:
    """Calibrate, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of the training")
    parser.add_argument("--model", type=Path, help="the model of that run in another file, such as its 16-bit export")
    parser.add_argument("--halve", type=Path, nargs="*", default=[], help="data sets whose val part is split in two")
    parser.add_argument("--test", type=Path, nargs="*", default=[], help="data sets whose test part is counted")
    parser.add_argument("--counts", type=Path, default=Path("runs/calibration"), help="where the counts are kept")
    parser.add_argument("--engine", help="what counts: torch, onnx or openvino")
    parser.add_argument("--out", type=Path, required=True, help="the file to write the calibrated model to")
    options = parser.parse_args()
    run = TrainingRun(options.run)
    model = options.model or run.best
    _, held_out = load_source(load_config(run.folder / "config.yaml"))
    if held_out is None:
        parser.error(f"{options.run} was trained with data.validation=0: nothing was kept aside")
    options.counts.mkdir(parents=True, exist_ok=True)
    manifest = held_out.save(options.counts / "held_out.jsonl")
    how = {"engine": options.engine, "resume": "auto"}
    counted = evaluate(model, {"held out": manifest}, split="all", out=options.counts / "held_out", **how)
    max_side = counted.summary["max_side"]
    calibrating, others = list(counted.rows), list[Row]()
    for place in options.halve:
        rows = evaluate(model, [place], split="val", out=options.counts / f"{place.name}_val", **how).rows
        order = np.random.default_rng(0).permutation(len(rows))
        calibrating += [rows[index] for index in order[: len(rows) // 2]]
        others += [rows[index] for index in order[len(rows) // 2 :]]
    if options.test:
        others += evaluate(model, options.test, out=options.counts / "test", **how).rows
    conformal = save_calibrated(model, options.out, calibrating, max_side)
    print(f"calibrated on {len(calibrating)} pictures; novelty warns above {conformal.far[0]:.2f}\n")
    for place, row in enumerate(others):
        features = features_of(row.count, row.novelty, row.width, row.height, max_side, row.domain)
        low, high = conformal.spread(features).around(row.count)
        others[place] = replace(row, low=low, high=high)
    print("| data | pictures | in their 90 % interval | high / low, median |\n|---|--:|--:|--:|")
    for name in dict.fromkeys(row.data for row in others):
        own = [row for row in others if row.data == name]
        found = coverage(own)
        assert found is not None
        print(f"| {name} | {len(own)} | {found['share']:.1%} | {found['width']:.2f} |")
    print_error_by_novelty([*calibrating, *others])


def print_error_by_novelty(rows: Sequence[Row]) -> None:
    """Print how far counts are off, as a factor and in people, by novelty."""
    print("\n| novelty | pictures | mean factor off | MAE | mean count |\n|---|--:|--:|--:|--:|")
    known = [(row.novelty, row.truth, row.count) for row in rows if None not in (row.novelty, row.truth)]
    novelty, truth, count = np.array(known, dtype=np.float64).T
    off = np.exp(np.abs(np.log((truth + OFFSET) / (count + OFFSET))))
    for low, high in pairwise(_BANDS):
        own = (novelty >= low) & (novelty < high)
        if own.any():
            means = off[own].mean(), np.abs(truth - count)[own].mean(), truth[own].mean()
            print(f"| {low:g} to {min(high, 1):g} | {own.sum()} | {means[0]:.2f} | {means[1]:.1f} | {means[2]:.0f} |")


if __name__ == "__main__":
    main()
