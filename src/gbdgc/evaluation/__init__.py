"""Evaluation: one row per counted picture, and everything else computed from these rows."""

from gbdgc.evaluation.calibration import coverage, save_calibrated, with_intervals
from gbdgc.evaluation.counting import Unreadable, count_dataset, count_rows
from gbdgc.evaluation.intervals import bootstrap, paired_bootstrap
from gbdgc.evaluation.labels import LabelFit, check_labels, label_score
from gbdgc.evaluation.localisation import box_free_radius, localisation, match_points
from gbdgc.evaluation.metrics import METRICS, compare, doubt, errors, full_summary, summarise, unbiased_gain
from gbdgc.evaluation.run import Evaluation, evaluate
from gbdgc.evaluation.submission import write_nwpu_submission
from gbdgc.evaluation.table import PREDICTIONS, Row, read_table

__all__ = [
    "METRICS",
    "PREDICTIONS",
    "Evaluation",
    "LabelFit",
    "Row",
    "Unreadable",
    "bootstrap",
    "box_free_radius",
    "check_labels",
    "compare",
    "count_dataset",
    "count_rows",
    "coverage",
    "doubt",
    "errors",
    "evaluate",
    "full_summary",
    "label_score",
    "localisation",
    "match_points",
    "paired_bootstrap",
    "read_table",
    "save_calibrated",
    "summarise",
    "unbiased_gain",
    "with_intervals",
    "write_nwpu_submission",
]
