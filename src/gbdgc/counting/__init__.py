"""Counting: pixels to people. Pictures, folders, videos and streams in; results with density and zones out."""

from gbdgc.counting.counter import Counter
from gbdgc.counting.pipeline import Failure, Moment, Outcome, Video, count_sources
from gbdgc.counting.result import Result
from gbdgc.counting.sources import Source, find_sources
from gbdgc.counting.zones import Zone, load_zones, parse_zones, zones_from_json

__all__ = [
    "Counter",
    "Failure",
    "Moment",
    "Outcome",
    "Result",
    "Source",
    "Video",
    "Zone",
    "count_sources",
    "find_sources",
    "load_zones",
    "parse_zones",
    "zones_from_json",
]
