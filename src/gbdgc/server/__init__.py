"""The services, each with the page that uses it: counts over HTTP here, labels by clicks in `labelling`.

Labelling needs torch to judge labels, and counting must not.
"""

from gbdgc.server.app import create_app
from gbdgc.server.connections import Server
from gbdgc.server.limits import Limits

__all__ = ["Limits", "Server", "create_app"]
