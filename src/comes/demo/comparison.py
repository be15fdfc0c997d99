"""The main job on embedded data: answers in, a table of what each learned out."""

from typing import Any, NamedTuple

from comes.answers import Answers
from comes.datasets import make_scenes
from comes.estimator import CandidateClassifier
from comes.generation import simulate_answers
from comes.methods import DEFAULT, METHODS, SUPERVISED
from comes.metrics import evaluate

ASKED_RATE = 0.1  # of the pairs of scene and digit
SURE_RATE = 0.8


class DemoRow(NamedTuple):
    """What one training reached on the test scenes.

    Examples
    --------
    >>> DemoRow("BCE", {"average_precision": 0.8}, seconds=1.5).title
    'BCE'
    """

    title: str
    metrics: dict[str, float]
    seconds: float


def run_demo(
    n_scenes: int = 8000,
    epochs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> list[DemoRow]:
    """Train on answers about digit scenes, on what is left of them, and on the truth; test.

    Of all pairs of scene and digit, one in ten is asked about, and four of five answers are sure.
    Candidates are what nobody said no to; rates and class priors are estimated.

    Parameters
    ----------
    n_scenes : int
        To train on.
    epochs : int, optional
        By default as many as the estimator finds right.
    seed : int
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    rows : list of DemoRow

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few scenes say little about class priors
    >>> for row in run_demo(n_scenes=60, epochs=1, progress=False):
    ...     print(row.title)
    true labels, BCE
    no, yes and maybe, likelihood
    no and maybe, likelihood
    candidates, likelihood
    candidates, BCE
    """
    train, test = make_scenes("train", n_scenes, seed), make_scenes("test", 2000, seed)
    answers = simulate_answers(
        train.known_relevant(),
        asked_rate=ASKED_RATE,
        no_rate=SURE_RATE,
        yes_rate=SURE_RATE,
        seed=seed,
    )
    without_yes = Answers(no=answers.excluded, maybe=answers.confirmed | answers.doubtful)

    def train_and_test(given: str, method: str, labels: Any) -> DemoRow:
        classifier = CandidateClassifier(
            method, epochs=epochs, random_state=seed, verbose=-1 if progress is False else 0
        ).fit(train.X, labels)
        if classifier.history_.interrupted:
            raise KeyboardInterrupt  # a table of half-trained models would mislead
        scores = classifier.decision_function(test.X)
        metrics = evaluate(scores, test.known_relevant(), classifier.cut_scores(scores))
        title = f"{given}, {METHODS[method].title}"
        return DemoRow(title, metrics, classifier.history_.seconds)

    return [
        train_and_test("true labels", SUPERVISED, train.known_relevant()),
        train_and_test("no, yes and maybe", DEFAULT, answers),
        train_and_test("no and maybe", DEFAULT, without_yes),
        train_and_test("candidates", DEFAULT, answers.candidates),
        train_and_test("candidates", SUPERVISED, answers.candidates),
    ]
