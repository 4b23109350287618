"""Latent-domain discovery: NumPy, SciPy, scikit-learn and Numba. Works where torch is not installed."""

from gbdgc.domains.alignment import align_labels
from gbdgc.domains.balls import divide
from gbdgc.domains.baselines import KMeansDomains, RandomDomains, SourceDomains
from gbdgc.domains.discovery import GranularBallDomains
from gbdgc.domains.partitions import PARTITIONS, Partition, build_partition
from gbdgc.domains.quality import count_separation, stability
from gbdgc.domains.tree import BallTree

__all__ = [
    "PARTITIONS",
    "BallTree",
    "GranularBallDomains",
    "KMeansDomains",
    "Partition",
    "RandomDomains",
    "SourceDomains",
    "align_labels",
    "build_partition",
    "count_separation",
    "divide",
    "stability",
]
