"""What to ask next, as a workflow: items by name, nothing twice, and what cannot be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.answers import AnswerRates, Answers, State
from comes.answers.questions import expected_bits
from comes.datasets import Dataset, make_scenes
from comes.errors import ComesError
from comes.generation import case_b, simulate_answers
from comes.workflows.predict import list_questions, predict_items, read_asked

N = 80
ITEMS = [f"scene {row}" for row in range(N)]
SCENES = replace(make_scenes(n=N), items=ITEMS)
SAID = simulate_answers(SCENES.known_relevant(), asked_rate=0.7, seed=0).rename_labels(
    SCENES.label_names
)


@pytest.fixture(scope="module")
def model() -> CandidateClassifier:
    settings: dict[str, Any] = {"hidden": 8, "n_networks": 1, "epochs": 1, "random_state": 0}
    clf = CandidateClassifier(rates={"no": 0.8, "yes": 0.6}, **settings)
    return clf.fit(SCENES.X, answers=SAID)


def asked_of(rows: list[int]) -> Dataset:
    """Return what was said of some items, in another order than theirs."""
    names = [ITEMS[row] for row in rows]
    return Dataset(None, SCENES.label_names, answers=SAID[rows], items=names)


def test_answers_are_matched_by_item() -> None:
    rows = [5, 3, 60]
    answers = read_asked(asked_of(rows), SCENES.label_names, ITEMS)
    assert answers is not None
    np.testing.assert_array_equal(answers.codes[rows], SAID.codes[rows])
    others = np.delete(answers.codes, rows, axis=0)
    assert (others == State.NOT_ASKED).all()


def test_a_model_of_a_table_asks_next(model: CandidateClassifier, tmp_path: Path) -> None:
    file, asked = tmp_path / "next.csv", asked_of(list(range(N)))
    predict_items(model, SCENES, ask_next=file, n_questions=40, asked=asked)
    written = pd.read_csv(file, dtype={"item": str, "label": str})
    assert list(written.columns) == ["item", "label", "probability", "bits"] and len(written) == 40
    for item, label in zip(written["item"], written["label"], strict=True):
        place = ITEMS.index(item), SCENES.label_names.index(label)
        assert SAID.codes[place] == State.NOT_ASKED


def test_bits_are_those_of_people_where_these_are_known(model: CandidateClassifier) -> None:
    eta = model.predict_proba(SCENES.X)
    assert model.no_rate_ is not None and model.yes_rate_ is not None
    rates = AnswerRates(model.no_rate_, model.yes_rate_)
    nobody = Answers.from_codes(np.zeros_like(SAID.codes))
    ticked = Answers.from_codes(nobody.codes, "positives")  # whose rates are not those of answers
    plain = expected_bits(eta)
    told = expected_bits(eta, rates)
    for asked, bits in ((nobody, told), (ticked, plain), (None, told)):
        table = list_questions(model, eta, ITEMS, 10, asked)
        rows = [ITEMS.index(item) for item in table["item"]]
        labels = [SCENES.label_names.index(label) for label in table["label"]]
        np.testing.assert_allclose(table["bits"], bits[rows, labels], atol=1e-4)
        best = bits.argmax(axis=0)  # ten questions, ten labels: the best of each
        assert rows == best[labels].tolist()


def test_rates_of_candidates_are_not_those_of_people() -> None:
    settings: dict[str, Any] = {"epochs": 1, "hidden": 8, "random_state": 0}
    settings |= {"rates": {"exclude": 0.5}}
    candidates = case_b(SCENES.known_relevant(), exclude_rate=0.5)
    model = CandidateClassifier(class_prior=[0.22] * 10, **settings).fit(SCENES.X, candidates)
    assert model.no_rate_ is not None
    eta = model.predict_proba(SCENES.X)
    table, bits = list_questions(model, eta, ITEMS, 10, None), expected_bits(eta)
    rows = [ITEMS.index(item) for item in table["item"]]
    labels = [int(label) for label in table["label"]]
    np.testing.assert_allclose(table["bits"], bits[rows, labels], atol=1e-4)


def test_what_cannot_be_is_said(model: CandidateClassifier, tmp_path: Path) -> None:
    file = tmp_path / "next.csv"
    with pytest.raises(ComesError, match="questions name their items, and these have no names"):
        predict_items(model, replace(SCENES, items=None), ask_next=file)
    other = replace(asked_of([0, 1]), items=["another", "one more"])
    with pytest.raises(ComesError, match="none of the items was asked about: .*'another'"):
        predict_items(model, SCENES, ask_next=file, asked=other)
    nameless = replace(asked_of([0, 1]), items=None)
    with pytest.raises(ComesError, match="matched by the names of the items"):
        predict_items(model, SCENES, ask_next=file, asked=nameless)
    everything = Answers.from_codes(np.ones_like(SAID.codes), label_names=SCENES.label_names)
    done = Dataset(None, SCENES.label_names, answers=everything, items=ITEMS)
    with pytest.raises(ComesError, match="nothing is left to ask"):
        predict_items(model, SCENES, ask_next=file, asked=done)
    with pytest.raises(ComesError, match="maps .* are of images"):
        predict_items(model, SCENES, page=tmp_path / "page", maps=True)
    with pytest.raises(ComesError, match="next.txt"):
        predict_items(model, SCENES, ask_next=tmp_path / "next.txt")
    assert not list(tmp_path.iterdir())


def test_answers_are_read_from_a_column_for_each_label(tmp_path: Path) -> None:
    words = np.array(["", "no", "yes", "maybe"])[SAID.codes[:3]]
    table = pd.DataFrame(words, columns=SCENES.label_names).assign(item=ITEMS[:3])
    table.to_csv(tmp_path / "answers.csv", index=False)
    answers = read_asked(tmp_path / "answers.csv", SCENES.label_names, ITEMS)
    assert answers is not None
    np.testing.assert_array_equal(answers.codes[:3], SAID.codes[:3])


def test_no_file_is_written_over_what_is_read_or_over_another(
    model: CandidateClassifier, tmp_path: Path
) -> None:
    asked = tmp_path / "answers.csv"
    asked.write_text("people's work")
    with pytest.raises(ComesError, match="is the file that is read"):
        predict_items(model, SCENES, ask_next=asked, asked=asked)
    with pytest.raises(ComesError, match="is the file that is read"):
        predict_items(model, SCENES, asked, ask_next=tmp_path / "next.csv", asked=asked)
    with pytest.raises(ComesError, match="two results would go to a.csv"):
        predict_items(model, SCENES, tmp_path / "a.csv", ask_next=tmp_path / "a.csv")
    assert asked.read_text() == "people's work" and len(list(tmp_path.iterdir())) == 1
