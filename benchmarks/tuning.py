"""What `gbdgc tune` gains on a camera that the model has not seen: the error on the rest before and after.

    python benchmarks/tuning.py MODEL $GBDGC_DATA/ShanghaiTech/part_B [--draws 5] [--pictures 20] [--rest 60]
        [--exclude part_B/train/IMG_108]
    python benchmarks/tuning.py default drawn:concert-night

Draws some pictures of the data's training part, tunes the model to them, and counts its test part by both. One line per
draw, then the mean over all of them; where tuning kept the model as it was, its error counts for both. With `--rest N`
the test part is left alone, and N other pictures of the training part are counted, the same by every draw: by these the
settings of tuning were chosen. `--exclude` leaves out pictures whose labels are wrong. `drawn:NAME` draws the pictures:
60 of a place of `gbdgc.synthetic` to choose from, and 60 to count. `--factor` fits one factor on the counts and nothing
else, which takes no training.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from gbdgc.data import Dataset, load_dataset
from gbdgc.evaluation import Evaluation, evaluate
from gbdgc.synthetic import draw_dataset
from gbdgc.training import tune
from gbdgc.training.tuning import best_factor


def main() -> None:
    """Print the errors of each draw, and the mean gain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run's folder, a model file or a name")
    parser.add_argument("data", help="a data set, or drawn:NAME")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=20)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--rest", type=int, help="count so many pictures of the training part, not the test part")
    parser.add_argument("--exclude", nargs="*", default=[], help="ids of pictures to leave out")
    parser.add_argument("--factor", action="store_true", help="fit one factor only, without training")
    parser.add_argument("--engine", default="openvino", help="what counts the rest")
    options = parser.parse_args()
    gains, errors = [], []
    with tempfile.TemporaryDirectory() as folder:
        place = options.data
        if place.startswith("drawn:"):
            name = place.removeprefix("drawn:")
            place = draw_dataset(Path(folder) / "drawn", images={"train": 60, "test": 60}, domains=[name], seed=7)
        data = load_dataset(place).split_by(options.exclude)[1]
        train_part, rest = data.where("train"), data.where("test")
        if options.rest is not None:
            kept = np.random.default_rng(2**16).choice(train_part.ids, options.rest, replace=False)
            rest, train_part = train_part.split_by(map(str, kept))
        untuned = _count(options.model, rest, options.engine, Path(folder) / "before")
        before = _error(untuned)
        if options.factor:
            known = _count(options.model, train_part, options.engine, Path(folder) / "known").rows
        for draw in range(options.draws):
            chosen = np.random.default_rng(draw).choice(train_part.ids, options.pictures, replace=False)
            began = time.monotonic()
            if options.factor:
                factor = best_factor([row for row in known if row.id in chosen])
                after = float(np.mean([abs(factor * row.count - (row.truth or 0)) for row in untuned.rows]))
                way = f"times {factor:.2f}"
            else:
                drawn = train_part.split_by(map(str, chosen))[0].save(Path(folder) / f"draw-{draw}.jsonl")
                tuned = tune(drawn, options.model, steps=options.steps, out=Path(folder) / f"tuned-{draw}")
                way, after = tuned.chosen, before
                if tuned.model is not None:
                    after = _error(_count(tuned.model, rest, options.engine, Path(folder) / f"{draw}"))
            minutes = (time.monotonic() - began) / 60
            errors.append(after)
            gains.append(1 - after / before)
            change = f"MAE {before:.1f} -> {after:.1f} ({gains[-1]:+.0%})"
            print(f"draw {draw}: {way}, {change}, in {minutes:.1f} min", flush=True)
    print(f"mean of {options.draws} draws: MAE {before:.2f} -> {np.mean(errors):.2f}, gain {np.mean(gains):+.1%}")


def _count(model: str | Path, pictures: Dataset, engine: str, out: Path) -> Evaluation:
    manifest = pictures.save(out.with_suffix(".jsonl"))
    return evaluate(model, {"rest": manifest}, split="all", engine=engine, out=out)


def _error(counted: Evaluation) -> float:
    return float(counted.summary["data"]["rest"]["mae"]["value"])


if __name__ == "__main__":
    main()
