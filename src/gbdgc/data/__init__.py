"""Crowd data: any labels in, samples, crops and exact density maps out."""

from gbdgc.data.manifest import Dataset, concatenate
from gbdgc.data.sample import Points, Sample

__all__ = ["Dataset", "Points", "Sample", "concatenate"]
