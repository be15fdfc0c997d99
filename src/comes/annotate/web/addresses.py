"""Addresses under which others can open a server on this machine."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress

# Documentation addresses: asking which of our addresses would be used sends nothing.
_ELSEWHERE = {socket.AF_INET: "203.0.113.1", socket.AF_INET6: "2001:db8::1"}
_EVERYWHERE = {"0.0.0.0": (socket.AF_INET,), "::": (socket.AF_INET, socket.AF_INET6)}
_EVERYWHERE[""] = _EVERYWHERE["::"]


def address_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the address that a browser opens.

    Where the server listens on all addresses, it is the first that others can open.

    Parameters
    ----------
    host : str
    port : int
    scheme : {"http", "https"}

    Examples
    --------
    >>> address_of("127.0.0.1", 8000), address_of("::1", 8000)
    ('http://127.0.0.1:8000', 'http://[::1]:8000')
    """
    return list_addresses(host, port, scheme)[0]


def list_addresses(host: str, port: int, scheme: str = "http") -> list[str]:
    """Return the addresses under which a server can be opened.

    Where it listens on all addresses, these are the machine's own in its networks, and its name.

    Parameters
    ----------
    host : str
        What the server listens on.
    port : int
    scheme : {"http", "https"}

    Examples
    --------
    >>> list_addresses("192.168.1.5", 8000, scheme="https")
    ['https://192.168.1.5:8000']
    """
    names = [host]
    if host in _EVERYWHERE:
        names = [str(own) for own in _find_own(_EVERYWHERE[host])] + [socket.gethostname()]
    return [
        f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
        for name in dict.fromkeys(names)
    ]


def is_private(address: str) -> bool:
    """Return whether an address such as http://10.0.0.7:8000 is one of a private network.

    Examples
    --------
    >>> is_private("http://10.0.0.7:8000"), is_private("http://[2a00::1]:8000")
    (True, False)
    """
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False  # a name, of which this is not known


def _find_own(
    families: tuple[socket.AddressFamily, ...],
) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Give the addresses of this machine that others can reach: that of the way out comes first."""
    for family in families:
        found = []
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[family], 9))  # fails where there is no way out
            found.append(probe.getsockname()[0])
        with suppress(OSError):  # where the machine does not know its own name
            found += [known[4][0] for known in socket.getaddrinfo(socket.gethostname(), 0, family)]
        for text in dict.fromkeys(found):
            own = ipaddress.ip_address(str(text).partition("%")[0])
            if not (own.is_loopback or own.is_link_local or own.is_unspecified):
                yield own
