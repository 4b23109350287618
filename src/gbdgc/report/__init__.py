"""The report of a run: one self-contained HTML page."""

from gbdgc.report.render import write_report

__all__ = ["write_report"]
