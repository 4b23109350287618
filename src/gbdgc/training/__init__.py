"""Training: `train(config)` in run.py, the epoch in epoch.py, the step in step.py, what changes in state.py."""

from gbdgc.training.run import Run, train

__all__ = ["Run", "train"]
