"""Moving pictures: files, cameras and streams in, files out, through PyAV (the extra "video")."""

from gbdgc.counting.video.mailbox import Frame
from gbdgc.counting.video.opening import is_video, open_source, parse_every, public_name
from gbdgc.counting.video.reading import frames
from gbdgc.counting.video.smoothing import HALF_LIFE, Smoother
from gbdgc.counting.video.writing import VideoWriter

__all__ = [
    "HALF_LIFE",
    "Frame",
    "Smoother",
    "VideoWriter",
    "frames",
    "is_video",
    "open_source",
    "parse_every",
    "public_name",
]
