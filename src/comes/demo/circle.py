"""From questions to a model, on the embedded digit scenes: annotate, export, fit, test."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers import Answers
from comes.datasets import Dataset, make_scenes, read_dataset, write_npz
from comes.demo.comparison import ASKED_RATE
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.priors import count_class_prior
from comes.progress import progress_bar

if TYPE_CHECKING:
    from comes.annotate import Project, RobotReport

SIDE, SHOWN = 16, 320  # pixels along a scene, as it is stored and as it is shown
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Circle(NamedTuple):
    """The outcome of going from questions to a model.

    Examples
    --------
    >>> circle = Circle(10, 10000, 20.0, 7800, 0.01, 0.92, 0.86)
    >>> circle.answers / circle.seconds
    500.0
    """

    robots: int
    answers: int
    seconds: float  # spent answering
    excluded: int
    prior_error: float  # of the class priors estimated from the answers, on average
    average_precision: float
    on_candidates: float  # the same, trained on what is left if nobody knows who was asked


def make_project(
    folder: Path,
    n_scenes: int,
    seed: int = 0,
    *,
    overlap: float = 0.0,
    database: str | None = None,
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
    from PIL import Image

    from comes.annotate import create_project

    scenes = make_scenes("train", n_scenes, seed)
    names = [f"scene-{number:05}.png" for number in range(n_scenes)]
    pictures = folder / "pictures"
    pictures.mkdir()
    grey = np.rint(255 * (1 - scenes.X)).astype(np.uint8).reshape(-1, SIDE, SIDE)
    for name, picture in zip(names, grey, strict=True):
        shown = Image.fromarray(picture).resize((SHOWN, SHOWN), Image.Resampling.BICUBIC)
        shown.save(pictures / name, compress_level=1)
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


def serve_scenes(
    n_scenes: int, port: int, seed: int, announce: Callable[[str], None] = lambda address: None
) -> None:
    """Serve the page with digit scenes, for a person to try, until it is interrupted.

    Parameters
    ----------
    n_scenes : int
    port : int
        0 takes a free one.
    seed : int
    announce : callable (address) -> None
        Called with the address just before the page is served.

    Examples
    --------
    >>> def announce(address):
    ...     print(address.startswith("http://127.0.0.1:"))
    ...     raise KeyboardInterrupt  # as a person would
    >>> try:
    ...     serve_scenes(20, port=0, seed=0, announce=announce)
    ... except KeyboardInterrupt:
    ...     print("the answers are forgotten")
    True
    the answers are forgotten
    """
    from comes.annotate import address_of, open_port, serve

    with open_port("127.0.0.1", port) as listener, tempfile.TemporaryDirectory() as home:
        project, _ = make_project(Path(home), n_scenes, seed)
        announce(address_of("127.0.0.1", listener.getsockname()[1]))
        serve(project, listener)


def annotate_by_robots(
    robots: int,
    n_scenes: int = 10000,
    epochs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Circle:
    """Let robots answer from the truth over HTTP, and train on what they said.

    For comparison, the same is trained on the candidates that the answers leave: what is known if
    who was asked is forgotten.

    Parameters
    ----------
    robots : int
        How many answer at the same time.
    n_scenes, seed : int
    epochs : int, optional
        By default as many as the estimator finds right.
    progress : bool, optional
        Show progress bars; by default if standard error is a terminal.

    Returns
    -------
    circle : Circle

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few answers say little about class priors
    >>> circle = annotate_by_robots(robots=2, n_scenes=60, epochs=1, progress=False)
    >>> circle.answers, 0 < circle.average_precision < 1
    (60, True)
    """
    from comes.annotate import export_answers

    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        project, truth = make_project(home, n_scenes, seed)
        started = time.perf_counter()
        reports = _answer_cards(project, truth, robots, progress)
        seconds = time.perf_counter() - started
        export_answers(project, home / "answers.parquet")
        project.engine.dispose()
        write_npz(truth, home / "X.npz")
        data = read_dataset(home / "answers.parquet", features=home / "X.npz")
    relevant, answers = truth.known_relevant(), data.known_answers()
    candidates = Answers.from_candidates(answers.candidates)
    average_precision, prior = _train_and_test(data.X, answers, epochs, seed, progress)
    on_candidates, _ = _train_and_test(data.X, candidates, epochs, seed, progress)
    return Circle(
        robots=robots,
        answers=sum(len(report.acknowledged) for report in reports),
        seconds=seconds,
        excluded=int(answers.excluded.sum()),
        prior_error=float(np.abs(prior - count_class_prior(relevant)).mean()),
        average_precision=average_precision,
        on_candidates=on_candidates,
    )


def _answer_cards(
    project: "Project", truth: Dataset, robots: int, progress: bool | None
) -> "list[RobotReport]":
    """Serve the project, and have robots answer every card from the truth."""
    from comes.annotate import run_robots, serve_in_thread

    relevant, items = truth.known_relevant(), truth.items or []
    row = {item: number for number, item in enumerate(items)}
    column = {label: number for number, label in enumerate(truth.label_names)}

    def say(item: str, label: str) -> str:
        return "maybe" if relevant[row[item], column[label]] else "no"

    bar = progress_bar(project.count_cards(), "answers", show=progress)
    with serve_in_thread(project) as address, bar as advance:
        reports = run_robots(address, robots, say, on_answer=advance)
    troubles = [report.error or str(report.refused) for report in reports]
    if any(report.error or report.refused for report in reports):
        raise ComesError(f"a robot could not answer: {max(troubles, key=len)}.")
    return reports


def _train_and_test(
    X: Any, answers: Answers, epochs: int | None, seed: int, progress: bool | None
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the average precision on new scenes, and the class prior that was estimated."""
    test = make_scenes("test", 2000, seed)
    classifier = CandidateClassifier(epochs=epochs, random_state=seed, progress=progress)
    classifier.fit(X, answers)
    if classifier.history_.interrupted:
        raise KeyboardInterrupt
    assert classifier.class_prior_ is not None, "the likelihood keeps near it"
    return classifier.score(test.X, test.known_relevant()), classifier.class_prior_
