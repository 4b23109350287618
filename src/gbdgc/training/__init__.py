"""Training: `train(config)` in run.py, the epoch in epoch.py, the step in step.py, what changes in state.py."""

from gbdgc.runs import TrainingRun
from gbdgc.training.run import train

__all__ = ["TrainingRun", "train"]
