"""The services: counts over HTTP and labels by clicks, each with the page that uses it."""

from gbdgc.server.app import create_app
from gbdgc.server.connections import Server
from gbdgc.server.labelling import create_label_app
from gbdgc.server.limits import Limits

__all__ = ["Limits", "Server", "create_app", "create_label_app"]
