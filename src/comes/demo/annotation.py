"""From questions to a model, on the embedded digit scenes: annotate, export, fit, test."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from comes.datasets import Dataset, make_scenes, read_dataset, write_npz
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.generation import case_b
from comes.labels import BoolMatrix
from comes.metrics import evaluate
from comes.priors import count_class_prior, estimate_class_prior

if TYPE_CHECKING:
    from comes.annotate import Project

EXCLUDE_RATE = 0.1
SIDE, SHOWN = 16, 320  # pixels along a scene, as it is stored and as it is shown
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Circle(NamedTuple):
    """What the way from questions to a model gave."""

    robots: int
    answers: int
    seconds: float  # that the answering took
    excluded: int
    prior_error: float  # of the class priors estimated from the answers, on average
    average_precision: float
    directly: float  # the same with candidates that were generated, not asked


def make_project(
    folder: Path,
    n_scenes: int,
    seed: int = 0,
    *,
    overlap: float = 0.0,
    database: str | None = None,
) -> "tuple[Project, Dataset]":
    """Make a project of pictures of digit scenes in a folder; return it with the truth."""
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
        rate=EXCLUDE_RATE,
        seed=seed,
        overlap=overlap,
        database=database,
    )
    return project, Dataset(
        scenes.X, scenes.label_names, relevant=scenes.known_relevant(), items=names
    )


def serve_scenes(n_scenes: int, port: int, seed: int) -> None:
    """Serve the page with digit scenes, for a person to try, until it is interrupted."""
    from comes.annotate import serve
    from comes.annotate.serving import address_of, open_port

    listener = open_port("127.0.0.1", port)
    with tempfile.TemporaryDirectory() as home:
        project, _ = make_project(Path(home), n_scenes, seed)
        address = address_of("127.0.0.1", listener.getsockname()[1])
        print(f"{address}/  (Ctrl-C ends it, and forgets the answers)", flush=True)
        serve(project, listener, None)


def annotate_by_robots(
    robots: int,
    n_scenes: int = 10000,
    epochs: int = 50,
    seed: int = 0,
    progress: bool | None = None,
) -> Circle:
    """Let robots answer from the truth over HTTP, and train on what they said.

    The same training on candidates that `comes.generation.case_b` makes stands beside it.
    """
    from comes.annotate import export_answers, run_robots, serving

    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        project, truth = make_project(home, n_scenes, seed)
        relevant = truth.known_relevant()
        assert truth.items is not None
        row = {item: number for number, item in enumerate(truth.items)}
        column = {label: number for number, label in enumerate(truth.label_names)}

        def say(item: str, label: str) -> str:
            return "maybe" if relevant[row[item], column[label]] else "no"

        n_cards = round(EXCLUDE_RATE * n_scenes) * len(column)
        started = time.perf_counter()
        with serving(project) as address, _progress_bar(n_cards, progress) as advance:
            reports = run_robots(address, robots, say, on_answer=advance)
        seconds = time.perf_counter() - started
        troubles = [report.error or str(report.refused) for report in reports]
        if any(report.error or report.refused for report in reports):
            raise ComesError(f"a robot could not answer: {max(troubles, key=len)}.")
        export_answers(project, home / "answers.parquet")
        project.engine.dispose()
        write_npz(truth, home / "X.npz")
        data = read_dataset(home / "answers.parquet", features=home / "X.npz")
    test = make_scenes("test", 2000, seed)

    def reached(X: Any, candidates: BoolMatrix) -> tuple[float, float]:
        prior = estimate_class_prior(X, candidates, random_state=seed).class_prior
        error = float(np.abs(prior - count_class_prior(relevant)).mean())
        classifier = CandidateClassifier(
            class_prior=prior, epochs=epochs, random_state=seed, progress=progress
        ).fit(X, candidates)
        if classifier.history_.interrupted:
            raise KeyboardInterrupt
        scores = classifier.decision_function(test.X)
        metrics = evaluate(scores, test.known_relevant(), classifier.cut_scores(scores))
        return metrics["average_precision"], error

    assert data.candidates is not None
    average_precision, prior_error = reached(data.X, data.candidates)
    directly, _ = reached(truth.X, case_b(relevant, EXCLUDE_RATE, seed))
    return Circle(
        robots=robots,
        answers=sum(len(report.acknowledged) for report in reports),
        seconds=seconds,
        excluded=int((~data.candidates).sum()),
        prior_error=prior_error,
        average_precision=average_precision,
        directly=directly,
    )


@contextmanager
def _progress_bar(total: int, show: bool | None) -> Iterator[Callable[[], None]]:
    """Give a function that advances a bar by one answer."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(
        console=console,
        transient=True,
        disable=not (show or (show is None and console.is_terminal)),
    ) as bar:
        line = bar.add_task("answers", total=total)
        yield lambda: bar.update(line, advance=1)
