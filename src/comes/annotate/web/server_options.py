"""How a project is served: encryption, the proxies in front, and limits."""

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from comes.annotate.web.connections import Limits
from comes.errors import ComesError, first_line


@dataclass(frozen=True)
class ServerOptions:
    """How a project is served.

    Parameters
    ----------
    certificate, key : path, optional
        Files in PEM format for TLS; both or none. The certificate comes with those that vouch for
        it.
    proxies : sequence of str
        Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed.
        Nobody else's are.
    limits : Limits

    Examples
    --------
    >>> ServerOptions(proxies=("127.0.0.1",)).scheme
    'http'
    """

    certificate: str | Path | None = None
    key: str | Path | None = None
    proxies: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            given, missing = ("certificate", "key")[:: 1 if self.key is None else -1]
            raise ComesError(
                f"TLS needs a certificate and its key; got --{given} alone. Add --{missing} FILE."
            )
        if self.certificate is not None and self.key is not None:
            _check_certificate(self.certificate, self.key)
        for proxy in self.proxies:
            _check_proxy(proxy)

    @property
    def scheme(self) -> str:
        """The first word of the server's address."""
        return "http" if self.certificate is None else "https"


def _check_certificate(certificate: str | Path, key: str | Path) -> None:
    """Raise if two files are not a certificate and its key."""
    for file in (certificate, key):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise ComesError(
                f"{file} cannot be read: {error.strerror}. Correct the path."
            ) from None
    try:
        # An encrypted key would ask for its password, and a server may have nobody to ask.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise ComesError(
            f"{certificate} and {key} must be a certificate and its key without a password, in PEM "
            f"format; got {first_line(error)}"
        ) from None


def _check_proxy(proxy: str) -> None:
    try:
        ipaddress.ip_network(proxy)
    except ValueError:
        raise ComesError(
            f"a proxy must be an address or a network, such as 127.0.0.1; got {proxy!r}."
        ) from None
