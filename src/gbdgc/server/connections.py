"""Connections: how many, from whom, and how long one may stay without asking anything.

A request counts once its head is complete. Until then, and between requests, a connection costs nobody anything but its
place, so a newcomer takes the place of the one that has been silent longest. Whoever asks at once, as monitors and
honest clients do, is therefore answered however many others are open.
"""

import asyncio
import logging
import time
from collections import Counter
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from gbdgc.server.limits import Limits

_ACCEPTED_AT_ONCE = 32
_SPARE_FILES = 256
"""Descriptors for the model, the log, and connections that are accepted before those they replace are closed."""
_LEAST_CONNECTIONS = 16
_SECONDS_BETWEEN_REPORTS = 60.0

log = logging.getLogger("uvicorn.error")
_log_of_clients = log.getChild("clients")


def client_key(host: str | None) -> str:
    """Return what stands for one client: its IPv4 address, or the /64 that an IPv6 host can choose addresses from."""
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return host or ""
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))
    return str(address)


def affordable_connections(wanted: int) -> int:
    """Return how many connections the limit on open files allows, after raising it as far as this process may."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + _SPARE_FILES
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(_LEAST_CONNECTIONS, min(wanted, soft - _SPARE_FILES))


class Server(uvicorn.Server):
    """Uvicorn with bounded connections; further settings are arguments of `uvicorn.Config`."""

    def __init__(self, app: Any, limits: Limits, **settings: Any) -> None:
        # Uvicorn's backlog is also how many connections are accepted before the first of them is looked at.
        protocol: Any = partial(_BoundedProtocol, _Account(limits))
        super().__init__(uvicorn.Config(app, http=protocol, backlog=_ACCEPTED_AT_ONCE, **settings))
        # What a client does wrong is answered, and must not fill the disk. Uvicorn's configuration resets the level.
        _log_of_clients.setLevel(logging.ERROR)
        self._reported = -_SECONDS_BETWEEN_REPORTS

    async def startup(self, sockets: Any = None) -> None:
        """Begin to accept, with room for a crowd of callers in the kernel's own queue."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(1024)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what went wrong in the loop; that no connection could be accepted, once a minute."""
        if "socket.accept()" not in context.get("message", ""):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._reported >= _SECONDS_BETWEEN_REPORTS:
            self._reported = time.monotonic()
            log.warning("cannot accept connections for now: %s", context.get("exception"))


class _Account:
    """All open connections, in the order in which they came or last had an answer."""

    def __init__(self, limits: Limits) -> None:
        self.head_seconds = limits.head_seconds
        self.most = affordable_connections(limits.connections)
        self.most_per_client = limits.share_of(self.most)
        self.connections: dict[_BoundedProtocol, None] = {}
        self.per_client: Counter[str] = Counter()

    def admit(self, connection: "_BoundedProtocol") -> bool:
        """Enter a connection, if need be in the place of an idle one."""
        client = connection.key
        if self.per_client[client] >= self.most_per_client and not self._make_room(client):
            return False
        if len(self.connections) >= self.most and not self._make_room(None):
            return False
        self.connections[connection] = None
        self.per_client[client] += 1
        return True

    def remove(self, connection: "_BoundedProtocol") -> None:
        """Forget a connection; further calls do nothing."""
        if connection in self.connections:
            del self.connections[connection]
            self.per_client[connection.key] -= 1
            if not self.per_client[connection.key]:
                del self.per_client[connection.key]

    def _make_room(self, client: str | None) -> bool:
        """Drop the connection, of this client or of any, that has been idle longest."""
        for each in self.connections:
            if client in (None, each.key) and not each.at_work():
                each.drop()
                return True
        return False


class _BoundedProtocol(H11Protocol):
    """Uvicorn's protocol with an account of all connections, and a deadline for whoever holds one idly."""

    def __init__(self, account: _Account, **settings: Any) -> None:
        super().__init__(**settings)
        self.logger = _log_of_clients
        self.key = ""
        self._account = account
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.key = client_key(self.client[0] if self.client else None)
        if self._account.admit(self):
            self._expect_something()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._account.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and self.at_work():
            self._disarm()

    def on_response_complete(self) -> None:
        connections = self._account.connections
        if self in connections:
            connections[self] = connections.pop(self)
            self._expect_something()
        super().on_response_complete()  # may begin with the next request at once

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_something()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.at_work():
            self._disarm()

    def at_work(self) -> bool:
        """Whether a request is being answered and the client is reading the answer."""
        return self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused

    def drop(self) -> None:
        """Cut the connection off, whatever is still to be written."""
        self._disarm()
        self._account.remove(self)
        self.transport.abort()

    def _expect_something(self) -> None:
        """Give the client so long to send a whole head, or to read what it asked for."""
        self._disarm()
        self._deadline = self.loop.call_later(self._account.head_seconds, self.drop)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
