"""Links and roles: who may open what, while a server runs, and addresses that others can open."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from typer.testing import CliRunner

from annotation_site import answer, join, lease
from comes.annotate import Project

from comes.annotate import links as links_module
from comes.annotate.links import KnownLinks, digest_token, list_links, make_link, revoke_links
from comes.annotate.web.app import ROLE, Guard
from comes.annotate.web.server import find_links, list_addresses, make_app
from comes.cli import app
from comes.errors import ComesError
from projects import Projects


@contextmanager
def browser_of(served: Any, token: str = "") -> Iterator[TestClient]:
    """Give somebody who opens the page with a token."""
    with TestClient(served, base_url="http://team.example") as client:
        client.cookies.set("comes_token", token)
        yield client


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["annotate", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_roles_open_what_they_may(projects: Projects) -> None:
    project = projects.make()
    tokens = {role: make_link(project, role, role) for role in ("annotator", "lead", "script")}
    served = make_app(project, needs_token=True)
    for role, token in tokens.items():
        with browser_of(served, token) as client:
            join(client)
            assert client.get("/").status_code == 200
            assert client.get("/lead").status_code == (200 if role == "lead" else 403)
            refused = client.post("/api/lead/freeze", json={})
            assert (refused.status_code == 403) == (role != "lead")
            assert ('href="/lead"' in client.get("/").text) == (role == "lead")
    with browser_of(served, tokens["annotator"]) as client:
        page = client.get("/lead", headers={"accept": "text/html"})
        assert page.status_code == 403 and "This page is for the lead" in page.text
        join(client)
        cards = lease(client)
        assert answer(client, cards[0]["card"], "no", "key-of-ann").status_code == 200


def test_only_scripts_and_leads_use_the_api_of_scripts(projects: Projects) -> None:
    project = projects.make()

    async def tell_role(request: Request) -> Response:
        return JSONResponse({"role": request.scope[ROLE]})

    paths = ("/api/v1/tell", "/api/v10", "/tell")
    inner = Starlette(routes=[Route(path, tell_role, methods=["GET", "POST"]) for path in paths])
    served = Guard(inner, KnownLinks(project))
    for role, status in (("script", 200), ("lead", 200), ("annotator", 403)):
        bearer = {"Authorization": f"Bearer {make_link(project, role, role)}"}
        links_module.FRESH, kept = 0.0, links_module.FRESH
        try:
            with TestClient(served, base_url="http://team.example") as client:
                reply = client.get("/api/v1/tell", headers=bearer)
                assert reply.status_code == status
                assert status == 403 or reply.json() == {"role": role}
                # Elsewhere only the cookie counts, which pages of other sites do not send.
                assert client.get("/tell", headers=bearer).status_code == 401
                assert client.get("/api/v10", headers=bearer).status_code == 401
                for wrong in ("Bearer wrong", "Bearer ", "Basic abc", ""):
                    reply = client.get("/api/v1/tell", headers={"Authorization": wrong})
                    assert reply.status_code == 401
        finally:
            links_module.FRESH = kept


def test_a_running_server_notices_new_and_revoked_links(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "FRESH", 0.0)
    project = projects.make()
    first = make_link(project, "annotator", "Ann")
    served = make_app(project, needs_token=True)
    with browser_of(served, first) as ann:
        assert ann.get("/join").status_code == 200
        second = make_link(project, "annotator", "Bob")
        with browser_of(served, second) as bob:
            assert bob.get("/join").status_code == 200
            assert ann.get("/join").status_code == 200  # nobody is locked out
            [revoked] = revoke_links(project, "Bob")
            assert revoked.digest == digest_token(second)
            assert bob.get("/join").status_code == 401
            assert ann.get("/join").status_code == 200


def test_links_are_read_once_in_a_while(projects: Projects) -> None:
    known = KnownLinks(projects.make())
    assert not known.is_fresh
    known.read()
    assert known.is_fresh


def test_the_token_of_an_earlier_version_is_a_leads(projects: Projects) -> None:
    project = projects.make()
    project.write_setting("token_digest", digest_token("an-old-token"))
    assert list(find_links(project, "0.0.0.0") or {}) == ["annotator"]  # the lead has one
    with browser_of(make_app(project, needs_token=True), "an-old-token") as client:
        assert client.get("/lead").status_code == 200
    assert [link.role for link in list_links(project)] == ["lead", "annotator"]
    revoke_links(project, digest_token("an-old-token")[:8])
    assert [link.role for link in list_links(project)] == ["annotator"]
    with browser_of(make_app(project, needs_token=True), "an-old-token") as client:
        assert client.get("/lead").status_code == 401


def test_a_link_of_the_lead_opens_the_page_of_the_lead(projects: Projects) -> None:
    project = projects.make()
    token = make_link(project, "lead", "Ada")
    with browser_of(make_app(project, needs_token=True)) as client:
        assert 'url=/lead"' in client.get("/", params={"token": token}).text


def test_wrong_roles_and_names_are_refused(projects: Projects) -> None:
    project = projects.make()
    with pytest.raises(ComesError, match="one of annotator, lead, script; got 'boss'"):
        make_link(project, "boss", "Ada")
    with pytest.raises(ComesError, match="whom it is for"):
        make_link(project, "lead", "  ")
    make_link(project, "lead", "Ada")
    with pytest.raises(ComesError, match=r"one that is valid: \w{8} \(Ada\); got 'Bob'"):
        revoke_links(project, "Bob")
    assert [link.revoked_at for link in list_links(project)] == [None]


def test_the_commands_make_list_and_revoke_links(projects: Projects) -> None:
    project: Project = projects.make()
    folder = str(project.folder)
    assert "has no links yet" in run("links", folder)
    project.write_setting("addresses", json.dumps(["http://10.1.2.3:8000"]))
    made = run("link", folder, "--for", "Ada")
    token = re.findall(r"http://10\.1\.2\.3:8000/\?token=([\w-]{43})", made)[0]
    assert digest_token(token) == list_links(project)[0].digest
    elsewhere = json.loads(
        run("link", folder, "--role", "script", "--for", "R", "--address", "https://a.b/", "--json")
    )
    assert elsewhere["address"] == "https://a.b/api/v1" and "Bearer " in elsewhere["header"]
    rows = json.loads(run("links", folder, "--revoke", "Ada", "--json"))
    assert [(row["for"], row["role"], row["revoked"] != "–") for row in rows] == [
        ("Ada", "annotator", True),
        ("R", "script", False),
    ]
    assert "Ada" in run("links", folder)


# Addresses


def test_addresses_that_others_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPv4 and IPv6 of the networks, then the name; nothing that only this machine can open."""

    class Probe(socket.socket):
        def connect(self, _: Any) -> None:
            pass

        def getsockname(self) -> Any:
            return ("192.168.1.20", 0) if self.family == socket.AF_INET else ("2a00::20", 0, 0, 0)

    def look_up(name: str, port: int, family: int) -> list[Any]:
        v4 = ["127.0.1.1", "192.168.1.20", "10.8.0.3", "169.254.7.7"]
        return [
            (family, 0, 0, "", (text, 0))
            for text in (v4 if family == socket.AF_INET else ["fe80::1%eth0", "::1"])
        ]

    monkeypatch.setattr(socket, "socket", Probe)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    v4 = ["http://192.168.1.20:8000", "http://10.8.0.3:8000"]
    assert list_addresses("0.0.0.0", 8000) == [*v4, "http://desk:8000"]
    assert list_addresses("::", 8000) == [*v4, "http://[2a00::20]:8000", "http://desk:8000"]
    assert list_addresses("127.0.0.1", 80) == ["http://127.0.0.1:80"]


def test_a_machine_without_a_network_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError

    monkeypatch.setattr(socket, "socket", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert list_addresses("0.0.0.0", 8000) == ["http://desk:8000"]
