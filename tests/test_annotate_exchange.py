"""Answers out of a project and into one: what is exported is what was said."""

import csv
import json
import math
import re
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comes.annotate import (
    Project,
    collect_answers,
    estimate_shares,
    export_answers,
    import_answers,
    open_project,
    summarise,
)
from comes.annotate.cards import SHOWS_HINTS, Answer, SentAnswer, write_note
from comes.annotate.exchange import export_raw_answers, read_raw_answers
from comes.annotate.grow import add_chosen_cards, add_random_cards, set_controls, set_hints
from comes.annotate.lead import leave_out
from comes.datasets import open_dataset
from comes.datasets.table import read_table
from comes.errors import ComesError, ComesWarning
from projects import (
    Card,
    Desk,
    Pair,
    Projects,
    all_cards,
    by_person,
    chosen_pairs,
    new_answer,
    pair_of,
    say,
    states,
    stored,
)

ENDINGS = (".csv", ".parquet", ".npz", ".jsonl")
AWKWARD = ['say "a,b"', "two\nlines", "Ünï 中", " padded ", "NA", "007", "x" * 300, "\u202eleft"]


SAID: dict[Pair, Answer] = {
    ("t0", "sky"): "no",
    ("t1", "sky"): "maybe",
    ("t1", "sea"): "no",
    ("t2", "sea"): "skip",
    ("t3", "sea"): "yes",
}
STANDS = {pair: answer for pair, answer in SAID.items() if answer != "skip"}


# Export


def test_what_is_exported_is_what_was_said(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    say(project, SAID)
    counts = {"items": 4, "classes": 2, "answers": 4, "people": 1, "asked": 4, "surely_not": 2}
    counts["chosen_by_model"] = 0
    for ending in ENDINGS:
        path = tmp_path / f"answers{ending}"
        assert export_answers(project, path) == counts
        dataset = open_dataset(path)
        assert dataset.items == ["t0", "t1", "t2", "t3"]  # also those that nobody was asked about
        assert dataset.label_names == ["sky", "sea"]
        assert states(dataset) == STANDS
        assert dataset.candidates is not None
        assert (~dataset.candidates).sum() == 2


def test_a_table_has_a_row_per_answer_that_says_who_asked_and_who_answered(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(4)
    say(project, SAID)
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        path = tmp_path / f"answers{ending}"
        export_answers(project, path)
        table = read(path)
        columns = ["item", "label", "answer", "source", "person", "probability"]
        assert list(table.columns) == columns
        said = table[table["answer"] != "not asked"]
        assert set(said["source"]) == {"random"} and set(said["person"]) == {"Ann"}
        assert set(said["probability"]) == {1.0}  # every item was drawn for every class
        pairs = zip(said["item"], said["label"], strict=True)
        assert dict(zip(pairs, said["answer"], strict=True)) == STANDS


def test_every_item_and_class_occurs_with_a_single_answer(
    projects: Projects, tmp_path: Path
) -> None:
    """Rows without an answer count: the risks need to know how many items there are."""
    project = projects.make(30, ["sky", "sea", "sun"])
    say(project, {("t17", "sea"): "no"})
    for ending in ENDINGS:
        export_answers(project, tmp_path / f"answers{ending}")
        dataset = open_dataset(tmp_path / f"answers{ending}")
        assert dataset.items == [f"t{k}" for k in range(30)]
        assert dataset.label_names == ["sky", "sea", "sun"]
        assert dataset.candidates is not None and dataset.candidates.shape == (30, 3)
        assert (~dataset.candidates).nonzero()[0].tolist() == [17]


def chosen_by_a_model(projects: Projects, answer: Answer = "maybe") -> Project:
    """Return a project with a random answer per class, and two on what a model chose."""
    project = projects.make(10, rate=0.1)
    random = {pair_of(project, card) for card in all_cards(project)}
    free = [(f"t{k}", "sky") for k in range(10) if (f"t{k}", "sky") not in random][:2]
    add_chosen_cards(project, pd.DataFrame(free, columns=["item", "label"]))
    Desk(project).answer_all(lambda card: answer if card["class"] == "sea" else "no")
    return project


def test_what_a_model_chose_is_marked(projects: Projects, tmp_path: Path) -> None:
    """Such answers count in the likelihood, but not where questions must be drawn at random."""
    project = chosen_by_a_model(projects)
    sources = {pair_of(project, card): card.source for card in all_cards(project)}
    by_model = {pair for pair, source in sources.items() if source == "model"}
    assert len(by_model) == 2
    for ending in ENDINGS:
        counts = export_answers(project, tmp_path / f"answers{ending}")
        assert (counts["asked"], counts["chosen_by_model"]) == (4, 2)
        dataset = open_dataset(tmp_path / f"answers{ending}")
        assert states(dataset) == states(collect_answers(project))
        assert chosen_pairs(dataset) == by_model
        drawn = dataset.known_answers().without_chosen()
        assert set(sources) - by_model == set(states(replace(dataset, answers=drawn)))
        assert (~dataset.known_candidates()).sum() == 1  # "no" about the sky
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        table = read(tmp_path / f"answers{ending}")
        own = table[table["source"] == "model"]
        assert set(zip(own["item"], own["label"], strict=True)) == by_model
        assert set(own["answer"]) == {"no"}


def test_what_a_model_chose_is_no_candidate(projects: Projects, tmp_path: Path) -> None:
    """If all say no, the answers are candidates, which need questions drawn at random."""
    project = chosen_by_a_model(projects, answer="no")
    drawn = {pair_of(project, card) for card in all_cards(project) if card.source == "random"}
    export_answers(project, tmp_path / "answers.csv")  # without a warning: the table has them all
    assert (pd.read_csv(tmp_path / "answers.csv")["source"] == "model").sum() == 2
    with pytest.warns(ComesWarning, match="2 answers to questions that a model chose are left"):
        assert set(states(open_dataset(tmp_path / "answers.csv"))) == drawn
    with pytest.warns(ComesWarning, match="2 answers to questions that a model chose are left"):
        assert set(states(collect_answers(project))) == drawn


def test_a_question_that_was_drawn_too_counts_as_drawn(projects: Projects) -> None:
    project = chosen_by_a_model(projects)
    add_random_cards(project, ["sky"], rate=0.9, seed=0)
    assert collect_answers(project).known_answers().chosen is None


def test_where_two_people_disagree_both_answers_are_kept(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(["p", "q", "r"], ["sky"], overlap=1.0)
    said: dict[str, dict[Pair, Answer]] = {
        "Ann": {("p", "sky"): "no", ("q", "sky"): "maybe", ("r", "sky"): "no"},
        "Bob": {("p", "sky"): "no", ("q", "sky"): "no", ("r", "sky"): "maybe"},
    }
    for name, own in said.items():
        say(project, own, name)
    everything = {(name, pair): word for name, own in said.items() for pair, word in own.items()}
    assert by_person(collect_answers(project)) == everything
    for ending in ENDINGS:  # without a warning that they differ
        counts = export_answers(project, tmp_path / f"answers{ending}")
        assert (counts["answers"], counts["asked"], counts["surely_not"]) == (6, 3, 1)
        assert counts["people"] == 2
        dataset = open_dataset(tmp_path / f"answers{ending}")
        assert states(dataset) == {("p", "sky"): "no", ("q", "sky"): "maybe", ("r", "sky"): "maybe"}
        assert by_person(dataset) == everything


def test_one_person_needs_no_long_form(projects: Projects) -> None:
    project = projects.make(4)
    say(project, SAID)
    assert collect_answers(project).known_answers().annotations is None


def test_what_was_taken_back_is_absent(projects: Projects) -> None:
    project = projects.make(4)
    say(project, {("t0", "sky"): "no", ("t1", "sky"): "maybe"})
    desk = Desk(project)
    said = [row for row in stored(project) if row.undone_at is None and row.answer == "no"]
    desk.undo(*(row.key for row in said))
    assert states(collect_answers(project)) == {("t1", "sky"): "maybe"}


def test_there_is_nothing_to_export(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    with pytest.raises(
        ComesError, match="project has no answers yet. Collect some: comes annotate"
    ):
        export_answers(project, tmp_path / "answers.csv")
    say(project, {("t0", "sky"): "skip"})
    with pytest.raises(ComesError, match="project has no answers yet"):
        export_answers(project, tmp_path / "answers.csv")
    assert not (tmp_path / "answers.csv").exists()


def test_an_export_replaces_the_last_one(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    say(project, {("t0", "sky"): "no"})
    (tmp_path / "answers.csv").write_text("old")
    export_answers(project, tmp_path / "answers.csv")
    assert states(open_dataset(tmp_path / "answers.csv")) == {("t0", "sky"): "no"}
    with pytest.raises(ComesError, match=r"answers\.xyz should end in \.csv"):
        export_answers(project, tmp_path / "answers.xyz")


def test_awkward_names_are_read_as_they_are(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(AWKWARD, AWKWARD[::-1])
    said: dict[Pair, Answer] = {
        (item, name): "maybe" if item == name else "no" for item in AWKWARD for name in AWKWARD
    }
    say(project, said)
    for ending in ENDINGS:
        export_answers(project, tmp_path / f"answers{ending}")
        dataset = open_dataset(tmp_path / f"answers{ending}")
        assert (dataset.items, dataset.label_names) == (AWKWARD, AWKWARD[::-1])
        assert states(dataset) == said


def test_what_one_project_exports_another_imports(projects: Projects, tmp_path: Path) -> None:
    one = projects.make(4)
    say(one, SAID)
    for ending in (".csv", ".parquet", ".jsonl"):
        path = tmp_path / f"answers{ending}"
        export_answers(one, path)
        other = projects.make(4, name=f"other-{ending[1:]}")
        assert import_answers(other, path)["taken"] == 4
        assert states(collect_answers(other)) == STANDS


# Any history


Step = tuple[str, int, Answer]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["answer", "answer", "undo", "resend"]),
        st.integers(0, 40),
        st.sampled_from(["no", "maybe", "skip"]),
    ),
    max_size=30,
)


@settings(max_examples=10, deadline=None)
@given(steps=STEPS)
def test_the_export_is_what_a_plain_dictionary_predicts(steps: list[Step]) -> None:
    """Two people answer, skip and take back in any order, with half of all asked twice."""
    with tempfile.TemporaryDirectory() as folder:
        projects = Projects(Path(folder))
        project = projects.make(3, ["sky", "sea"], overlap=0.5)
        try:
            expected = play(project, steps)
            again = projects.keep(open_project(project.folder))
            if expected:
                assert states(collect_answers(again)) == expected
                export_answers(again, Path(folder) / "answers.csv")
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    assert states(open_dataset(Path(folder) / "answers.csv")) == expected
        finally:
            projects.close()


def play(project: Project, steps: list[Step]) -> dict[Pair, str]:
    """Do the steps; return what they come to, by a model of its own."""
    desks = [Desk(project), Desk(project, "Bob", "tab-of-bob")]
    given: dict[str, tuple[Desk, Card, Answer]] = {}  # all answers, by key
    stands: dict[int, tuple[Pair, Answer]] = {}  # by card
    for what, number, answer in steps:
        desk = desks[number % 2]
        if what == "answer":
            asked = desk.ask()
            if asked:
                card = asked[number % len(asked)]
                given[desk.answer(card["card"], answer)] = desk, card, answer
                stands[card["card"]] = (card["name"], card["class"]), answer
        elif given:
            key = list(given)[number % len(given)]
            desk, card, _ = given[key]
            if what == "undo":
                is_latest = key == [k for k, one in given.items() if one[1] == card][-1]
                desk.undo(key)
                if is_latest:
                    stands.pop(card["card"], None)
            else:
                resend(project, key)
    found: dict[Pair, set[str]] = {}
    for pair, answer in stands.values():
        if answer != "skip":
            found.setdefault(pair, set()).add(answer)
    return {pair: "maybe" if "maybe" in said else "no" for pair, said in found.items()}


def resend(project: Project, key: str) -> None:
    """Send a stored answer again, as it was."""
    row = next(row for row in stored(project) if row.key == key)
    desk = Desk(project, row.annotator, row.tab)
    desk.send(SentAnswer(row.card_id, row.answer, row.key, row.seconds))


def test_an_import_may_say_what_a_model_chose(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(10, ["sky"], rate=0.1)
    drawn = {pair_of(project, card)[0] for card in all_cards(project)}
    chosen, imported = [name for name in project.item_names if name not in drawn][:2]
    rows = [(chosen, "sky", "maybe", "model"), (imported, "sky", "yes", "random")]
    table = pd.DataFrame(rows, columns=["item", "label", "answer", "source"])
    table.to_csv(tmp_path / "a.csv", index=False)
    assert import_answers(project, tmp_path / "a.csv") == {"taken": 2, "already_answered": 0}
    source_of = {pair_of(project, card)[0]: card.source for card in all_cards(project)}
    assert source_of[chosen] == "model" and source_of[imported] == "import"


def test_the_matrix_has_the_shape_of_the_project(projects: Projects) -> None:
    project = projects.make(4)
    with pytest.raises(ComesError, match="project has no answers yet. Collect some"):
        collect_answers(project)
    say(project, {("t0", "sky"): "no"})
    dataset = collect_answers(project)
    assert dataset.known_candidates().tolist() == [[False, True]] + [[True, True]] * 3
    assert isinstance(dataset.X, pd.DataFrame)
    assert dataset.X["text"].tolist() == [f"text of t{k}" for k in range(4)]


# From other tools


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


# Every answer as it was given


def test_raw_answers_say_who_when_how_fast_and_what_was_written(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make()
    desk = Desk(project)
    first, second, *_ = desk.ask()
    with project.writing() as connection:
        write_note(connection, desk.asker, first["card"], "is it one?", now=1.0)
    desk.answer(first["card"], "yes", now=1_700_000_000.25, seconds=2.5)
    desk.undo(desk.answer(second["card"], "no", now=1_700_000_001.0))
    desk.answer(second["card"], "skip", now=1_700_000_002.0)
    assert export_raw_answers(project, tmp_path / "raw.csv") == {"answers": 2, "people": 1}
    told, skipped = pd.read_csv(tmp_path / "raw.csv").to_dict("records")
    assert math.isnan(told.pop("hint")) and math.isnan(told.pop("decision"))
    assert told == {
        "number": 1,
        "item": first["name"],
        "label": first["class"],
        "answer": "yes",
        "person": "Ann",
        "at": "2023-11-14T22:13:20.250+00:00",
        "seconds": 2.5,
        "source": "random",
        "round": 0,
        "probability": 1,
        "comment": "Ann: is it one?",
    }
    assert skipped["answer"] == "skip"


def test_raw_answers_leave_out_people(projects: Projects) -> None:
    project = projects.make()
    for name in ("Ann", "Bob"):
        desk = Desk(project, name, f"tab-{name}")
        desk.answer(desk.ask()[0]["card"], "no")
    assert len(read_raw_answers(project)) == 2
    with project.writing() as connection:
        leave_out(connection, "Bob", True)
    assert set(read_raw_answers(project)["person"]) == {"Ann"}


# Files that spreadsheets open

FORMULAS = ["=1+1", "+a", "-b", "@c", "\td", "'=e", "''-f", "'g", '=HYPERLINK("x")', "plain"]


def test_no_name_is_a_formula_and_each_reads_back_as_it_was(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(FORMULAS, FORMULAS)
    for name in FORMULAS:
        desk = Desk(project, name)
        asked = desk.ask()[0]
        with project.writing() as connection:
            write_note(connection, desk.asker, asked["card"], name, now=1.0)
        desk.answer(asked["card"], "yes" if name == "plain" else "no")
    wanted = collect_answers(project)
    for ending in (".csv", ".tsv", ".csv.gz", ".xlsx", ".parquet"):
        path = tmp_path / f"answers{ending}"
        export_answers(project, path)
        found = open_dataset(path)
        assert (found.items, found.label_names) == (FORMULAS, FORMULAS), ending
        assert by_person(found) == by_person(wanted), ending
        export_raw_answers(project, tmp_path / f"raw{ending}")
    for name in ("answers", "raw"):
        cells = csv.reader((tmp_path / f"{name}.csv").read_text().splitlines())
        assert not [cell for row in cells for cell in row if re.match(r"[=+\-@\t]", cell)]
        sheet = openpyxl.load_workbook(tmp_path / f"{name}.xlsx").active
        assert "f" not in {cell.data_type for row in sheet.iter_rows() for cell in row}
    raw = read_table(tmp_path / "raw.csv", ["person", "comment"])
    assert sorted(raw["person"]) == sorted(FORMULAS)
    assert set(raw["comment"]) == {f"{name}: {name}" for name in FORMULAS}


# Answers to cards that showed what a model thinks


def test_a_hint_is_shown_where_it_is_wanted_and_its_answers_are_told_apart(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(4, ["sky"])
    desk = Desk(project)
    first, second, *_ = desk.ask()
    assert "hint" not in first
    desk.answer(first["card"], "maybe")
    assert set_hints(project, np.linspace(0.1, 0.7, 4)[:, None]) == 3  # open cards
    shown = {card["card"]: card["hint"] for card in desk.ask()}
    assert shown[second["card"]] == np.linspace(0.1, 0.7, 4)[second["item"] - 1]
    hinted = SentAnswer(second["card"], "yes", "key-of-hint", 1.0, shown[second["card"]])
    desk.send(hinted)
    assert [row.hint for row in stored(project)] == [None, shown[second["card"]]]
    dataset = collect_answers(project)
    assert chosen_pairs(dataset) == {(second["name"], "sky")}
    assert states(dataset) == {(first["name"], "sky"): "maybe", (second["name"], "sky"): "yes"}
    for ending in ENDINGS:
        export_answers(project, tmp_path / f"answers{ending}")
        again = open_dataset(tmp_path / f"answers{ending}")
        assert (states(again), chosen_pairs(again)) == (states(dataset), chosen_pairs(dataset))
    sky = summarise(project).classes[0]
    assert (sky.n_asked, sky.n_confirmed, sky.n_chosen) == (1, 0, 1)
    assert estimate_shares(project)["asked"].tolist() == [1]
    assert set(read_raw_answers(project)["hint"].dropna()) == {shown[second["card"]]}
    project.write_setting(SHOWS_HINTS, "0")
    assert "hint" not in desk.ask()[0]


def test_an_answer_beside_a_hinted_one_is_told_apart_too(projects: Projects) -> None:
    project = projects.make(1, ["sky"], overlap=1.0)
    Desk(project).answer_all(lambda _: "yes")
    bob = Desk(project, "Bob", "tab-of-bob")
    card = bob.ask()[0]["card"]
    bob.send(SentAnswer(card, "no", "key-of-bob", None, 0.2))
    assert chosen_pairs(collect_answers(project)) == {("t0", "sky")}


def test_cards_with_known_answers_have_hints_too(projects: Projects) -> None:
    """Else people would tell them from others."""
    project = projects.make(40, ["sky"], rate=0.5)
    asked = {card.item_id for card in all_cards(project)}
    known = [f"t{k}" for k in range(40) if k + 1 not in asked]
    set_controls(project, pd.DataFrame({"item": known, "label": "sky", "answer": "no"}), 0.5)
    set_hints(project, np.full((40, 1), 0.5))
    desk = Desk(project)
    while cards_of_block := desk.ask():
        assert {card["hint"] for card in cards_of_block} == {0.5}
        desk.send(*(new_answer(card["card"], "no") for card in cards_of_block))
    assert summarise(project).people[0].n_controls > 0
