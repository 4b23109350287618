"""The service: counts over HTTP, and the page that uses it."""

from gbdgc.server.app import create_app
from gbdgc.server.limits import Limits

__all__ = ["Limits", "create_app"]
