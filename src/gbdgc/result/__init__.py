"""What a count gives back: the number, where the people are, and how far to trust it."""

from gbdgc.result.result import Result
from gbdgc.result.zones import Zone, load_zones, parse_zones, zones_from_json

__all__ = ["Result", "Zone", "load_zones", "parse_zones", "zones_from_json"]
