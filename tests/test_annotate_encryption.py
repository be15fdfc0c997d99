"""TLS by two files, and proxies that are believed only when they are named."""

import http.client
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from annotation_site import port_of, text_project
from comes.annotate import Project, serve, serve_in_thread
from comes.annotate.links import make_link
from comes.cli import app
from comes.errors import ComesError


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = text_project(tmp_path)
    yield project
    project.engine.dispose()


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of our own for 127.0.0.1, and its key."""
    home = tmp_path_factory.mktemp("certificate")
    certificate, key = home / "certificate.pem", home / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def ask(
    port: int, path: str, certificate: Path | None = None, **headers: str
) -> http.client.HTTPResponse:
    """Send a request; with a certificate, over TLS to whoever has it."""
    if certificate is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    else:
        trusting = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=120, context=trusting)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=sent)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply


@pytest.mark.needs("openssl")
def test_with_a_certificate_the_page_is_encrypted_and_cookies_secure(
    project: Project, certified: tuple[Path, Path]
) -> None:
    token = make_link(project, "annotator", "Ann")
    certificate, key = certified
    with serve_in_thread(project, needs_token=True, certificate=certificate, key=key) as address:
        assert address.startswith("https://127.0.0.1:")
        port = port_of(address)
        entered = ask(port, f"/?token={token}", certified[0])
        assert entered.status == 200
        cookie = (entered.getheader("set-cookie") or "").lower()
        assert "; secure" in cookie and "httponly" in cookie and "samesite=strict" in cookie
        assert ask(port, "/join", certified[0]).status == 401
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(port, "/join")  # not encrypted
        with pytest.raises(ssl.SSLError):  # a certificate that nobody vouches for
            context = ssl.create_default_context()
            http.client.HTTPSConnection("127.0.0.1", port, context=context).request("GET", "/")


def test_without_a_certificate_cookies_are_not_secure(project: Project) -> None:
    token = make_link(project, "annotator", "Ann")
    with serve_in_thread(project, needs_token=True) as address:
        cookie = ask(port_of(address), f"/?token={token}").getheader("set-cookie") or ""
    assert "secure" not in cookie.lower()


@pytest.mark.needs("openssl")
def test_wrong_files_are_told_at_once(
    project: Project, certified: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = certified
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"certificate": certificate}, "got --certificate alone. Add --key FILE"),
        ({"key": key}, "got --key alone. Add --certificate FILE"),
        ({"certificate": tmp_path / "no.pem", "key": key}, "no.pem is no file. Correct the path"),
        ({"certificate": key, "key": certificate}, "must be a certificate and its key"),
        ({"proxies": ["everybody"]}, "a proxy must be an address or a network"),
    ]
    for options, message in wrong:
        with pytest.raises(ComesError, match=message):
            serve(project, port=0, **options)
    asked = ["annotate", "serve", str(project.folder), "--certificate", str(certificate)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code != 0 and "--key" in str(result.exception)


# Proxies


def test_forwarded_headers_count_from_named_proxies_alone(project: Project) -> None:
    token = make_link(project, "annotator", "Ann")
    for proxies, is_believed in (((), False), (("10.0.0.0/8", "127.0.0.1"), True)):
        with serve_in_thread(project, needs_token=True, proxies=proxies) as address:
            port, opened = port_of(address), f"/?token={token}"
            reply = ask(port, opened, Host="photos.example", X_Forwarded_Proto="https")
            assert reply.status == 200
            cookie = (reply.getheader("set-cookie") or "").lower()
            assert ("; secure" in cookie) is is_believed, proxies
