"""Links and roles: who may open what, while a server runs, and addresses that others can open."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from annotation_site import answer, join, lease
from comes.annotate import links as links_module
from comes.annotate.links import (
    ROLES,
    KnownLinks,
    digest_token,
    list_links,
    make_link,
    revoke_links,
)
from comes.annotate.schema import links
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
    tokens = {role: make_link(project, role, role) for role in ROLES}
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


def test_a_link_of_a_script_of_version_1_0_0_opens_nothing(projects: Projects) -> None:
    project = projects.make()
    row = {"digest": digest_token("old"), "role": "script", "label": "R", "made_at": 1.0}
    with project.writing() as connection:
        connection.execute(links.insert().values(row))
    with browser_of(make_app(project, needs_token=True), "old") as client:
        assert client.get("/").status_code == client.get("/lead").status_code == 401
    assert [link.role for link in list_links(project)] == ["script"]


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


def test_a_link_to_revoke_must_be_there(projects: Projects) -> None:
    project = projects.make()
    make_link(project, "lead", "Ada")
    with pytest.raises(ComesError, match=r"one that is valid: \w{8} \(Ada\); got 'Bob'"):
        revoke_links(project, "Bob")
    assert [link.revoked_at for link in list_links(project)] == [None]


def test_a_command_lists_and_revokes_links(projects: Projects) -> None:
    """No server need run for that."""
    project = projects.make()
    folder = str(project.folder)
    assert run("people", folder) == "Nobody has answered in project yet.\n"
    for name in ("Ada", "Bob", "Cal"):
        make_link(project, "annotator", name)
    number = list_links(project)[1].number
    for wanted, revoked in (("Ada", "Ada"), (number, "Ada Bob"), ("all", "Ada Bob Cal")):
        listed = json.loads(run("people", folder, "--revoke", wanted, "--json"))["links"]
        assert [row["for"] for row in listed if row["revoked"] != "–"] == revoked.split()
    assert "Ada" in run("people", folder)


# Addresses


def test_addresses_that_others_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the way out, then the name."""

    class Probe(socket.socket):
        def connect(self, _: Any) -> None:
            pass

        def getsockname(self) -> Any:
            return ("192.168.1.20", 0)

    monkeypatch.setattr(socket, "socket", Probe)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    for host in ("0.0.0.0", "::"):
        assert list_addresses(host, 80) == ["http://192.168.1.20:80", "http://desk:80"]
    assert list_addresses("2a00::20", 80) == ["http://[2a00::20]:80"]
    assert list_addresses("127.0.0.1", 80) == ["http://127.0.0.1:80"]


def test_a_machine_without_a_network_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError

    monkeypatch.setattr(socket, "socket", fail)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert list_addresses("0.0.0.0", 8000) == ["http://desk:8000"]
