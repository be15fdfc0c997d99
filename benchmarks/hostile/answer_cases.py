"""Answers and data sets in Python: contradictions, names, shapes; what is drawn from the truth."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from comes import Answers
from comes.answers import (
    AnswerRates,
    LongAnswers,
    answer_evidence,
    choose_questions,
    from_complementary,
    from_sets,
    posterior_probability,
)
from comes.answers.convert import (
    as_candidates,
    as_relevant,
    check_relevant_inside,
    match_names,
    to_sets,
)
from comes.datasets import (
    Dataset,
    ReadOptions,
    combine_answers,
    join_features,
    join_rows,
    make_scenes,
    open_dataset,
    write_dataset,
)
from comes.datasets.predictions import prediction_table
from comes.generation import (
    case_a,
    case_b,
    generate,
    independent,
    instance_dependent,
    simulate_answers,
)
from hostile.casework import CASES, Case, Place, handled, said
from hostile.materials import LABELS, ROWS, answers, candidates, features, frame, relevant

AREA = "answers and data in Python"
NO = np.array([[1, 0], [0, 0], [1, 1]])

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "no and yes about one pair": (lambda: Answers(no=NO, yes=NO), r"row 0|no.*yes|yes.*no"),
    "masks of other shapes": (lambda: Answers(no=NO, yes=NO[:2]), r"shape|row"),
    "a mask of counts": (lambda: Answers(no=NO * 2), r"0 or 1|2"),
    "a mask with an nan": (lambda: Answers(no=np.where(NO, np.nan, 0)), r"0 or 1|nan"),
    "nothing said": (lambda: Answers(yes=NO), r"no="),
    "a mask of words": (lambda: Answers(no=np.array([["a", "b"]])), r"0 or 1|number|a"),
    "a mask of one axis": (lambda: Answers(no=NO[0]), r"matrix|shape|axis|dim|rows"),
    "no rows": (lambda: Answers(no=NO[:0]), r"row"),
    "names for three of two labels": (
        lambda: Answers(no=NO, label_names=list("abc")),
        r"name|label|3",
    ),
    "names that are the same": (lambda: Answers(no=NO, label_names=["a", "a"]), r"'a'"),
    "codes that are no state": (lambda: Answers.from_codes(NO + 7), r"7|8|0 not asked"),
    "a chosen mark without who was asked": (lambda: Answers(no=NO, chosen=NO), r"chosen"),
    "a row beyond the shape": (
        lambda: Answers.from_long(LongAnswers.read([9], [0], ["no"], ["Ann"]), (2, 2)),
        r"row|9|shape",
    ),
    "frames of other labels": (
        lambda: Answers(
            no=pd.DataFrame(NO, columns=["a", "b"]), yes=pd.DataFrame(NO * 0, columns=["a", "c"])
        ),
        r"'b'|'c'",
    ),
    "sets with a name that is not listed": (lambda: from_sets([["a"], ["b"]], ["a"]), r"'b'"),
    "one string in place of sets": (lambda: from_sets("sky;sea"), r"set|list|string"),
    "sets for other names": (lambda: to_sets(NO, ["a"]), r"label|name|2"),
    "names of which some agree": (lambda: match_names(["a", "b"], ["a", "c"]), r"'b'|'c'"),
    "candidates as a cube": (lambda: as_candidates(np.zeros((2, 2, 2))), r"matrix|shape|dim"),
    "truth of shares": (lambda: as_relevant([[0.2, 1]]), r"0 or 1|0\.2"),
    "complementary labels of words": (lambda: from_complementary([["no", "yes"]]), r"0 or 1|no"),
    "truth outside the candidates": (
        lambda: check_relevant_inside(np.array([[True]]), np.array([[False]]), ["sea"]),
        r"sea",
    ),
    "questions of no number": (lambda: choose_questions(np.full((2, 2), 0.5), 0), r"count|0"),
    "probabilities above one": (
        lambda: choose_questions(np.full((2, 2), 5.0), 1),
        r"probabilit|\[0, 1\]",
    ),
    "rates above one": (
        lambda: AnswerRates(np.array([2.0, 0.5]), np.array([0.5, 0.5])),
        r"no_rate|\[0, 1\]",
    ),
    "rates of other labels": (
        lambda: answer_evidence(answers(), AnswerRates(np.ones(2) / 2, np.ones(2) / 2)),
        r"label|rate|4|2",
    ),
    "evidence of another shape": (
        lambda: posterior_probability(np.zeros((2, 2)), np.zeros(3)),
        r"shape",
    ),
    # data sets
    "a data set with fewer rows": (
        lambda: Dataset(features()[1:], LABELS, candidates=candidates()),
        r"row|59|60",
    ),
    "a data set with other names": (
        lambda: Dataset(features(), ["a"], candidates=candidates()),
        r"label|name|4",
    ),
    "a data set without anything": (
        lambda: Dataset(features(), LABELS),
        r"candidates|relevant|labels|answers",
    ),
    "a data set of items that repeat": (
        lambda: Dataset(features(), LABELS, candidates=candidates(), items=["a"] * ROWS),
        r"'a'|item",
    ),
    "a data set that loses the truth": (
        lambda: Dataset(features(), LABELS, candidates=~relevant(), relevant=relevant()),
        r"candidate",
    ),
    "a field that a reading does not have": (lambda: open_dataset("wide.csv", label="x"), r"label"),
    "a reading of a word where names are wanted": (
        lambda: open_dataset("wide.csv", labels="has_*"),
        r"labels|list|str",
    ),
    "a kind of labels that does not exist": (
        lambda: ReadOptions(labels_are="truth"),
        r"labels_are|candidates",
    ),
    "features for other items": (
        lambda: join_features(
            Dataset(None, LABELS, answers=answers(), items=[f"p{k}" for k in range(ROWS)]),
            features()[:2],
            ["a", "b"],
        ),
        r"p0|item",
    ),
    "rows of other labels": (
        lambda: join_rows(
            Dataset(features(), LABELS, candidates=candidates()),
            Dataset(features(), list("abcd"), candidates=candidates()),
        ),
        r"label|sea|'a'",
    ),
    "answers of a state that is none": (
        lambda: combine_answers(["a"], ["sea"], ["perhaps"]),
        r"perhaps",
    ),
    "answers of other lengths": (
        lambda: combine_answers(["a", "b"], ["sea"], ["no"]),
        r"length|same|2",
    ),
    "a table of predictions of other names": (
        lambda: prediction_table(np.ones((2, 2)), np.ones((2, 2)), ["a"]),
        r"label|shape|name",
    ),
    "scenes of a split that does not exist": (lambda: make_scenes("dev"), r"train|test"),
    "no scenes": (lambda: make_scenes(n=0), r"n\b|scene|1"),
    "a data set written to nowhere": (
        lambda: write_dataset(Dataset(features(), LABELS, candidates=candidates()), "no/d.csv"),
        r"no/|folder",
    ),
    # generation
    "a flip rate above one": (lambda: case_a(relevant(), flip_rate=1.2), r"flip_rate|rate"),
    "an exclude rate below zero": (
        lambda: case_b(relevant(), exclude_rate=-0.1),
        r"exclude_rate|rate",
    ),
    "an exclude rate that is no number": (lambda: independent(relevant(), np.nan), r"rate"),
    "rates for two of four labels": (lambda: case_b(relevant(), [0.1, 0.2]), r"rate|label|4"),
    "truth of counts": (lambda: case_b(relevant() * 2), r"0 or 1|2"),
    "a case that does not exist": (lambda: generate("c", relevant()), r"'c'|case"),
    "a case that needs features": (lambda: generate("instance", relevant()), r"X|feature"),
    "features of fewer rows": (lambda: instance_dependent(relevant(), features()[:3]), r"row"),
    "a strength that is no number": (
        lambda: instance_dependent(relevant(), features(), strength=np.inf),
        r"strength",
    ),
    "answers at a rate of two": (lambda: simulate_answers(relevant(), asked_rate=2), r"asked_rate"),
    "doubt that depends on no features": (
        lambda: simulate_answers(relevant(), doubt_strength=2.0),
        r"X|feature",
    ),
    "more people per pair than there are": (
        lambda: simulate_answers(relevant(), people={"Ann": (0.5, 0.5)}, people_per_pair=3),
        r"people",
    ),
    "a seed below zero": (lambda: case_b(relevant(), seed=-1), r"seed"),
}


for _name, (_call, _words) in CALLS.items():
    CASES.append(Case(AREA, _name, lambda _, call=_call: call(), "refused", _words))


@said(AREA, r"index|order|row")
def _answers_of_frames_in_another_order(_: Place) -> object:
    first = pd.DataFrame(NO, index=["x", "y", "z"])
    second = pd.DataFrame(NO * 0, index=["z", "y", "x"])
    return Answers(no=first, yes=second) and None


@handled(AREA)
def _a_dataset_is_read_back_as_it_was(_: Place) -> object:
    names = ["a;b", "c, d", 'quote "q"', "née"]
    dataset = Dataset(frame(), names, candidates=candidates())
    write_dataset(dataset, "d.npz")
    read = open_dataset("d.npz")
    return read.label_names == names and np.array_equal(read.known_candidates(), candidates())


@handled(AREA)
def _labels_with_separators_in_a_wide_csv(_: Place) -> object:
    names = ["a;b", "c, d", 'quote "q"', "née"]
    write_dataset(Dataset(frame(), names, candidates=candidates()), "d.csv")
    read = open_dataset("d.csv")
    return read.label_names == names and np.array_equal(read.known_candidates(), candidates())


@said(AREA, r"separator|;|a;b|list")
def _labels_with_separators_in_a_column_of_names(_: Place) -> object:
    names = ["a;b", "b", "c", "d"]
    dataset = Dataset(frame(), names, candidates=candidates())
    write_dataset(dataset, "d.csv", form="names")
    read = open_dataset("d.csv")
    same = read.label_names == names and np.array_equal(read.known_candidates(), candidates())
    return "list" if same else None


@handled(AREA)
def _names_that_are_numbers(_: Place) -> object:
    return Answers(no=NO, label_names=[1, 2]).label_names == ["1", "2"]


@handled(AREA)
def _one_person_who_says_two_things_is_in_doubt(_: Place) -> object:
    said_twice = LongAnswers.read([0, 0], [0, 0], ["no", "yes"], ["Ann", "Ann"])
    return Answers.from_long(said_twice, (1, 1)).doubtful.all()


@handled(AREA)
def _more_questions_than_there_are_pairs(_: Place) -> object:
    return len(choose_questions(np.full((2, 2), 0.5), 9).row) == 4
