"""Answers out of a project and into one: what is exported is what was said."""

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comes.annotate import (
    Project,
    add_chosen_cards,
    add_random_cards,
    collect_answers,
    export_answers,
    import_answers,
    open_project,
)
from comes.annotate.cards import Answer, SentAnswer
from comes.datasets import open_dataset
from comes.errors import ComesError, ComesWarning
from projects import (
    Card,
    Desk,
    Pair,
    Projects,
    all_cards,
    by_person,
    chosen_pairs,
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
            assert states(collect_answers(again)) == expected
            if expected:
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


def test_the_matrix_has_the_shape_of_the_project_without_answers(projects: Projects) -> None:
    project = projects.make(4)
    dataset = collect_answers(project)
    np.testing.assert_array_equal(dataset.known_candidates(), np.ones((4, 2), dtype=bool))
