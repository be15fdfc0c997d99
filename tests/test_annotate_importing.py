"""Answers of other tools into a project: what is imported is what a file says."""

import json
from pathlib import Path
from typing import Any

import pytest

from comes.annotate import (
    collect_answers,
    export_answers,
    import_answers,
    summarise,
)
from comes.errors import ComesError
from projects import (
    Desk,
    Projects,
    all_cards,
    by_person,
    chosen_pairs,
    pair_of,
    say,
    states,
    stored,
)


def label_studio(folder: Path, choices: dict[str, list[str]], name: str = "export.json") -> Path:
    def task(item: str, ticked: list[str]) -> dict[str, Any]:
        result = {"type": "choices", "from_name": "not", "value": {"choices": ticked}}
        done = {"result": [result], "was_cancelled": False}
        return {"id": 1, "data": {"image": item}, "annotations": [done]}

    path = folder / name
    path.write_text(json.dumps([task(*pair) for pair in choices.items()]))
    return path


def prodigy(folder: Path, lines: list[tuple[str, str, str]]) -> Path:
    path = folder / "export.jsonl"
    rows = [{"text": item, "label": label, "answer": answer} for item, label, answer in lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_table(folder: Path, rows: str) -> Path:
    path = folder / "long.csv"
    path.write_text(rows)
    return path


def test_what_other_tools_say(projects: Projects, tmp_path: Path) -> None:
    table = "item,label,answer\nt0,sky,yes\nt1,sky,no\nt2,sea,maybe\n"
    said = [("t0", "sky", "reject"), ("t0", "sea", "accept"), ("t2", "sea", "ignore")]
    yes = {"words": {"accept": "yes", "reject": "no"}}
    t0, t1, t2 = ("t0", "sky"), ("t1", "sky"), ("t2", "sea")
    cases: list[tuple[str, Path, dict[str, Any], dict[Any, str]]] = [
        (
            "ticked in Label Studio: surely not",
            label_studio(tmp_path, {"t1": ["sea"], "t3": ["sky", "sea"]}),
            {"complementary": True},
            {("t1", "sea"): "no", ("t3", "sky"): "no", ("t3", "sea"): "no"},
        ),
        (
            "ticked in Label Studio: possible",
            label_studio(tmp_path, {"t1": ["sea"]}, "possible.json"),
            {},
            {("t1", "sea"): "maybe", t1: "no"},
        ),
        ("Prodigy", prodigy(tmp_path, said), {}, {t0: "no", ("t0", "sea"): "maybe"}),
        ("Prodigy, yes", prodigy(tmp_path, said), yes, {t0: "no", ("t0", "sea"): "yes"}),
        ("a table", write_table(tmp_path, table), {}, {t0: "yes", t1: "no", t2: "maybe"}),
    ]
    for number, (name, path, options, expected) in enumerate(cases):
        project = projects.make(4, name=f"project-{number}")
        counts = import_answers(project, path, **options)
        assert counts == {"taken": len(expected), "already_answered": 0}, name
        assert states(collect_answers(project)) == expected, name
        assert {row.annotator for row in stored(project)} == {f"({path.name})"}, name


def test_the_field_that_names_the_item(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    path = tmp_path / "export.jsonl"
    row = {"text": "a long text", "meta": "t1", "label": "sky", "answer": "reject"}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(ComesError, match=r"answers to 'a long text'.*name the field \(--item\)"):
        import_answers(project, path)
    import_answers(project, path, item="meta")
    assert states(collect_answers(project)) == {("t1", "sky"): "no"}


def test_an_imported_question_is_not_asked_again(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    ann = Desk(project)
    held = ann.ask()[0]
    lines = [(held["name"], held["class"], "reject")]
    import_answers(project, prodigy(tmp_path, lines))
    assert held not in ann.ask()
    assert ann.answer_all() == 7
    counted = {"total": 8, "done": 8, "mine": 7, "seconds": 0.0, "left": 0}
    assert ann.progress() == counted


def test_questions_that_were_not_drawn_are_added(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(10, ["sky"], rate=0.1)
    [drawn] = [pair_of(project, card) for card in all_cards(project)]
    lines = [(f"t{k}", "sky", "reject") for k in range(10)]
    assert import_answers(project, prodigy(tmp_path, lines))["taken"] == 10
    assert len(all_cards(project)) == 10
    assert len(states(collect_answers(project))) == 10
    assert drawn in states(collect_answers(project))
    assert Desk(project).ask() == []


def test_an_imported_answer_leaves_the_card_of_a_second_person_open(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(60, ["sky"], overlap=1.0)
    path = prodigy(tmp_path, [(f"t{k}", "sky", "reject") for k in range(60)])
    assert import_answers(project, path) == {"taken": 60, "already_answered": 0}
    assert {(card.turn, card.is_done) for card in all_cards(project)} == {(0, True), (1, False)}
    assert import_answers(project, path) == {"taken": 0, "already_answered": 60}


def test_what_has_an_answer_is_left_alone(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    say(project, {("t0", "sky"): "maybe"})
    path = prodigy(tmp_path, [("t0", "sky", "reject"), ("t1", "sky", "reject")])
    assert import_answers(project, path) == {"taken": 1, "already_answered": 1}
    assert import_answers(project, path) == {"taken": 0, "already_answered": 2}
    assert states(collect_answers(project)) == {("t0", "sky"): "maybe", ("t1", "sky"): "no"}


def test_an_imported_answer_that_a_model_chose_is_marked_unless_it_was_drawn(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(10, ["sky"], rate=0.1)
    [drawn] = [pair_of(project, card) for card in all_cards(project)]
    other = next(f"t{k}" for k in range(10) if f"t{k}" != drawn[0])
    path = prodigy(tmp_path, [(drawn[0], "sky", "accept"), (other, "sky", "reject")])
    import_answers(project, path, chosen_by_model=True)
    dataset = collect_answers(project)
    assert states(dataset) == {drawn: "maybe", (other, "sky"): "no"}
    assert chosen_pairs(dataset) == {(other, "sky")}


def test_answers_of_several_people_are_taken_under_their_names(
    projects: Projects, tmp_path: Path
) -> None:
    """Here two of three questions have a card for a second person; the third gets further cards."""
    project = projects.make(3, ["sky"], overlap=0.7)
    rows = "t0,sky,yes,Ann\nt0,sky,no,Bob\nt0,sky,maybe,Carol\nt1,sky,no,Bob\nt2,sky,no,\n"
    path = write_table(tmp_path, f"item,label,answer,person\n{rows}")
    assert import_answers(project, path) == {"taken": 5, "already_answered": 0}
    assert import_answers(project, path) == {"taken": 0, "already_answered": 5}
    everything = {
        ("Ann", ("t0", "sky")): "yes",
        ("Bob", ("t0", "sky")): "no",
        ("Carol", ("t0", "sky")): "maybe",
        ("Bob", ("t1", "sky")): "no",
        ("(long.csv)", ("t2", "sky")): "no",
    }
    assert by_person(collect_answers(project)) == everything
    assert {row.annotator for row in all_cards(project) if row.is_done} == {
        *("Ann", "Bob", "Carol", "(long.csv)")
    }
    [sky] = summarise(project).classes
    assert (sky.n_asked, sky.n_excluded, sky.n_confirmed, sky.n_disagreements) == (3, 2, 0, 1)
    export_answers(project, tmp_path / "answers.parquet")
    other = projects.make(3, ["sky"], name="other")
    import_answers(other, tmp_path / "answers.parquet")
    assert by_person(collect_answers(other)) == everything


def test_who_contradicts_themselves_is_not_sure(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    rows = "t0,sky,no,Ann\nt0,sky,maybe,Ann\nt1,sky,no,Ann\nt1,sky,no,Ann\n"
    path = write_table(tmp_path, f"item,label,answer,person\n{rows}")
    assert import_answers(project, path)["taken"] == 2
    assert states(collect_answers(project)) == {("t0", "sky"): "maybe", ("t1", "sky"): "no"}


def test_nobody_is_heard_twice_about_a_question(projects: Projects, tmp_path: Path) -> None:
    """Ann has answered the second person's card, so her answer in a file is known."""
    project = projects.make(["p"], ["sky"], overlap=1.0)
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    bob_held, ann_held = bob.ask(), ann.ask()
    assert bob_held != ann_held and ann.answer(ann_held[0]["card"], "no")
    path = write_table(tmp_path, "item,label,answer,person\np,sky,yes,Ann\np,sky,maybe,Bob\n")
    assert import_answers(project, path) == {"taken": 1, "already_answered": 1}
    assert by_person(collect_answers(project)) == {
        ("Ann", ("p", "sky")): "no",
        ("Bob", ("p", "sky")): "maybe",
    }


def test_unknown_items_and_classes_change_nothing(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    before = all_cards(project)
    for lines, message in (
        (
            [("t0", "sky", "reject"), ("z", "sky", "reject")],
            "export.jsonl has answers to 'z', which",
        ),
        ([("t0", "sky", "reject"), ("t0", "moon", "reject")], "'moon' occurs in an answer but is"),
    ):
        with pytest.raises(ComesError, match=message):
            import_answers(project, prodigy(tmp_path, lines))
    with pytest.raises(ComesError, match="none.json"):
        import_answers(project, tmp_path / "none.json")
    assert (all_cards(project), stored(project)) == (before, [])


def test_ticks_of_another_tool_say_nothing_of_the_prior(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(50, ["sky"], rate=0.1)
    drawn = {pair_of(project, card)[0] for card in all_cards(project)}
    lines = [(f"t{k}", "sky", "reject") for k in range(50) if f"t{k}" not in drawn]
    import_answers(project, prodigy(tmp_path, lines))
    [row] = summarise(project).classes
    assert (row.n_excluded, row.prior_bound) == (45, 1.0)
