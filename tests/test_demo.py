"""The demonstrations: what they train on, what they ask, and that half a training is no result."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import comes.annotate
from comes.annotate import RobotReport, collect_answers
from comes.answers import Answers
from comes.datasets import make_scenes
from comes.demo import annotate_by_robots, circle, comparison, make_project, run_demo
from comes.errors import ComesError
from comes.generation import simulate_answers
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


def test_an_interrupted_training_is_no_row(
    learner: type[Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        run_demo(n_scenes=60)
    answers = Answers.from_candidates(np.ones((4, 10)))
    with pytest.raises(KeyboardInterrupt):
        circle._train_and_test(np.zeros((4, 256)), answers, 1, 0, False)
    assert len(learner.seen) == 2


def test_the_pictures_are_dark_digits_on_white(tmp_path: Path, projects: Projects) -> None:
    project, truth = make_project(tmp_path, n_scenes=20)
    projects.keep(project)
    assert truth.items is not None
    with Image.open(tmp_path / "pictures" / truth.items[0]) as picture:
        assert picture.size == (320, 320)
        assert np.asarray(picture).mean() > 128


def test_robots_say_no_only_where_it_is_true(tmp_path: Path, projects: Projects) -> None:
    project, truth = make_project(tmp_path, n_scenes=20)
    projects.keep(project)
    (report,) = circle._answer_cards(project, truth, 1, False)
    assert len(report.acknowledged) == 20
    answers = collect_answers(project)
    assert answers.items is not None and truth.items is not None
    rows = [truth.items.index(item) for item in answers.items]
    excluded = ~answers.known_candidates()
    assert excluded.any() and not (excluded & truth.known_relevant()[rows]).any()


def test_a_robot_in_trouble_ends_the_demonstration(
    tmp_path: Path, projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, truth = make_project(tmp_path, n_scenes=20)
    projects.keep(project)
    reports = [RobotReport(), RobotReport(error="the server is gone")]
    monkeypatch.setattr(comes.annotate, "run_robots", lambda *_, **__: reports)
    with pytest.raises(ComesError, match="a robot could not answer: the server is gone"):
        circle._answer_cards(project, truth, 2, False)


def test_the_answers_are_trained_on_and_what_is_left_without_who_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Answers, int | None]] = []

    def train(X: Any, answers: Answers, epochs: int | None, *_: Any) -> Any:
        seen.append((answers, epochs))
        return len(seen) / 10, np.full(10, 0.5)

    monkeypatch.setattr(circle, "_train_and_test", train)
    found = annotate_by_robots(robots=2, n_scenes=40, seed=2, progress=False)
    relevant = make_scenes("train", 40, 2).known_relevant()
    (answers, epochs), (candidates, more_epochs) = seen
    assert answers.asked is not None and answers.asked.sum() == found.answers == 40
    np.testing.assert_array_equal(answers.excluded, answers.asked & ~relevant)
    np.testing.assert_array_equal(answers.doubtful, answers.asked & relevant)
    assert answers.said is not None and len(answers.said) == 40
    assert set(answers.said.people) <= {"robot 1", "robot 2"}
    assert candidates.asked is None
    np.testing.assert_array_equal(candidates.candidates, answers.candidates)
    assert epochs is more_epochs is None  # the estimator's own
    assert found.excluded == answers.excluded.sum() > 0
    assert (found.average_precision, found.on_candidates) == (0.1, 0.2)
    assert found.prior_error == pytest.approx(np.abs(0.5 - relevant.mean(axis=0)).mean())
