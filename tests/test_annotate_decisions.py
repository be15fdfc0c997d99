"""What the lead decides: pairs, notes, people left out, the end; on the page and by command."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import insert, update
from starlette.testclient import TestClient

from annotation_site import HERE, join
from comes.annotate import (
    Project,
    collect_answers,
    export_answers,
    import_answers,
    summarise,
)
from comes.annotate.cards import SentAnswer, find_history
from comes.annotate.exchange import read_answers, read_raw_answers
from comes.annotate.grow import add_random_cards
from comes.annotate.lead import (
    decide_pairs,
    freeze,
    leave_out,
    show_disagreements,
)
from comes.annotate.schema import answers, notes
from comes.annotate.summary import AnswerCache, find_disagreements
from comes.annotate.web.server import make_app
from comes.errors import ComesError
from projects import Desk, Projects, all_cards, refusal, say, states, stored

TWICE: dict[str, Any] = {"overlap": 1.0}


def torn_project(projects: Projects) -> Project:
    """Return a project where Ann and Bob answer the same; they disagree on t0, t1 and t2."""
    project = projects.make(6, ["sky"], **TWICE)
    ann: list[Any] = ["no", "no", "yes", "no", "yes", "maybe"]
    bob: list[Any] = ["yes", "maybe", "no", "no", "yes", "yes"]
    for name, words in (("Ann", ann), ("Bob", bob)):
        say(project, {(f"t{k}", "sky"): word for k, word in enumerate(words)}, name)
    return project


def table_of(project: Project, rows: list[tuple[str, str, str]]) -> Path:
    """Write a file of items, answers and people, about the sky."""
    file = project.folder / "more.csv"
    lines = [f"{item},sky,{answer},{person}\n" for item, answer, person in rows]
    file.write_text("item,label,answer,person\n" + "".join(lines))
    return file


def decide(project: Project, item: str, answer: str) -> int:
    table = pd.DataFrame({"item": [item], "label": ["sky"], "answer": [answer]})
    return decide_pairs(project, table, "Lea")


@pytest.fixture
def disagreeing(projects: Projects) -> Project:
    return torn_project(projects)


@pytest.fixture
def lead(disagreeing: Project) -> Iterator[TestClient]:
    """The browser of a lead, at a project where people disagree."""
    with TestClient(make_app(disagreeing), base_url=HERE) as client:
        join(client, "Lea")
        yield client


def test_disagreements_are_no_against_anything_else(projects: Projects) -> None:
    project = torn_project(projects)
    pairs = find_disagreements(AnswerCache(project).read())
    with project.reading() as connection:
        rows = show_disagreements(connection, pairs)
    assert sorted(row["name"] for row in rows[:2]) == ["t0", "t2"]  # no against yes comes first
    [row] = rows[2:]
    assert row["name"] == "t1" and row["decision"] is None
    said = {(one["annotator"], one["answer"]) for one in row["said"]}
    assert said == {("Ann", "no"), ("Bob", "maybe")}
    assert summarise(project).n_disagreements == 3


def test_a_decision_replaces_what_was_said(projects: Projects) -> None:
    project = torn_project(projects)
    before, n_cards = len(stored(project)), len(all_cards(project))
    assert states(collect_answers(project))["t0", "sky"] == "maybe"
    assert decide(project, "t0", "yes") == 1
    known = states(collect_answers(project))
    assert (known["t0", "sky"], known["t1", "sky"]) == ("yes", "maybe")
    summary = summarise(project)
    [sky] = summary.classes
    assert (sky.n_disagreements, sky.n_decided, sky.n_confirmed, sky.n_excluded) == (2, 1, 2, 1)
    assert (summary.n_cards, summary.n_done) == (12, 12)  # the lead's card is not one of them
    assert [person.name for person in summary.people] == ["Ann", "Bob"]
    # What was said stays, and a new decision takes the place of the old one.
    decide(project, "t0", "no")
    assert states(collect_answers(project))["t0", "sky"] == "no"
    assert len(all_cards(project)) == n_cards + 1 and len(stored(project)) == before + 2
    assert not Desk(project, "Carol", "tab-of-carol").ask()  # nobody gets the lead's card


def test_undo_on_the_cards_leaves_decisions_and_imports_as_they_are(projects: Projects) -> None:
    project = projects.make(6, ["sky"])
    lea = Desk(project, "Lea", "tab-of-lea")
    first, second, *_ = lea.ask()
    key = lea.answer(first["card"])
    decide(project, first["name"], "yes")
    more = [(second["name"], "no", "Lea"), (second["name"], "yes", "Bob")]
    import_answers(project, table_of(project, more))
    with project.reading() as connection:
        assert [row["key"] for row in find_history(connection, "Lea")] == [key]
    of_lea = [row.key for row in stored(project) if row.annotator == "Lea"]
    others = [other for other in of_lea if other != key]
    assert len(others) == 2
    for other in others:
        assert refusal(partial(lea.undo, other)).status == 404
    assert lea.progress()["mine"] == 1
    assert states(collect_answers(project))[first["name"], "sky"] == "yes"


def test_a_decision_has_the_round_and_the_probability_of_its_question(projects: Projects) -> None:
    project = projects.make(10, ["sky"], rate=0.5)
    add_random_cards(project, ["sky"], 0.2)
    [later, _] = [card for card in all_cards(project) if card.round == 1]
    decide(project, project.item_names[later.item_id - 1], "yes")
    [row] = read_raw_answers(project).to_dict("records")
    assert (row["round"], row["probability"]) == (1, pytest.approx(later.probability))


def test_a_decision_in_place_of_an_answer_with_a_hint_is_not_drawn_at_random(
    projects: Projects,
) -> None:
    """The lead decides what looks wrong: no rate, prior or share may rest on these pairs."""
    project = projects.make(6, ["sky"], **TWICE)
    with_hint, without = Desk(project), Desk(project, "Bob", "tab-of-bob")
    for desk, hint in ((with_hint, 0.7), (without, None)):
        cards = desk.ask()
        sent = [SentAnswer(c["card"], "no", f"{desk.tab}-{c['card']}", hint=hint) for c in cards]
        desk.send(*sent)
    [sky] = summarise(project).classes
    assert (sky.n_chosen, sky.n_asked) == (12, 0)  # Bob's are about pairs of which Ann saw a hint
    decide(project, "t0", "yes")
    assert set(read_answers(project)["source"]) == {"hint"}
    [sky] = summarise(project).classes
    assert (sky.n_asked, sky.n_decided) == (0, 0)


def test_a_decision_is_exported_alone(projects: Projects, tmp_path: Path) -> None:
    project = torn_project(projects)
    decide(project, "t0", "yes")
    counts = export_answers(project, tmp_path / "answers.csv")
    table = pd.read_csv(tmp_path / "answers.csv")
    of_item = table[(table["item"] == "t0") & (table["answer"] != "not asked")]
    assert of_item[["answer", "person"]].to_numpy().tolist() == [["yes", "Lea"]]
    assert counts["answers"] == 11


def test_who_is_left_out_does_not_disagree(projects: Projects) -> None:
    project = torn_project(projects)
    with project.writing() as connection:
        leave_out(connection, "Bob", True)
    summary = summarise(project)
    assert (summary.n_disagreements, summary.n_answers, summary.agreement.n_pairs) == (0, 6, 0)
    assert [(p.name, p.is_left_out, p.n_answers) for p in summary.people] == [
        ("Ann", False, 6),
        ("Bob", True, 6),
    ]
    assert states(collect_answers(project)) == {
        (f"t{k}", "sky"): word for k, word in enumerate(["no", "no", "yes", "no", "yes", "maybe"])
    }
    assert not find_disagreements(AnswerCache(project).read())
    with project.writing() as connection:
        leave_out(connection, "Bob", False)
    assert summarise(project).n_disagreements == 3
    with project.reading() as connection:
        refused = refusal(lambda: leave_out(connection, "Eve", True))
    wanted = "a person must be one who answered: 'Ann', 'Bob'; got 'Eve'"
    assert (refused.status, refused.reason) == (404, wanted)


def test_a_frozen_project_gives_no_cards(projects: Projects) -> None:
    project = projects.make()
    with project.writing() as connection:
        freeze(connection, True)
    assert summarise(project).frozen_at is not None and not Desk(project).ask()
    with project.writing() as connection:
        freeze(connection, False)
    assert summarise(project).frozen_at is None and Desk(project).ask()


def test_tables_of_decisions_are_checked(projects: Projects) -> None:
    project = projects.make(3, ["sky"])
    for rows, message in (
        ({"item": ["t0"], "label": ["sky"]}, "'answer' is missing"),
        ({"item": ["t9"], "label": ["sky"], "answer": ["no"]}, "has no item 't9'"),
        ({"item": ["t0"], "label": ["sun"], "answer": ["no"]}, "has no class 'sun'"),
        ({"item": ["t0"], "label": ["sky"], "answer": ["?"]}, "must be no or maybe or yes; got"),
        ({"item": ["t0"] * 2, "label": ["sky"] * 2, "answer": ["no"] * 2}, "t0, sky is there more"),
    ):
        with pytest.raises(ComesError, match=message):
            decide_pairs(project, pd.DataFrame(rows), "Lea")
    assert not stored(project)


def test_nothing_is_decided_about_what_nobody_was_asked(projects: Projects) -> None:
    project = projects.make(10, ["sky"], rate=0.1)
    asked = all_cards(project)[0].item_id - 1
    table = pd.DataFrame({"item": [f"t{asked}", f"t{(asked + 1) % 10}"], "label": "sky"})
    with pytest.raises(ComesError, match="somebody was asked about"):
        decide_pairs(project, table.assign(answer="no"), "Lea")
    assert not stored(project)


# On the page


def post(client: TestClient, what: str, **body: Any) -> Any:
    return client.post(f"/api/lead/{what}", json=body)


def test_the_page_shows_who_said_what_and_takes_decisions(
    lead: TestClient, disagreeing: Project
) -> None:
    page = lead.get("/lead/disagreements").text
    assert page.count('class="case"') == 3 and "<bdi>Bob</bdi>" in page
    reply = post(lead, "decide", item=1, class_number=1, verdict="yes")
    assert reply.json() == {"decision": "yes", "name": "Lea"}
    assert lead.get("/lead/disagreements").text.count('class="case"') == 2
    decided = lead.get("/lead/disagreements?decided").text
    assert decided.count('class="case"') == 3 and decided.count('aria-pressed="true"') == 1
    assert "Decided: Yes, by <bdi>Lea</bdi>" in decided
    [own] = [row for row in stored(disagreeing) if row.tab == "lead"]
    assert (own.annotator, own.answer) == ("Lea", "yes")
    assert post(lead, "decide", item=1, class_number=1, verdict=None).status_code == 200
    assert lead.get("/lead/disagreements").text.count('class="case"') == 3
    assert post(lead, "decide", item=99, class_number=1, verdict="no").status_code == 404
    for wrong in ({"verdict": "skip"}, {"item": "1"}, {"more": 1}):
        body: dict[str, Any] = {"item": 1, "class_number": 1, "verdict": "no", **wrong}
        assert post(lead, "decide", **body).status_code == 422


def test_the_tab_counts_what_its_page_lists(projects: Projects) -> None:
    project = torn_project(projects)
    with project.writing() as connection:  # such answers do not count in the summary
        connection.execute(update(answers).values(hint=0.5))
    with TestClient(make_app(project), base_url=HERE) as client:
        page = client.get("/lead/disagreements").text
    assert '<span class="count">3</span>' in page and page.count('class="case"') == 3


def test_the_page_leaves_people_out_and_freezes(lead: TestClient, disagreeing: Project) -> None:
    assert "leave out" in lead.get("/lead/people").text
    assert post(lead, "person", name="Bob", is_left_out=True).status_code == 200
    assert "take in again" in lead.get("/lead/people").text
    assert [p.is_left_out for p in summarise(disagreeing).people] == [False, True]
    assert post(lead, "person", name="Eve", is_left_out=True).status_code == 404
    assert post(lead, "freeze", is_on=True).status_code == 200
    assert "Frozen since" in lead.get("/lead").text
    assert "Give cards again" in lead.get("/lead/settings").text
    assert post(lead, "freeze", is_on=False).status_code == 200
    assert "Frozen since" not in lead.get("/lead").text


def test_notes_are_listed_and_dealt_with(lead: TestClient, disagreeing: Project) -> None:
    assert "Nobody has written a note" in lead.get("/lead/notes").text
    card = all_cards(disagreeing)[0].id
    with disagreeing.writing() as connection:
        for text in ("", "cut off <b>"):
            row = {"card_id": card, "annotator": "Ann", "text": text, "written_at": 1.0}
            connection.execute(insert(notes).values(row))
    page = lead.get("/lead/notes").text
    assert "cut off &lt;b&gt;" in page and "Flagged, without words" in page
    assert page.count("dealt with") == 2
    assert post(lead, "note", note=1, is_resolved=True).status_code == 200
    assert lead.get("/lead/notes").text.count("open again") == 1
    assert post(lead, "note", note=1, is_resolved=False).status_code == 200
    assert lead.get("/lead/notes").text.count("open again") == 0
    assert post(lead, "note", note=77, is_resolved=True).status_code == 404


def test_pages_of_other_sites_decide_nothing(lead: TestClient) -> None:
    body = {"item": 1, "class_number": 1, "verdict": "yes"}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert lead.post("/api/lead/decide", json=body, headers=headers).status_code == 403
    assert lead.post("/api/lead/decide", content=json.dumps(body)).status_code == 415


def test_many_disagreements_come_on_several_pages(projects: Projects) -> None:
    project = projects.make(45, ["sky"], **TWICE)
    Desk(project).answer_all(lambda _: "no")
    Desk(project, "Bob", "tab-of-bob").answer_all(lambda _: "yes")
    with TestClient(make_app(project), base_url=HERE) as client:
        assert client.get("/lead/disagreements").text.count('class="case"') == 20
        assert client.get("/lead/disagreements?from=40").text.count('class="case"') == 5
        for odd in ("-1", "x", "9" * 30, "40000"):
            assert client.get(f"/lead/disagreements?from={odd}").status_code == 200


def test_taking_back_a_decision_that_is_not_there_changes_nothing(projects: Projects) -> None:
    from comes.annotate.lead import decide_pair, resolve_note

    project = torn_project(projects)
    with project.writing() as connection:
        decide_pair(connection, 1, 1, None, "Lea")
        assert refusal(lambda: resolve_note(connection, 5, True)).status == 404
    assert len(all_cards(project)) == 12
    assert len(find_disagreements(AnswerCache(project).read(), with_decided=True)) == 3
