"""Moving pictures: files, cameras and streams in, files out, through PyAV (the extra "video")."""

from gbdgc.counting.video.opening import parse_every, public_name
from gbdgc.counting.video.reading import frames
from gbdgc.counting.video.smoothing import HALF_LIFE, Smoother
from gbdgc.counting.video.writing import VideoWriter

__all__ = [
    "HALF_LIFE",
    "Smoother",
    "VideoWriter",
    "frames",
    "parse_every",
    "public_name",
]
