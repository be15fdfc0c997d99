"""Connections: where a server listens, and who gives way when all places are taken."""

import resource
from typing import Any

import pytest

from comes.annotate import Limits, open_port
from comes.annotate.web.connections import Places, Visit, allow_many_files
from comes.errors import ComesError
from databases import reserve_port


class Cable:
    """Stands in for a socket, and says whether it was cut."""

    def __init__(self) -> None:
        self.is_cut = False

    def shutdown(self, _: int) -> None:
        self.is_cut = True


def enter(places: Places, client: str, port: int) -> Any:
    cable: Any = Cable()
    places.enter(cable, (client, port))
    return cable


def visit_of(places: Places, cable: Any) -> Visit:
    return next(visit for visit in places.visits.values() if visit.connection is cable)


def test_the_busiest_client_gives_way() -> None:
    places = Places(Limits(places=20))
    guest = enter(places, "10.0.0.1", 1)
    other = enter(places, "10.0.0.2", 1)
    crowd = [enter(places, "10.0.0.9", port) for port in range(30)]
    assert not guest.is_cut and not other.is_cut
    assert [cable.is_cut for cable in crowd] == [True] * 20 + [False] * 10  # half of the places


def test_who_was_let_in_gives_way_last_and_who_is_served_never() -> None:
    places = Places(Limits(places=16))
    cables = [enter(places, "10.0.0.1", port) for port in range(8)]
    for cable in cables[:4]:
        visit_of(places, cable).was_let_in = True
    visit_of(places, cables[4]).waits = False
    for port in range(8, 11):
        enter(places, "10.0.0.1", port)
    assert [cable.is_cut for cable in cables] == [False] * 5 + [True] * 3
    for visit in places.visits.values():
        visit.waits = False
    with pytest.raises(ConnectionAbortedError):
        enter(places, "10.0.0.1", 99)


def test_a_place_is_free_when_its_connection_closes() -> None:
    places = Places(Limits(places=16))
    cable = enter(places, "10.0.0.1", 1)
    places.leave(cable)
    assert places.visits == {}


def test_a_server_may_open_as_many_files_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert allow_many_files() == min(hard, 10_000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_listens_on_the_port_that_it_is_given_and_on_no_other() -> None:
    with reserve_port() as reserved:
        port: int = reserved.getsockname()[1]
        with open_port("127.0.0.1", port) as listener:
            assert listener.getsockname() == ("127.0.0.1", port)
            with pytest.raises(
                ComesError, match=rf"port {port} of 127.0.0.1 cannot be opened: .*us"
            ):
                open_port("127.0.0.1", port)
