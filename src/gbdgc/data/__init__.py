"""Crowd data: any labels in, samples, crops and exact density maps out."""

from gbdgc.data.formats import READERS, WRITERS
from gbdgc.data.manifest import Dataset, concatenate, unique_name
from gbdgc.data.reading import load_dataset
from gbdgc.data.sample import Points, Sample

__all__ = ["READERS", "WRITERS", "Dataset", "Points", "Sample", "concatenate", "load_dataset", "unique_name"]
