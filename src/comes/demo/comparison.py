"""The main job on embedded data: candidate labels in, a table of what each method learned out."""

from typing import NamedTuple

from comes.answers import BoolMatrix
from comes.datasets import make_scenes
from comes.estimator import CandidateClassifier
from comes.generation import case_b
from comes.methods import METHODS, SUPERVISED
from comes.metrics import evaluate

EXCLUDE_RATE = 0.1
COMPARED = (
    SUPERVISED,
    *(name for name, family in METHODS.items() if family.is_ours and family.place is not None),
)


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
    n_scenes: int = 10000, epochs: int = 50, seed: int = 0, progress: bool | None = None
) -> list[DemoRow]:
    """Train on candidate labels of digit scenes, and once on the true ones, and test.

    Of the scenes that a digit is absent from, one in ten says so (case b); every other entry
    stays a candidate. Class priors are estimated from the candidates.

    Parameters
    ----------
    n_scenes : int
        To train on.
    epochs, seed : int
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    rows : list of DemoRow

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few scenes say little about class priors
    >>> [row.title for row in run_demo(n_scenes=60, epochs=1, progress=False)]
    ['true labels', 'BCE', 'COMES-HL', 'COMES-RL']
    """
    train, test = make_scenes("train", n_scenes, seed), make_scenes("test", 2000, seed)
    candidates = case_b(train.known_relevant(), EXCLUDE_RATE, seed)

    def train_and_test(title: str, method: str, labels: BoolMatrix) -> DemoRow:
        classifier = CandidateClassifier(
            method, epochs=epochs, random_state=seed, progress=progress
        ).fit(train.X, labels)
        if classifier.history_.interrupted:
            raise KeyboardInterrupt  # a table of half-trained models would mislead
        scores = classifier.decision_function(test.X)
        metrics = evaluate(scores, test.known_relevant(), classifier.cut_scores(scores))
        return DemoRow(title, metrics, classifier.history_.seconds)

    return [
        train_and_test("true labels", SUPERVISED, train.known_relevant()),
        *(train_and_test(METHODS[name].title, name, candidates) for name in COMPARED),
    ]
