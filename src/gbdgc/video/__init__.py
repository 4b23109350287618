"""Moving pictures: files, cameras and streams in, H.264 out, through PyAV (the extra "video")."""

from gbdgc.video.mailbox import Frame
from gbdgc.video.reading import Frames, frames
from gbdgc.video.smoothing import Smoother, smooth
from gbdgc.video.sources import is_video, open_source, parse_every
from gbdgc.video.writing import VideoWriter

__all__ = ["Frame", "Frames", "Smoother", "VideoWriter", "frames", "is_video", "open_source", "parse_every", "smooth"]
