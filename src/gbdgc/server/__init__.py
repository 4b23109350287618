"""The service: counts over HTTP, and the page that uses it."""

from gbdgc.server.app import create_app
from gbdgc.server.connections import Server
from gbdgc.server.limits import Limits

__all__ = ["Limits", "Server", "create_app"]
