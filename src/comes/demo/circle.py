"""From questions to a model, on the embedded digit scenes: annotate, export, fit, test."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.datasets.matrices import write_npz
from comes.demo.comparison import ASKED_RATE, SURE_RATE
from comes.demo.digit_pictures import save_digit_pictures
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.generation import simulate_answers
from comes.methods import DEFAULT, METHODS
from comes.priors import count_class_prior
from comes.progress import progress_bar

if TYPE_CHECKING:
    from comes.annotate import Project, RobotReport

SHOWN = 320  # pixels along a picture for people
THUMBNAIL = 32  # for robots, who do not look
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ON_ANSWERS, ON_CANDIDATES = "answers", "candidates"
LEARNERS = ((DEFAULT, ON_ANSWERS), (DEFAULT, ON_CANDIDATES))


class Learned(NamedTuple):
    """What a method learned from the answers, or from the candidates that they leave.

    Examples
    --------
    >>> Learned("likelihood", "answers", 0.93, 12.0).average_precision
    0.93
    """

    method: str
    given: str  # answers, or candidates: what is left if nobody knows who was asked
    average_precision: float
    seconds: float


class Circle(NamedTuple):
    """The outcome of going from questions to a model.

    Examples
    --------
    >>> circle = Circle(10, 10000, 20.0, {"no": 6200, "yes": 1800, "maybe": 2000}, 0.01, ())
    >>> circle.answers / circle.seconds
    500.0
    """

    robots: int
    answers: int
    seconds: float  # spent answering
    said: Mapping[str, int]  # how often no, yes and maybe
    prior_error: float  # of the class priors estimated from the answers, on average
    learned: Sequence[Learned]


def make_project(
    folder: Path,
    n_scenes: int,
    seed: int = 0,
    *,
    overlap: float = 0.0,
    database: str | None = None,
    side: int = SHOWN,
) -> "tuple[Project, Dataset]":
    """Make a project of pictures of digit scenes in a folder; return it with the truth.

    Parameters
    ----------
    folder : Path
        Gets the pictures, the classes and the project ``digits``.
    n_scenes, seed : int
    overlap : float
        Share of the cards that a second person is asked as well.
    database : str, optional
        Address of a PostgreSQL database; by default a file of SQLite.
    side : int
        Pixels along a picture; even.

    Returns
    -------
    project : comes.annotate.Project
    truth : Dataset
        Features and true labels of the scenes.

    Examples
    --------
    >>> project, truth = make_project(Path(tempfile.mkdtemp()), n_scenes=20)
    >>> project.name, project.count_cards(), len(truth)
    ('digits', 20, 20)
    >>> project.engine.dispose()
    """
    from comes.annotate import create_project

    scenes = make_scenes("train", n_scenes, seed)
    names = [f"scene-{number:05}.png" for number in range(n_scenes)]
    pictures = folder / "pictures"
    pictures.mkdir()
    save_digit_pictures(pictures, names, scenes.X, side, seed)
    rows = "\n".join(f"{k},a handwritten {word}" for k, word in enumerate(WORDS))
    (folder / "classes.csv").write_text(f"class,description\n{rows}\n", encoding="utf-8")
    project = create_project(
        folder / "digits",
        pictures,
        folder / "classes.csv",
        rate=ASKED_RATE,
        seed=seed,
        overlap=overlap,
        database=database,
    )
    return project, Dataset(
        scenes.X, scenes.label_names, relevant=scenes.known_relevant(), items=names
    )


def annotate_by_robots(
    robots: int,
    n_scenes: int = 10000,
    epochs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    *,
    learners: Sequence[tuple[str, str]] = LEARNERS,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Circle:
    """Let robots answer over HTTP, and train on what they said.

    Four of five times a robot is sure and says yes or no, which is then true; else it says maybe.

    Parameters
    ----------
    robots : int
        How many answer at the same time.
    n_scenes, seed : int
    epochs : int, optional
        By default as many as the estimator finds right.
    progress : bool, optional
        Show progress bars; by default if standard error is a terminal.
    learners : sequence of (method, "answers" or "candidates")
        What is trained: a method of `comes.methods.METHODS` on the answers, or on the candidates
        that they leave, which is what is known if who was asked is forgotten.
    tell : callable (sentence) -> None
        Called at the start of each stage with what begins.

    Returns
    -------
    circle : Circle

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few answers say little about class priors
    >>> circle = annotate_by_robots(robots=2, n_scenes=60, epochs=1, progress=False)
    >>> circle.answers, [0 < row.average_precision < 1 for row in circle.learned]
    (60, [True, True])
    """
    tell(f"{robots} robots answer {round(ASKED_RATE * n_scenes) * len(WORDS)} cards ...")
    with tempfile.TemporaryDirectory() as name:
        data, truth, reports, seconds = _annotate(Path(name), robots, n_scenes, seed, progress)
    answers = data.known_answers()
    given = {ON_ANSWERS: answers, ON_CANDIDATES: Answers.from_candidates(answers.candidates)}
    priors, learned = [], []
    for method, what in learners:
        tell(f"{METHODS[method].title} is trained on {what} ...")
        found, prior, taken = _train_and_test(data.X, given[what], method, epochs, seed, progress)
        learned.append(Learned(method, what, found, taken))
        priors.append(prior)
    relevant = truth.known_relevant()
    codes = answers.codes
    return Circle(
        robots=robots,
        answers=sum(len(report.acknowledged) for report in reports),
        seconds=seconds,
        said={s.word: int((codes == s).sum()) for s in (State.NO, State.YES, State.MAYBE)},
        prior_error=float(np.abs(priors[0] - count_class_prior(relevant)).mean()),
        learned=tuple(learned),
    )


def _annotate(
    home: Path, robots: int, n_scenes: int, seed: int, progress: bool | None
) -> "tuple[Dataset, Dataset, list[RobotReport], float]":
    """Make a project, have it answered, and read what was exported; return seconds, too."""
    from comes.annotate import export_answers

    project, truth = make_project(home, n_scenes, seed, side=THUMBNAIL)
    started = time.perf_counter()
    reports = _answer_cards(project, truth, robots, seed, progress)
    seconds = time.perf_counter() - started
    export_answers(project, home / "answers.parquet")
    project.engine.dispose()
    write_npz(truth, home / "X.npz")
    data = open_dataset(home / "answers.parquet", features=home / "X.npz")
    return data, truth, reports, seconds


def _answer_cards(
    project: "Project", truth: Dataset, robots: int, seed: int, progress: bool | None
) -> "list[RobotReport]":
    """Serve the project, and have robots answer every card, sure in four of five cases."""
    from comes.annotate import run_robots, serve_in_thread

    codes = simulate_answers(
        truth.known_relevant(), asked_rate=1.0, no_rate=SURE_RATE, yes_rate=SURE_RATE, seed=seed
    ).codes
    row = {item: number for number, item in enumerate(truth.items or [])}
    column = {label: number for number, label in enumerate(truth.label_names)}

    def say(item: str, label: str) -> str:
        return State(codes[row[item], column[label]]).word

    bar = progress_bar(project.count_cards(), "answers", show=progress)
    with serve_in_thread(project) as address, bar as advance:
        reports = run_robots(address, robots, say, on_answer=advance)
    troubles = [report.error or str(report.refused) for report in reports]
    if any(report.error or report.refused for report in reports):
        raise ComesError(f"a robot could not answer: {max(troubles, key=len)}.")
    return reports


def _train_and_test(
    X: Any, answers: Answers, method: str, epochs: int | None, seed: int, progress: bool | None
) -> tuple[float, npt.NDArray[np.float64], float]:
    """Return the average precision on new scenes, the class prior estimated, and the seconds."""
    test = make_scenes("test", 2000, seed)
    started = time.perf_counter()
    verbose = -1 if progress is False else 0
    classifier = CandidateClassifier(method, epochs=epochs, random_state=seed, verbose=verbose)
    classifier.fit(X, answers)
    if classifier.history_.interrupted:
        raise KeyboardInterrupt
    assert classifier.class_prior_ is not None, "these methods need it, or keep near it"
    seconds = time.perf_counter() - started
    return classifier.score(test.X, test.known_relevant()), classifier.class_prior_, seconds
