"""Connections that cannot starve others: a place for each, a deadline for every wait.

The server has a number of places for connections. A client that sends nothing, or one byte a
second, keeps its place until a deadline. When all places are taken, or half of them by one client,
the connection gives way on which the server has waited longest for its client; connections that
were never let in go first. So somebody who opens connections without end competes with himself.
"""

import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from comes.annotate.web.app import LET_IN

RESERVED = 96  # files that the server needs beside connections: databases, pictures, logs
MOST_FILES = 10_000  # that a server asks for
IN_A_ROW = 4  # connections that are accepted before requests of others are looked at
FEWEST = 16  # places, however few files may be open


@dataclass(frozen=True)
class Limits:
    """What one server gives its clients.

    Attributes
    ----------
    places : int
        Open connections; fewer where the process may open few files.
    first : float
        Seconds to the end of a request's headers, encryption included.
    body : float
        Seconds for the body of a request.
    total : float
        Seconds for a request and its response.
    kept : float
        Seconds that a connection stays open between requests.

    Examples
    --------
    >>> Limits(body=5.0).body
    5.0
    """

    places: int = 1000
    first: float = 10.0
    body: float = 20.0
    total: float = 300.0
    kept: float = 15.0


@dataclass
class Visit:
    """A connection: who, since when, until when, and whether the server waits for the client."""

    connection: socket.socket
    client: str
    since: float
    until: float
    waits: bool = True
    was_let_in: bool = False
    transport: Any = None  # as soon as asyncio has made one; with TLS, after its handshake

    def end(self) -> None:
        """Cut the connection; its file is closed when the event loop comes to it."""
        if self.transport is not None:
            self.transport.abort()
            return
        with suppress(OSError):  # it may be gone already
            self.connection.shutdown(socket.SHUT_RDWR)


@dataclass
class Places:
    """The connections of a server.

    Parameters
    ----------
    limits : Limits
    """

    limits: Limits
    visits: dict[Any, Visit] = field(default_factory=dict)  # by the address of the client's end

    def __post_init__(self) -> None:
        self.count = max(FEWEST, min(self.limits.places, allow_many_files() - RESERVED))

    def enter(self, connection: socket.socket, address: Any) -> None:
        """Give a new connection a place, if need be that of another."""
        client, now = str(address[0]), time.monotonic()
        own = [visit for visit in self.visits.values() if visit.client == client]
        if len(own) >= max(1, self.count // 2):
            _end_longest_wait(own)
        elif len(self.visits) >= self.count:
            _end_longest_wait(self._visits_of_busiest_client())
        self.visits[address] = Visit(connection, client, now, now + self.limits.first)

    def is_closing_many(self) -> bool:
        """Return whether many connections are cut, but not closed yet."""
        return len(self.visits) >= self.count + RESERVED // 3

    def leave(self, connection: socket.socket) -> None:
        """Free the place of a connection."""
        for address, visit in self.visits.items():
            if visit.connection is connection:
                del self.visits[address]
                return

    def mark(self, address: Any, seconds: float, *, waits: bool) -> None:
        """Note that a connection has come to its next step, which may take some seconds."""
        visit = self.visits.get(address)
        if visit is not None:
            visit.since = time.monotonic()
            visit.until, visit.waits = visit.since + seconds, waits

    async def end_overdue(self) -> None:
        """Cut the connections whose deadline has passed."""
        now = time.monotonic()
        for visit in list(self.visits.values()):
            if visit.until < now:
                visit.end()

    def _visits_of_busiest_client(self) -> list[Visit]:
        of_client: dict[str, list[Visit]] = {}
        for visit in self.visits.values():
            of_client.setdefault(visit.client, []).append(visit)
        return max(of_client.values(), key=len)


def _end_longest_wait(visits: list[Visit]) -> None:
    """Cut the connection that has kept the server waiting longest; strangers before guests."""
    waiting = [visit for visit in visits if visit.waits]
    if not waiting:
        raise ConnectionAbortedError("all places are taken by requests that are being served")
    longest = min(waiting, key=lambda visit: (visit.was_let_in, visit.since))
    longest.waits = False  # it is not chosen again while it ends
    longest.end()


class Door(socket.socket):
    """A listening socket that gives every connection a place, or refuses it."""

    places: Places | None = None
    _in_a_row = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection; asyncio knows these errors, and comes back."""
        self._in_a_row += 1
        is_closing = self.places is not None and self.places.is_closing_many()
        if is_closing or self._in_a_row > IN_A_ROW:
            self._in_a_row = 0
            raise BlockingIOError("requests, and connections that were cut, are dealt with first")
        accepted, address = super().accept()
        connection = _Guest(accepted.family, accepted.type, accepted.proto, accepted.detach())
        if self.places is not None:
            try:
                self.places.enter(connection, address)
            except ConnectionAbortedError:
                connection.close()
                raise
            connection.places = self.places
        return connection, address


class _Guest(socket.socket):
    """A connection that gives its place back when it is closed."""

    places: Places | None = None

    def close(self) -> None:
        if self.places is not None:
            self.places.leave(self)
        super().close()


class TimedProtocol(H11Protocol):
    """HTTP/1.1 that tells the `Places` what each connection waits for.

    Parameters
    ----------
    places : Places
    options
        Of uvicorn.
    """

    def __init__(self, *, places: Places, **options: Any) -> None:
        super().__init__(**options)
        self._places, self._step = places, "first"

    def connection_made(self, transport: Any) -> None:
        """Take note of the address under which the connection has its place."""
        self._address = transport.get_extra_info("peername")
        if visit := self._places.visits.get(self._address):
            visit.transport = transport
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Read, and note whether headers, body or nothing more is missing."""
        super().data_received(data)
        self._note_step()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if self.scope.get(LET_IN) and (visit := self._places.visits.get(self._address)):
            visit.was_let_in = True
        self._step = "kept"
        self._places.mark(self._address, self._places.limits.kept, waits=True)
        super().on_response_complete()
        if not self.cycle.response_complete:  # the next request had come already
            self._note_step()

    def _note_step(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            step = "first"
        else:
            step = "body" if self.conn.their_state is h11.SEND_BODY else "total"
        if step != self._step:  # a deadline does not move while a step lasts
            self._step = step
            seconds = getattr(self._places.limits, step)
            self._places.mark(self._address, seconds, waits=step != "total")


def allow_many_files() -> int:
    """Allow this process as many open files as it may have; return how many."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are not files
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS may allow fewer than it says
        return soft
    return wanted
