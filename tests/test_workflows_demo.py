"""The demo: what it trains on, the table that it writes, and that half a training is no result."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import comes.estimator
from comes.datasets import ReadOptions, open_dataset
from comes.errors import ComesError
from comes.workflows.demo import make_tickets, run_demo, write_tickets
from command_line import command_runner


class Learner:
    """Stands in for a classifier: it notes what it is fitted on."""

    seen: list[Any]
    interrupted = False

    def __init__(self, *settings: Any, **more: Any) -> None:
        self.history_ = SimpleNamespace(interrupted=self.interrupted)

    def fit(self, X: Any, labels: Any) -> "Learner":
        self.seen.append((X, labels))
        return self

    def decision_function(self, X: Any) -> Any:
        return np.random.default_rng(0).normal(size=(len(X), 6))


@pytest.fixture
def learner(monkeypatch: pytest.MonkeyPatch) -> type[Learner]:
    made = type("Fresh", (Learner,), {"seen": []})
    monkeypatch.setattr(comes.estimator, "CandidateClassifier", made)
    return made


def test_it_trains_on_answers_and_on_the_candidates_that_they_leave(
    learner: type[Learner], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = [row["title"] for row in run_demo(n=300, seed=3)]
    assert titles == ["answers, likelihood", "candidates, likelihood", "candidates, BCE"]
    table, relevant = make_tickets(300, 3)
    is_train = np.arange(300) % 3 != 0
    (X, answers), *others = learner.seen
    words = table[is_train].filter(like="is_").to_numpy()
    assert X["ticket_id"].tolist() == table["ticket_id"][is_train].tolist()
    assert not any(name.startswith("is_") for name in X.columns)
    np.testing.assert_array_equal(answers.confirmed, words == "yes")
    np.testing.assert_array_equal(answers.doubtful, words == "maybe")
    for _, candidates in others:
        np.testing.assert_array_equal(candidates, words != "no")
    assert not (answers.excluded & relevant[is_train]).any()
    run = command_runner(monkeypatch, capsys)
    shown = run("demo").stdout
    assert all(title in shown for title in titles) and len(shown.splitlines()) <= 12
    rows = json.loads(run("demo", "--json").stdout)
    assert set(rows[0]["metrics"]) >= {"ranking_loss", "mean_average_precision"}


def test_an_interrupted_training_is_no_row(
    learner: type[Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        run_demo(n=60)
    assert len(learner.seen) == 1


def test_the_written_table_is_read_as_answers_with_nothing_told_but_the_label_columns(
    tmp_path: Path,
) -> None:
    summary = write_tickets(tmp_path / "tickets.csv", n=300)
    _, relevant = make_tickets(300)
    tickets = open_dataset(str(tmp_path / "tickets.csv"), ReadOptions(labels=["is_*"]))
    answers = tickets.known_answers()
    assert answers.kind == "answers"
    assert summary["tickets"] == len(relevant) == 300
    assert not (answers.excluded & relevant).any() and not (answers.confirmed & ~relevant).any()
    assert answers.asked is not None and 0.2 < answers.asked.mean() < 0.3
    assert tickets.items is not None and tickets.items[0] == "T-1000"


def test_tickets_of_a_seed_are_the_same_and_of_another_others() -> None:
    first, again, other = (make_tickets(50, seed)[0] for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert (first["body"] != other["body"]).any()


def test_a_table_is_not_written_to_a_folder_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="absent"):
        write_tickets(tmp_path / "absent" / "tickets.csv", n=10)
