"""Training: `train(config)` in run.py, the epoch in epoch.py, the step in step.py, what changes in state.py.

`tune` in tuning.py fits a model to one camera, by a few such trainings.
"""

from gbdgc.runs import TrainingRun
from gbdgc.training.run import train
from gbdgc.training.tuning import Tuning, tune

__all__ = ["TrainingRun", "Tuning", "train", "tune"]
