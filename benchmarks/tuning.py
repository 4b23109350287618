"""What `gbdgc tune` gains on a camera that the model has not seen: the error on the rest before and after.

    python benchmarks/tuning.py MODEL $GBDGC_DATA/ShanghaiTech/part_B [--draws 5] [--pictures 20]

Draws some pictures of the data's training part, tunes the model to them, and counts its test part by both. One line per
draw, then the mean over all of them; where tuning kept the model as it was, its error counts for both.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from gbdgc.data import load_dataset
from gbdgc.evaluation import evaluate
from gbdgc.training import tune


def main() -> None:
    """Print the errors of each draw, and the mean gain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run's folder, a model file or a name")
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=20)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    train_part = load_dataset(options.data).where("train")
    gains = []
    with tempfile.TemporaryDirectory() as folder:
        before = _test_error(options.model, options.data, Path(folder) / "before")
        for draw in range(options.draws):
            chosen = np.random.default_rng(draw).choice(train_part.ids, options.pictures, replace=False)
            drawn = train_part.split_by(map(str, chosen))[0].save(Path(folder) / f"draw-{draw}.jsonl")
            tuned = tune(drawn, options.model, steps=options.steps, out=Path(folder) / f"tuned-{draw}")
            after = before if tuned.model is None else _test_error(tuned.model, options.data, Path(folder) / f"{draw}")
            gains.append(1 - after / before)
            print(f"draw {draw}: {tuned.chosen}, MAE {before:.1f} -> {after:.1f} ({gains[-1]:+.0%})", flush=True)
    print(f"mean of {options.draws} draws: {np.mean(gains):+.0%}")


def _test_error(model: str | Path, data: Path, out: Path) -> float:
    summary = evaluate(model, {"data": data}, split="test", out=out).summary
    return float(summary["data"]["data"]["mae"]["value"])


if __name__ == "__main__":
    main()
