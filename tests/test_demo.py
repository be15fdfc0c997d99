"""The demonstrations: what they train on, what they ask, and that half a training is no result."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import comes.annotate
from comes.annotate import RobotReport, collect_answers
from comes.answers import Answers
from comes.datasets import ReadOptions, make_scenes, open_dataset
from comes.demo import (
    annotate_by_robots,
    circle,
    comparison,
    make_drawn_project,
    make_project,
    make_tickets,
    run_demo,
    write_tickets,
)
from comes.errors import ComesError
from comes.generation import simulate_answers
from command_line import command_runner
from projects import Projects


class Learner:
    """Stands in for a classifier: it notes what it is fitted on."""

    seen: list[Any]
    interrupted = False

    def __init__(self, *settings: Any, **more: Any) -> None:
        self.history_ = SimpleNamespace(interrupted=self.interrupted, seconds=1.0)

    def fit(self, X: Any, labels: Any) -> "Learner":
        self.seen.append(labels)
        return self

    def decision_function(self, X: Any) -> Any:
        return np.random.default_rng(0).normal(size=(len(X), 10))

    def cut_scores(self, scores: Any) -> Any:
        return scores > 0

    def score(self, X: Any, relevant: Any) -> float:
        return 0.5


@pytest.fixture
def learner(monkeypatch: pytest.MonkeyPatch) -> type[Learner]:
    """The classifier of all demonstrations."""
    made = type("Fresh", (Learner,), {"seen": []})
    for module in (circle, comparison):
        monkeypatch.setattr(module, "CandidateClassifier", made)
    return made


def test_one_row_is_of_true_labels_and_the_others_of_the_same_answers(
    learner: type[Learner],
) -> None:
    rows = run_demo(n_scenes=60, seed=3)
    assert [row.title.partition(",")[0] for row in rows] == [
        *("true labels", "no", "no and maybe", "candidates", "candidates")
    ]
    truth, answers, without_yes, *candidates = learner.seen
    relevant = make_scenes("train", 60, 3).known_relevant()
    np.testing.assert_array_equal(truth, relevant)
    drawn = simulate_answers(relevant, asked_rate=0.1, no_rate=0.8, yes_rate=0.8, seed=3)
    np.testing.assert_array_equal(answers.codes, drawn.codes)
    np.testing.assert_array_equal(without_yes.asked, drawn.asked)
    np.testing.assert_array_equal(without_yes.excluded, drawn.excluded)
    assert not without_yes.confirmed.any()
    for own in candidates:
        np.testing.assert_array_equal(own, drawn.candidates)


def test_the_command_prints_a_table_or_json(
    learner: type[Learner], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = command_runner(monkeypatch, capsys)
    short = ("demo", "--scenes", "40", "--epochs", "1")
    table = run(*short).stdout
    titles = [
        "true labels, BCE",
        "no, yes and maybe, likelihood",
        "no and maybe, likelihood",
        "candidates, likelihood",
        "candidates, BCE",
    ]
    for title in (*titles, "mAP ↑"):
        assert title in table
    rows = json.loads(run(*short, "--json").stdout)
    assert [row["title"] for row in rows] == titles
    assert set(rows[0]["metrics"]) >= {"ranking_loss", "mean_average_precision"}


def test_an_interrupted_training_is_no_row(
    learner: type[Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        run_demo(n_scenes=60)
    answers = Answers.from_candidates(np.ones((4, 10)))
    with pytest.raises(KeyboardInterrupt):
        circle._train_and_test(np.zeros((4, 256)), answers, "likelihood", 1, 0, False)
    assert len(learner.seen) == 2


def test_the_pictures_are_dark_digits_on_light_tiles(tmp_path: Path, projects: Projects) -> None:
    project, truth = make_project(tmp_path, n_scenes=20)
    projects.keep(project)
    assert truth.items is not None
    with Image.open(tmp_path / "pictures" / truth.items[0]) as picture:
        assert picture.size == (320, 320)
        colours = np.asarray(picture).reshape(-1, 3)
        assert colours.mean() > 128
        assert len({tuple(colour) for colour in colours.tolist()}) > 4
        dark = (colours.max(axis=1) < 60).mean()
        assert 0.02 < dark < 0.5


def test_drawn_scenes_show_what_the_truth_says(tmp_path: Path, projects: Projects) -> None:
    """A scene drawn with and without one thing differs, and the truth names the thing."""
    project, truth = make_drawn_project(tmp_path, 24, seed=3)
    projects.keep(project)
    relevant = truth.known_relevant()
    assert relevant.any(axis=0).all() and not relevant.all(axis=0).any()
    sun = truth.label_names.index("sun")
    for name, has_sun in zip(truth.items or [], relevant[:, sun], strict=True):
        with Image.open(tmp_path / "pictures" / name) as picture:
            assert picture.size == (640, 480)
            red, green, blue = np.asarray(picture)[:240].reshape(-1, 3).astype(int).T
        yellow = (abs(red - 255) < 9) & (abs(green - 214) < 9) & (abs(blue - 80) < 16)
        assert (yellow.sum() > 200) == has_sun


@pytest.mark.long
def test_robots_are_never_wrong_and_sure_four_times_in_five(
    tmp_path: Path, projects: Projects
) -> None:
    project, truth = make_project(tmp_path, n_scenes=100)
    projects.keep(project)
    (report,) = circle._answer_cards(project, truth, 1, 0, False)
    assert len(report.acknowledged) == 100
    said = collect_answers(project)
    assert said.items is not None and truth.items is not None
    relevant = truth.known_relevant()[[truth.items.index(item) for item in said.items]]
    answers = said.known_answers()
    assert answers.excluded.any() and not (answers.excluded & relevant).any()
    assert answers.confirmed.any() and not (answers.confirmed & ~relevant).any()
    assert 0.65 < 1 - answers.doubtful.sum() / 100 < 0.95


def test_a_robot_in_trouble_ends_the_demonstration(
    tmp_path: Path, projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, truth = make_project(tmp_path, n_scenes=20)
    projects.keep(project)
    reports = [RobotReport(), RobotReport(error="the server is gone")]
    monkeypatch.setattr(comes.annotate, "run_robots", lambda *_, **__: reports)
    with pytest.raises(ComesError, match="a robot could not answer: the server is gone"):
        circle._answer_cards(project, truth, 2, 0, False)


def test_the_answers_are_trained_on_and_what_is_left_without_who_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Answers, str, int | None]] = []

    def train(X: Any, answers: Answers, method: str, epochs: int | None, *_: Any) -> Any:
        seen.append((answers, method, epochs))
        return len(seen) / 10, np.full(10, 0.5), 1.0

    monkeypatch.setattr(circle, "_train_and_test", train)
    told: list[str] = []
    learners = [("likelihood", "answers"), ("comes-hl", "candidates")]
    found = annotate_by_robots(
        robots=2, n_scenes=40, seed=2, progress=False, learners=learners, tell=told.append
    )
    relevant = make_scenes("train", 40, 2).known_relevant()
    (answers, first, epochs), (candidates, second, more_epochs) = seen
    assert (first, second) == ("likelihood", "comes-hl")
    assert answers.asked is not None and answers.asked.sum() == found.answers == 40
    assert not (answers.excluded & relevant).any() and not (answers.confirmed & ~relevant).any()
    assert answers.annotations is not None and len(answers.annotations) == 40
    assert set(answers.annotations.people) <= {"robot 1", "robot 2"}
    assert candidates.asked is None
    np.testing.assert_array_equal(candidates.candidates, answers.candidates)
    assert epochs is more_epochs is None  # the estimator's own
    assert found.said == {
        "no": answers.excluded.sum(),
        "yes": answers.confirmed.sum(),
        "maybe": answers.doubtful.sum(),
    }
    assert [row.average_precision for row in found.learned] == [0.1, 0.2]
    assert found.prior_error == pytest.approx(np.abs(0.5 - relevant.mean(axis=0)).mean())
    assert told == [
        "2 robots answer 40 cards ...",
        "likelihood is trained on answers ...",
        "COMES-HL is trained on candidates ...",
    ]


# Tickets


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
