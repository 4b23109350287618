"""The report of a run: one HTML page that needs nothing else."""

from gbdgc.report.render import write_report

__all__ = ["write_report"]
