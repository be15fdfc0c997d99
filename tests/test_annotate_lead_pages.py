"""The lead's pages over HTTP: answers to browse and correct, exports, links, settings, charts."""

import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import insert, update
from starlette.testclient import TestClient

from annotation_site import HERE, join
from comes.annotate import Project, collect_answers, summarise
from comes.annotate import links as links_module
from comes.annotate.grow import set_controls
from comes.annotate.lead import browse_answers, read_histories
from comes.annotate.links import list_links, make_link
from comes.annotate.schema import answers, controls, hints
from comes.annotate.summary import AnswerCache
from comes.annotate.web.lead import EXPORTS, count_activity
from comes.annotate.web.server import make_app
from projects import Desk, Projects, new_answer, say, states, stored

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def answered(projects: Projects) -> Project:
    """Ann and Bob answer t0 to t3 about sky; Ann takes t3 back, Bob skips it."""
    project = projects.make(6, ["sky", "sea"], overlap=1.0)
    sky = [f"t{k}" for k in range(4)]
    for name, words in (("Ann", ["no", "yes", "maybe", "no"]), ("Bob", ["no", "no", "yes"])):
        said: dict[Any, Any] = {(item, "sky"): w for item, w in zip(sky, words, strict=False)}
        say(project, said, name)
    with project.writing() as connection:
        [last] = browse_answers(connection, {"person": "Ann", "item": "t3"})
        connection.execute(update(answers).where(answers.c.id == last["id"]).values(undone_at=9.0))
        connection.execute(update(answers).where(answers.c.answer == "yes").values(hint=0.25))
    return project


@pytest.fixture
def lead(answered: Project) -> Iterator[TestClient]:
    with TestClient(make_app(answered), base_url=HERE) as client:
        join(client, "Lea")
        yield client


def post(client: TestClient, what: str, **body: Any) -> Any:
    return client.post(f"/api/lead/{what}", json=body)


def browse(project: Project, **wanted: Any) -> list[str]:
    """Return what is found, as "Ann t0 no", sorted."""
    with project.reading() as connection:
        rows = browse_answers(connection, wanted, most=999)
    return sorted(f"{row['annotator']} {row['name']} {row['answer']}" for row in rows)


# ---- answers


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"person": "Ann"}, ["Ann t0 no", "Ann t1 yes", "Ann t2 maybe"]),
        ({"item": "T0"}, ["Ann t0 no", "Bob t0 no"]),
        ({"item": "%"}, []),
        ({"class": "sea"}, []),
        ({"state": "no"}, ["Ann t0 no", "Bob t0 no", "Bob t1 no"]),
        ({"state": "maybe"}, ["Ann t2 maybe"]),
        ({"state": "yes", "person": "Bob"}, ["Bob t2 yes"]),
        ({"state": "skip"}, []),
        ({"state": "undone"}, ["Ann t3 no"]),
        ({"state": "hint"}, ["Ann t1 yes", "Bob t2 yes"]),
        ({"state": "decided"}, []),
        ({"state": "control"}, []),
    ],
)
def test_answers_are_found_by_item_class_person_and_state(
    answered: Project, wanted: dict[str, Any], found: list[str]
) -> None:
    assert browse(answered, **wanted) == found


def test_answers_to_control_cards_are_found(projects: Projects) -> None:
    project = projects.make(60, ["sky"])
    names = project.item_names
    set_controls(project, pd.DataFrame({"item": names, "label": "sky", "answer": "yes"}), 0.5)
    ann = Desk(project)
    ann.send(*(new_answer(card["card"], "no") for card in ann.ask()))
    Desk(project, "Bob", "tab-of-bob").answer_all()  # some of what Ann was asked are his controls
    found = browse(project, state="control")
    assert found and len(browse(project)) == 60 + len(found)
    with TestClient(make_app(project), base_url=HERE) as client:
        page = client.get("/lead/answers?state=control").text
    assert "control card: yes is right" in page
    assert page.count("data-verdict") == 0  # what is known needs no correction


def test_the_newest_answers_come_first_and_older_ones_on_further_pages(projects: Projects) -> None:
    project = projects.make(60, ["sky"])
    desk = Desk(project)
    while asked := desk.ask():
        for card in asked:
            desk.answer(card["card"])
    in_order = [row.id for row in stored(project)][::-1]
    with TestClient(make_app(project), base_url=HERE) as client:
        first = client.get("/lead/answers?item=&class=&person=&state=").text
        assert numbers_of(first) == in_order[:50]
        older = re.findall(r'href="(\?[^"]*before=\d+)"', first)[0].replace("&amp;", "&")
        second = client.get(f"/lead/answers{older}").text
        assert numbers_of(second) == in_order[50:] and ">Older<" not in second
        for odd in ("before=x", "before=-1", "before=" + "9" * 40, "class=none&state=none"):
            assert client.get(f"/lead/answers?{odd}").status_code == 200


def numbers_of(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="answer-(\d+)"', page)]


def test_a_correction_counts_and_the_history_keeps_both(
    answered: Project, lead: TestClient
) -> None:
    """Nothing is lost: the answer stays as it was, and what is taken back can be read, too."""
    before = len(stored(answered))
    for verdict in ("no", "yes"):
        assert post(lead, "decide", item=2, class_number=1, verdict=verdict).status_code == 200
    assert states(collect_answers(answered))["t1", "sky"] == "yes"
    assert browse(answered, state="decided") == ["Lea t1 yes"]
    page = lead.get("/lead/answers?item=t1&person=Bob").text
    assert "Corrected: Yes, by <bdi>Lea</bdi>" in page and "All 4 answers about it" in page
    with answered.reading() as connection:
        history = read_histories(connection, [(2, 1)])[2, 1]
    assert [(row["annotator"], row["answer"], row["undone_at"] is None) for row in history] == [
        ("Ann", "yes", True),
        ("Bob", "no", True),
        ("Lea", "no", False),
        ("Lea", "yes", True),
    ]
    assert post(lead, "decide", item=2, class_number=1, verdict=None).status_code == 200
    assert len(stored(answered)) == before + 2
    assert states(collect_answers(answered))["t1", "sky"] == "maybe"  # Ann and Bob disagree again


def test_names_and_texts_on_all_pages_are_text(projects: Projects) -> None:
    project = projects.make([HOSTILE, "t1"], [HOSTILE], overlap=1.0)
    for name, word in ((HOSTILE, "no"), ("Bob", "yes")):
        Desk(project, name, f"tab-{len(name)}").answer_all(lambda _, word=word: word)  # type: ignore[misc]
    make_link(project, "annotator", HOSTILE)
    project.write_setting("question", HOSTILE + "{class}")
    project.write_setting("guidelines", HOSTILE)
    with TestClient(make_app(project), base_url=HERE) as client:
        for tab in ("", "/answers", "/disagreements", "/notes", "/people", "/settings"):
            reply = client.get(f"/lead{tab}", params={"item": HOSTILE} if tab == "/answers" else {})
            assert reply.status_code == 200 and "<script>" not in reply.text, tab
            assert 'style="' not in reply.text  # the policy of the page would drop it


# ---- exports


@pytest.mark.parametrize(
    ("what", "ending"), [(what, end) for what, (_, endings) in EXPORTS.items() for end in endings]
)
def test_every_format_is_exported(
    answered: Project, lead: TestClient, tmp_path: Path, what: str, ending: str
) -> None:
    reply = lead.get(f"/lead/export/{what}.{ending}")
    assert reply.status_code == 200
    assert f'filename="project-{what}.{ending}"' in reply.headers["content-disposition"]
    write, _ = EXPORTS[what]
    write(answered, tmp_path / f"same.{ending}")
    if ending in ("csv", "jsonl"):
        assert reply.content == (tmp_path / f"same.{ending}").read_bytes()
    readers: dict[str, Any] = {"parquet": pd.read_parquet, "xlsx": pd.read_excel}
    if ending in readers:
        table = readers[ending](BytesIO(reply.content))
        assert table.equals(readers[ending](tmp_path / f"same.{ending}")) and len(table) >= 6
    if ending == "npz":
        assert np.load(BytesIO(reply.content), allow_pickle=False).files


def test_without_answers_an_export_is_a_sentence(projects: Projects) -> None:
    with TestClient(make_app(projects.make()), base_url=HERE) as client:
        assert "There are no answers yet" in client.get("/lead").text
        reply = client.get("/lead/export/answers.csv", headers={"accept": "text/html"})
        assert reply.status_code == 409 and "has no answers yet" in reply.text
        for unknown in ("answers.exe", "other.csv", "raw.npz", "../answers.csv"):
            assert client.get(f"/lead/export/{unknown}").status_code == 404


# ---- people and links


def test_links_are_made_listed_and_revoked(answered: Project, lead: TestClient) -> None:
    [link] = post(lead, "link", role="annotator", name="Eve").json()["links"]
    assert link.startswith(f"{HERE}/?token=")
    answered.write_setting("addresses", json.dumps(["http://10.1.2.3:8000", "http://desk:8000/"]))
    made = post(lead, "link", role="lead", name="Kim").json()["links"]
    assert [one.partition("?")[0] for one in made] == ["http://10.1.2.3:8000/", "http://desk:8000/"]
    page = lead.get("/lead/people").text
    assert "<bdi>Eve</bdi>" in page and "token=" not in page
    eve, _ = list_links(answered)
    assert post(lead, "revoke", number=eve.number).json() == {"revoked": 1}
    assert [one.revoked_at is None for one in list_links(answered)] == [False, True]
    assert "revoke the link for Kim" in re.sub("<[^>]*>", "", lead.get("/lead/people").text)
    assert post(lead, "revoke", number=None).json() == {"revoked": 1}
    assert post(lead, "revoke", number="another").status_code == 422
    for wrong in ({"role": "boss", "name": "Eve"}, {"role": "lead", "name": "  "}):
        assert post(lead, "link", **wrong).status_code == 422


def test_a_link_that_was_made_opens_the_page(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "FRESH", 0.0)
    project = projects.make()
    token = make_link(project, "lead", "Lea")
    with TestClient(make_app(project, needs_token=True), base_url="http://team.example") as client:
        client.cookies.set("comes_token", token)
        [link] = post(client, "link", role="annotator", name="Eve").json()["links"]
        client.cookies.clear()
        client.get(link.removeprefix("http://team.example"))
        assert client.get("/join").status_code == 200
        assert client.get("/lead/people").status_code == 403
        assert client.get("/lead/export/answers.csv").status_code == 403
        assert post(client, "link", role="lead", name="Eve").status_code == 403


# ---- settings


def ask(client: TestClient, **changed: Any) -> Any:
    body = {"question": "", "asks_yes": True, "language": "en", "guidelines": ""}
    return post(client, "asking", **{**body, **changed})


def test_the_question_the_answers_and_the_language_are_changed(
    answered: Project, lead: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "sky.md").write_text("All that is blue.")
    changed = {"question": "Do you see {a} {class}?", "asks_yes": False, "language": "de"}
    assert ask(lead, **changed, guidelines=str(tmp_path)).status_code == 200
    assert answered.question == "Do you see a sky?"
    page = lead.get("/lead/settings").text
    assert "Do you see {a} {class}?" in page and str(tmp_path) in page
    assert ask(lead).status_code == 200
    assert answered.question == "Is this text about sky?"
    assert str(tmp_path) not in lead.get("/lead/settings").text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"question": "What is this?"}, "must hold {class}"),
        ({"question": "{what} {class}?"}, "may hold {class} and {a}"),
        ({"question": "{class}" + "?" * 400}, "at most 300 characters"),
        ({"guidelines": "/nowhere/at/all"}, "must be in a folder"),
        ({"guidelines": "~nobody-here/guide"}, "cannot be found"),
        ({"guidelines": "a\0b"}, "NUL"),
        ({"language": "fr"}, "language"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    answered: Project, lead: TestClient, changed: dict[str, Any], message: str
) -> None:
    reply = ask(lead, **changed)
    assert reply.status_code == 422 and message in reply.json()["error"]
    assert answered.question == "Is this text about sky?"


def put_table(client: TestClient, purpose: str, text: str, name: str = "t.csv", **more: Any) -> Any:
    headers = {"content-type": "application/octet-stream"}
    path = f"/api/lead/table/{purpose}/{name}"
    return client.put(path, content=text.encode(), headers=headers, params=more)


def test_known_answers_and_decisions_come_from_a_table(answered: Project, lead: TestClient) -> None:
    table = "item,label,answer\nt0,sky,yes\nt1,sky,no\n"
    assert put_table(lead, "controls", table, share=0.2).json()["done"] == "Stored 2 known answers."
    with answered.reading() as connection:
        assert len(connection.execute(controls.select()).all()) == 2
    assert answered.read_setting("control_share") == "0.2"
    assert "2 known answers are stored" in lead.get("/lead/settings").text
    pasted = table.replace(",", "\t")
    assert put_table(lead, "decisions", pasted, "p.tsv").json()["done"] == "Stored 2 decisions."
    assert browse(answered, state="decided") == ["Lea t0 yes", "Lea t1 no"]
    for purpose, text, name, more, status in (
        ("controls", "item,label\nt0,sky\n", "t.csv", {}, 422),
        ("controls", table, "t.csv", {"share": "much"}, 422),
        ("controls", table, "t.csv", {"share": "0.9"}, 422),
        ("decisions", table.replace("t0", "t99"), "t.csv", {}, 422),
        ("decisions", table, "t.exe", {}, 422),
        ("decisions", table, "..%2Ft.csv", {}, 404),
        ("decisions", table, ".t.csv", {}, 422),
        ("others", table, "t.csv", {}, 404),
    ):
        assert put_table(lead, purpose, text, name, **more).status_code == status, (purpose, name)
    assert browse(answered, state="decided") == ["Lea t0 yes", "Lea t1 no"]


def test_hints_are_shown_or_not(answered: Project, lead: TestClient) -> None:
    assert "No hints of a model are stored" in lead.get("/lead/settings").text
    with answered.writing() as connection:
        row = {"item_id": 1, "class_id": 1, "probability": 0.5}
        connection.execute(insert(hints).values(row))
    assert post(lead, "hints", is_on=True).status_code == 200
    assert answered.read_setting("shows_hints") == "1"
    page = lead.get("/lead/settings").text
    assert "1 hints of a model" in page and "Hide hints" in page
    assert post(lead, "hints", is_on=False).status_code == 200
    assert answered.read_setting("shows_hints") == "0"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("PUT", "/api/lead/table/controls/t.csv", {"content-type": "text/csv"}, 415),
        ("PUT", "/api/lead/table/controls/t.csv", {"content-type": "application/json"}, 415),
        ("PUT", "/api/lead/table/controls/t.csv", {"origin": "http://evil.example"}, 403),
        ("PUT", "/api/lead/table/controls/t.csv", {"sec-fetch-site": "cross-site"}, 403),
        ("PUT", "/api/lead/table/controls/t.csv", {"content-length": str(200 * 2**20)}, 413),
        ("POST", "/api/lead/decide", {}, 415),  # octets are for files alone
        ("PUT", "/api/answers", {}, 415),
    ],
)
def test_files_are_taken_from_our_own_page_alone(
    lead: TestClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    headers = {"content-type": "application/octet-stream", **headers}
    assert lead.request(method, path, content=b"x", headers=headers).status_code == status


# ---- charts


def test_charts_count_what_people_said_over_time(projects: Projects) -> None:
    project = projects.make(60, ["sky"])
    assert count_activity(AnswerCache(project).read()) == {"bars": [], "people": {}}
    start = 1_700_000_000.0 - 1_700_000_000 % 86_400
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    said: list[tuple[Desk, Any]] = [(ann, "no"), (ann, "yes"), (bob, "maybe"), (bob, "skip")]
    held = {desk.annotator: [card["card"] for card in desk.ask()] for desk in (ann, bob)}
    for k, (desk, word) in enumerate(said):
        desk.send(new_answer(held[desk.annotator].pop(), word), now=start + 7200.0 * k + 60)
    found = count_activity(AnswerCache(project).read())
    assert found["each"] == "ten minutes" and len(found["bars"]) == 25
    assert [sum(column) for column in zip(*found["bars"], strict=True)] == [1, 1, 1]
    assert [sum(bar) for bar in found["bars"]] == [int(k % 12 == 0) for k in range(25)]
    assert found["people"]["Ann"]["words"] == [1, 0, 1]
    assert found["people"]["Bob"]["words"] == [0, 1, 0]


def test_the_overview_draws_charts_with_words_for_those_who_do_not_see_them(
    answered: Project, lead: TestClient
) -> None:
    page = lead.get("/lead").text
    assert page.count('<svg class="timeline"') == 3  # all, Ann and Bob
    assert 'role="img" aria-label="Ann: 1 no, 1 cannot tell, 1 yes"' in page
    assert "3 no" not in page.partition("<tbody>")[2]
    assert summarise(answered).n_answers == 6 and "6 in all" in page


def test_counts_stand_beside_counts_and_no_share_is_minus_nothing(
    answered: Project, lead: TestClient
) -> None:
    page = lead.get("/lead").text
    row = page.partition("<tbody>")[2].partition("</tr>")[0]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
    assert [cell.isdecimal() for cell in cells[:4]] == [True] * 4 and "%" in cells[5]
    assert "-0.00" not in page
    assert len(cells) + 1 <= 8
