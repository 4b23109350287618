"""Crowd counting that generalises, by granular-ball guided latent domain discovery.

Names are imported on first use (PEP 562), so that discovery works where torch is not installed
and the command line answers at once.
"""

from importlib import import_module
from typing import Any

from gbdgc.errors import missing_extra

__version__ = "0.1.0"

_HOMES = {
    "GranularBallDomains": "gbdgc.domains",
    "KMeansDomains": "gbdgc.domains",
    "RandomDomains": "gbdgc.domains",
    "align_labels": "gbdgc.domains",
    "count_separation": "gbdgc.domains",
    "stability": "gbdgc.domains",
    "load_dataset": "gbdgc.data",
    "Dataset": "gbdgc.data",
    "Sample": "gbdgc.data",
    "Counter": "gbdgc.counting",
    "Result": "gbdgc.counting",
    "count_on_cluster": "gbdgc.cluster",
    "train": "gbdgc.training",
    "tune": "gbdgc.training",
    "evaluate": "gbdgc.evaluation",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gbdgc' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        raise ImportError(f"gbdgc.{name}: {missing}", name=error.name) from error


def __dir__() -> list[str]:
    return sorted(__all__)
