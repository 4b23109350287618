"""Average the weights of two models, the second trained on from the first: the mean may count better than either.

    python benchmarks/averaging.py RUN --before EARLIER.safetensors --share 0.5 --out averaged.safetensors

RUN is the training that started from the earlier model. Its share of the weights is --share, the rest is the earlier
model's. What the mean model knows of its training pictures, by which it tells what is new to it, is found again on
the pictures of RUN. Choose the share on pictures that neither was trained on.
"""

import argparse
import tempfile
from pathlib import Path

from gbdgc import checkpoint
from gbdgc.config import load_config
from gbdgc.runs import TrainingRun
from gbdgc.training.epoch import finish_model
from gbdgc.training.run import make_fabric
from gbdgc.training.state import build_state


def main() -> None:
    """Write the mean of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of the later training")
    parser.add_argument("--before", required=True, help="the model that it started from: a file, a run or a name")
    parser.add_argument("--share", type=float, default=0.5, help="of the later model in the mean")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    options = parser.parse_args()
    run = TrainingRun(options.run)
    network, info, _ = checkpoint.load_model(run.best)
    earlier = checkpoint.load_model(options.before)[0].state_dict()
    mean = {
        name: options.share * weight + (1 - options.share) * earlier[name] if weight.is_floating_point() else weight
        for name, weight in network.state_dict().items()
    }
    network.load_state_dict(mean)
    with tempfile.TemporaryDirectory() as name:
        config = load_config(run.folder / "config.yaml")
        state = build_state(config, Path(name), make_fabric(config, 1))
        folder = state.run.checkpoints
        folder.mkdir()
        info["averaged"] = {"share": options.share, "before": Path(options.before).name}
        info["validation"] = None  # of the later model alone
        checkpoint.save_model(folder / checkpoint.BEST, network, state.build, info, {})
        finish_model(state)
        checkpoint.amend_model(folder / checkpoint.BEST, options.out, {})
    print(f"{options.share:g} of {options.run} and {1 - options.share:g} of {options.before}: {options.out}")


if __name__ == "__main__":
    main()
