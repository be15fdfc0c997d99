"""Answers out of a project and into one: what is exported is what was said."""

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comes.annotate import (
    Project,
    add_chosen_cards,
    collect_answers,
    export_answers,
    import_answers,
    open_project,
    summarise,
)
from comes.annotate.leases import Answer, SentAnswer
from comes.datasets import Dataset, read_dataset
from comes.datasets.answer_tables import answers_of
from comes.errors import ComesError, ComesWarning
from projects import Card, Desk, Projects, all_cards, new_answer, on_sqlite, stored

Pair = tuple[str, str]
ENDINGS = (".csv", ".parquet", ".npz", ".jsonl")
AWKWARD = ['say "a,b"', "two\nlines", "Ünï 中", " padded ", "NA", "007", "x" * 300, "\u202eleft"]


def states(dataset: Dataset) -> dict[Pair, str]:
    """Return what is known of each pair that was asked."""
    candidates, asked = answers_of(dataset)
    assert dataset.items is not None
    return {
        (dataset.items[row], dataset.label_names[column]): (
            "maybe" if candidates[row, column] else "no"
        )
        for row, column in zip(*asked.nonzero(), strict=True)
    }


def say(project: Project, said: dict[Pair, Answer], annotator: str = "Ann") -> None:
    """Answer the cards of some pairs, and leave the others."""
    left, number = dict(said), 0
    while left:
        desk, number = Desk(project, annotator, f"{annotator}-{number}"), number + 1
        asked = desk.ask()
        assert asked, f"nobody asks {left}"
        wanted = [card for card in asked if (card["name"], card["class"]) in left]
        given = [
            new_answer(card["card"], left.pop((card["name"], card["class"]))) for card in wanted
        ]
        if given:
            desk.send(*given)


def pair_of(project: Project, card: Any) -> Pair:
    return project.item_names[card.item_id - 1], project.class_names[card.class_id - 1]


@pytest.fixture
def project(projects: Projects, database: str | None) -> Project:
    return projects.make(4, database=database)


SAID: dict[Pair, Answer] = {
    ("t0", "sky"): "no",
    ("t1", "sky"): "maybe",
    ("t1", "sea"): "no",
    ("t2", "sea"): "skip",
}
STANDS = {pair: answer for pair, answer in SAID.items() if answer != "skip"}


# Export


def test_what_is_exported_is_what_was_said(project: Project, tmp_path: Path) -> None:
    say(project, SAID)
    counts = {"items": 4, "classes": 2, "asked": 3, "surely_not": 2, "chosen_by_model": 0}
    for ending in ENDINGS:
        path = tmp_path / f"answers{ending}"
        assert export_answers(project, path) == counts
        dataset = read_dataset(path)
        assert dataset.items == ["t0", "t1", "t2", "t3"]  # also those that nobody was asked about
        assert dataset.label_names == ["sky", "sea"]
        assert states(dataset) == STANDS
        assert dataset.candidates is not None
        assert (~dataset.candidates).sum() == 2


def test_a_table_has_four_columns(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(4)
    say(project, SAID)
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        path = tmp_path / f"answers{ending}"
        export_answers(project, path)
        table = read(path)
        assert list(table.columns) == ["item", "label", "answer", "source"]
        said = table[table["answer"] != "not asked"]
        assert set(said["source"]) == {"random"}
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
        dataset = read_dataset(tmp_path / f"answers{ending}")
        assert dataset.items == [f"t{k}" for k in range(30)]
        assert dataset.label_names == ["sky", "sea", "sun"]
        assert dataset.candidates is not None and dataset.candidates.shape == (30, 3)
        assert (~dataset.candidates).nonzero()[0].tolist() == [17]


def chosen_by_a_model(projects: Projects, database: str | None = None) -> Project:
    """Return a project with a random answer per class, and two on what a model chose."""
    project = projects.make(10, database=database, rate=0.1)
    random = {pair_of(project, card) for card in all_cards(project)}
    free = [(f"t{k}", "sky") for k in range(10) if (f"t{k}", "sky") not in random][:2]
    add_chosen_cards(project, pd.DataFrame(free, columns=["item", "label"]))
    Desk(project).answer_all()
    return project


def test_what_a_model_chose_is_marked_or_left_out(
    projects: Projects, tmp_path: Path, database: str | None
) -> None:
    """Such questions are not asked of every item alike, as the risks need."""
    project = chosen_by_a_model(projects, database)
    random = {pair_of(project, card) for card in all_cards(project) if card.source == "random"}
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        counts = export_answers(project, tmp_path / f"answers{ending}")
        assert (counts["asked"], counts["chosen_by_model"]) == (2, 2)
        table = read(tmp_path / f"answers{ending}")
        assert (table["source"] == "model").sum() == 2
        assert set(table.loc[table["source"] == "model", "answer"]) == {"no"}
        with pytest.warns(ComesWarning, match="2 answers to questions that a model chose are left"):
            dataset = read_dataset(tmp_path / f"answers{ending}")
        assert set(states(dataset)) == random
    for ending in (".npz", ".jsonl"):  # formats that cannot say where an answer comes from
        export_answers(project, tmp_path / f"answers{ending}")
        assert set(states(read_dataset(tmp_path / f"answers{ending}"))) == random


def test_where_two_people_disagree_the_label_stays_possible(
    projects: Projects, tmp_path: Path, database: str | None
) -> None:
    project = projects.make(["p", "q", "r"], ["sky"], database=database, overlap=1.0)
    say(project, {("p", "sky"): "no", ("q", "sky"): "maybe", ("r", "sky"): "no"})
    said: dict[Pair, Answer] = {("p", "sky"): "no", ("q", "sky"): "no", ("r", "sky"): "maybe"}
    say(project, said, "Bob")
    for ending in ENDINGS:  # without a warning that they differ
        export_answers(project, tmp_path / f"answers{ending}")
        dataset = read_dataset(tmp_path / f"answers{ending}")
        assert states(dataset) == {("p", "sky"): "no", ("q", "sky"): "maybe", ("r", "sky"): "maybe"}


def test_what_was_taken_back_is_absent(project: Project) -> None:
    say(project, {("t0", "sky"): "no", ("t1", "sky"): "maybe"})
    desk = Desk(project)
    said = [row for row in stored(project) if row.undone_at is None and row.answer == "no"]
    desk.undo(*(row.key for row in said))
    dataset, chosen = collect_answers(project)
    assert states(dataset) == {("t1", "sky"): "maybe"}
    assert chosen.empty


@on_sqlite
def test_there_is_nothing_to_export(project: Project, tmp_path: Path) -> None:
    with pytest.raises(
        ComesError, match="project has no answers yet. Collect some: comes annotate"
    ):
        export_answers(project, tmp_path / "answers.csv")
    say(project, {("t0", "sky"): "skip"})
    with pytest.raises(ComesError, match="project has no answers yet"):
        export_answers(project, tmp_path / "answers.csv")
    assert not (tmp_path / "answers.csv").exists()


@on_sqlite
def test_an_export_replaces_the_last_one(project: Project, tmp_path: Path) -> None:
    say(project, {("t0", "sky"): "no"})
    (tmp_path / "answers.csv").write_text("old")
    export_answers(project, tmp_path / "answers.csv")
    assert states(read_dataset(tmp_path / "answers.csv")) == {("t0", "sky"): "no"}
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
        dataset = read_dataset(tmp_path / f"answers{ending}")
        assert (dataset.items, dataset.label_names) == (AWKWARD, AWKWARD[::-1])
        assert states(dataset) == said


# Import


def label_studio(folder: Path, choices: dict[str, list[str]]) -> Path:
    def task(item: str, ticked: list[str]) -> dict[str, Any]:
        result = {"type": "choices", "from_name": "not", "value": {"choices": ticked}}
        done = {"result": [result], "was_cancelled": False}
        return {"id": 1, "data": {"image": item}, "annotations": [done]}

    path = folder / "export.json"
    path.write_text(json.dumps([task(*pair) for pair in choices.items()]))
    return path


def prodigy(folder: Path, lines: list[tuple[str, str, str]]) -> Path:
    path = folder / "export.jsonl"
    rows = [{"text": item, "label": label, "answer": answer} for item, label, answer in lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_label_studio_says_is_surely_not(project: Project, tmp_path: Path) -> None:
    path = label_studio(tmp_path, {"t1": ["sea"], "t3": ["sky", "sea"]})
    counts = import_answers(project, path, complementary=True)
    assert counts == {"taken": 3, "already_answered": 0}
    dataset, _ = collect_answers(project)
    expected = {("t1", "sea"): "no", ("t3", "sky"): "no", ("t3", "sea"): "no"}
    assert states(dataset) == expected
    assert {row.annotator for row in stored(project)} == {"(export.json)"}


@on_sqlite
def test_what_label_studio_says_is_possible(project: Project, tmp_path: Path) -> None:
    import_answers(project, label_studio(tmp_path, {"t1": ["sea"]}))
    assert states(collect_answers(project)[0]) == {("t1", "sea"): "maybe", ("t1", "sky"): "no"}


@on_sqlite
def test_what_prodigy_says(project: Project, tmp_path: Path) -> None:
    lines = [("t0", "sky", "reject"), ("t0", "sea", "accept"), ("t2", "sea", "ignore")]
    assert import_answers(project, prodigy(tmp_path, lines))["taken"] == 2
    expected = {("t0", "sky"): "no", ("t0", "sea"): "maybe"}
    assert states(collect_answers(project)[0]) == expected


@on_sqlite
def test_what_a_table_says(project: Project, tmp_path: Path) -> None:
    table = pd.DataFrame({"item": ["t0", "t1"], "label": ["sky", "sea"], "answer": ["no", "maybe"]})
    table.to_csv(tmp_path / "long.csv", index=False)
    assert import_answers(project, tmp_path / "long.csv")["taken"] == 2
    assert states(collect_answers(project)[0]) == {("t0", "sky"): "no", ("t1", "sea"): "maybe"}


@on_sqlite
def test_the_field_that_names_the_item(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    row = {"text": "a long text", "meta": "t1", "label": "sky", "answer": "reject"}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(ComesError, match=r"answers to 'a long text'.*name the field \(--item\)"):
        import_answers(project, path)
    import_answers(project, path, item="meta")
    assert states(collect_answers(project)[0]) == {("t1", "sky"): "no"}


def test_an_imported_question_is_not_asked_again(project: Project, tmp_path: Path) -> None:
    ann = Desk(project)
    held = ann.ask()[0]
    lines = [(held["name"], held["class"], "reject")]
    import_answers(project, prodigy(tmp_path, lines))
    assert held not in ann.ask()
    assert ann.answer_all() == 7
    assert ann.progress() == {"total": 8, "done": 8, "mine": 7}


def test_questions_that_were_not_drawn_are_added(
    projects: Projects, tmp_path: Path, database: str | None
) -> None:
    project = projects.make(10, ["sky"], rate=0.1, database=database)
    [drawn] = [pair_of(project, card) for card in all_cards(project)]
    lines = [(f"t{k}", "sky", "reject") for k in range(10)]
    assert import_answers(project, prodigy(tmp_path, lines))["taken"] == 10
    assert len(all_cards(project)) == 10
    assert len(states(collect_answers(project)[0])) == 10
    assert drawn in states(collect_answers(project)[0])
    assert Desk(project).ask() == []


def test_an_imported_answer_leaves_the_card_of_a_second_person_open(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(60, ["sky"], overlap=1.0)
    path = prodigy(tmp_path, [(f"t{k}", "sky", "reject") for k in range(60)])
    assert import_answers(project, path) == {"taken": 60, "already_answered": 0}
    assert {(card.turn, card.is_done) for card in all_cards(project)} == {(0, True), (1, False)}
    assert import_answers(project, path) == {"taken": 0, "already_answered": 60}


def test_what_has_an_answer_is_left_alone(project: Project, tmp_path: Path) -> None:
    say(project, {("t0", "sky"): "maybe"})
    path = prodigy(tmp_path, [("t0", "sky", "reject"), ("t1", "sky", "reject")])
    assert import_answers(project, path) == {"taken": 1, "already_answered": 1}
    assert import_answers(project, path) == {"taken": 0, "already_answered": 2}
    assert states(collect_answers(project)[0]) == {("t0", "sky"): "maybe", ("t1", "sky"): "no"}


def test_an_imported_answer_that_a_model_chose_counts_for_no_risk_unless_it_was_drawn(
    projects: Projects, tmp_path: Path, database: str | None
) -> None:
    project = projects.make(10, ["sky"], rate=0.1, database=database)
    [drawn] = [pair_of(project, card) for card in all_cards(project)]
    other = next(f"t{k}" for k in range(10) if f"t{k}" != drawn[0])
    path = prodigy(tmp_path, [(drawn[0], "sky", "reject"), (other, "sky", "reject")])
    import_answers(project, path, chosen_by_model=True)
    dataset, chosen = collect_answers(project)
    assert states(dataset) == {drawn: "no"}
    assert chosen.to_dict("records") == [
        {"item": other, "label": "sky", "answer": "no", "source": "model"}
    ]


@on_sqlite
def test_unknown_items_and_classes_change_nothing(project: Project, tmp_path: Path) -> None:
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


def test_what_one_project_exports_another_imports(projects: Projects, tmp_path: Path) -> None:
    one = projects.make(4)
    say(one, SAID)
    for ending in (".csv", ".parquet", ".jsonl"):
        path = tmp_path / f"answers{ending}"
        export_answers(one, path)
        other = projects.make(4, name=f"other-{ending[1:]}")
        assert import_answers(other, path)["taken"] == 3
        assert states(collect_answers(other)[0]) == STANDS


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


@settings(max_examples=20, deadline=None)
@given(steps=STEPS)
def test_the_export_is_what_a_plain_dictionary_predicts(steps: list[Step]) -> None:
    """Two people answer, skip and take back in any order, with half of all asked twice."""
    with tempfile.TemporaryDirectory() as folder:
        projects = Projects(Path(folder))
        project = projects.make(3, ["sky", "sea"], overlap=0.5)
        try:
            expected = play(project, steps)
            again = projects.keep(open_project(project.folder))
            assert states(collect_answers(again)[0]) == expected
            if expected:
                export_answers(again, Path(folder) / "answers.csv")
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    assert states(read_dataset(Path(folder) / "answers.csv")) == expected
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


@on_sqlite
def test_the_matrix_has_the_shape_of_the_project_without_answers(project: Project) -> None:
    dataset, chosen = collect_answers(project)
    np.testing.assert_array_equal(dataset.known_candidates(), np.ones((4, 2), dtype=bool))
    assert chosen.empty


def test_ticks_of_another_tool_say_nothing_of_the_prior(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(50, ["sky"], rate=0.1)
    drawn = {pair_of(project, card)[0] for card in all_cards(project)}
    lines = [(f"t{k}", "sky", "reject") for k in range(50) if f"t{k}" not in drawn]
    import_answers(project, prodigy(tmp_path, lines))
    [row] = summarise(project).classes
    assert (row.n_excluded, row.prior_bound) == (45, 1.0)
