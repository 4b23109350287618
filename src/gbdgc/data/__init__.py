"""Crowd data: any labels in, samples, crops and exact density maps out.

Names are imported on first use (PEP 562): code that only decodes pictures need not wait for the label readers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbdgc.data.formats import READERS, WRITERS
    from gbdgc.data.manifest import Dataset, concatenate, named
    from gbdgc.data.reading import load_dataset
    from gbdgc.data.sample import Points, Sample

_HOMES = {
    "READERS": "formats",
    "WRITERS": "formats",
    "Dataset": "manifest",
    "concatenate": "manifest",
    "named": "manifest",
    "load_dataset": "reading",
    "Points": "sample",
    "Sample": "sample",
}

__all__ = ["READERS", "WRITERS", "Dataset", "Points", "Sample", "concatenate", "load_dataset", "named"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gbdgc.data' has no attribute {name!r}")
    return getattr(import_module(f"gbdgc.data.{_HOMES[name]}"), name)
