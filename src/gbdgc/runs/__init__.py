"""Run folders: creating and locking them (folder), appending to files (journal), reading them (training)."""

from gbdgc.runs.environment import environment, package_version, without_password, write_environment
from gbdgc.runs.folder import Resume, RunFolder, changed_keys, new_run_folder
from gbdgc.runs.journal import Journal
from gbdgc.runs.training import BEST, CHECKPOINTS, Domains, TrainingRun, read_json

__all__ = [
    "BEST",
    "CHECKPOINTS",
    "Domains",
    "Journal",
    "Resume",
    "RunFolder",
    "TrainingRun",
    "changed_keys",
    "environment",
    "new_run_folder",
    "package_version",
    "read_json",
    "without_password",
    "write_environment",
]
