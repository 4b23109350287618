"""Evaluation: one row per counted picture, and everything else computed from these rows."""

from gbdgc.evaluation.calibration import save_calibrated
from gbdgc.evaluation.counting import Unreadable, count_dataset, count_rows
from gbdgc.evaluation.labels import LabelFit, check_labels, label_score
from gbdgc.evaluation.localisation import localisation
from gbdgc.evaluation.metrics import METRICS, doubt, errors, summarise, unbiased_gain
from gbdgc.evaluation.run import Evaluation, evaluate
from gbdgc.evaluation.submission import write_nwpu_submission
from gbdgc.evaluation.table import PREDICTIONS, Row

__all__ = [
    "METRICS",
    "PREDICTIONS",
    "Evaluation",
    "LabelFit",
    "Row",
    "Unreadable",
    "check_labels",
    "count_dataset",
    "count_rows",
    "doubt",
    "errors",
    "evaluate",
    "label_score",
    "localisation",
    "save_calibrated",
    "summarise",
    "unbiased_gain",
    "write_nwpu_submission",
]
