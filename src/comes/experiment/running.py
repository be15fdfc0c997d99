"""Run the tasks of an experiment: in parallel, resumed where it was stopped, in shards.

A task is a pure function of its spec and writes one ``KEY/result.json``, last and by rename. What
has one is not run again. One torch thread per task, so that the numbers do not depend on how many
run at a time.
"""

import importlib.util
import itertools
import json
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from joblib import Parallel, delayed, parallel_config
from sklearn.model_selection import train_test_split

import comes
from comes.datasets import Dataset
from comes.errors import ComesError, ComesWarning
from comes.estimator import (
    CandidateClassifier,
    Contest,
    ImageClassifier,
    choose_each,
    fit_together,
)
from comes.experiment.tasks import Repeat, Rows, Task, load, repeats_of
from comes.files import replacing_file
from comes.labels import BoolMatrix
from comes.methods import family_of
from comes.metrics import count_degenerate, evaluate, hamming_loss
from comes.priors import add_prior_noise, count_class_prior
from comes.risks import bce_risk, ranking_risk
from comes.selection import cut_by_row

Classifier = CandidateClassifier | ImageClassifier
CHECKPOINT = ".checkpoint"  # ending of the state of one repeat
DIGITS = 6  # of a metric in a result


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    done: int  # tasks that were run
    kept: int  # tasks that had a result before
    failed: dict[str, str]  # tasks that gave an error, by name, with its last line


def run_tasks(
    tasks: Sequence[Task],
    folder: str | Path,
    *,
    workers: int = 1,
    shard: tuple[int, int] = (1, 1),
    backend: str = "loky",
    scheduler: str | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Run what has no result yet.

    Parameters
    ----------
    tasks : list of Task
        See `comes.experiment.tasks_of`.
    folder : path
        Where results go, one folder for each task. It may hold those of other experiments.
    workers : int
        Tasks at a time. On a GPU one is best.
    shard : (int, int)
        (2, 8) runs the second eighth of the tasks, for machines that share the folder.
    backend : {"loky", "dask", "ray"}
        What runs them: processes here, or a cluster.
    scheduler : str, optional
        Address of the cluster.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    outcome : Outcome
        A task that fails is written down with its error, and run again the next time.
    """
    which, of = shard
    if not 1 <= which <= of:
        raise ComesError(f"a shard is 1/N to N/N; got {which}/{of}.")
    folder = Path(folder).resolve()  # workers of a cluster are elsewhere
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ComesError(f"{folder} cannot be a folder of results: {error.strerror}.") from None
    mine = tasks[which - 1 :: of]
    todo = [task for task in mine if not (folder / task.key / "result.json").exists()]
    failed = {}
    with _backend(backend, scheduler), _progress_bar(len(todo), progress) as advance:
        as_they_come = "list" if backend == "ray" else "generator_unordered"  # Ray has no generator
        run = Parallel(n_jobs=workers, return_as=as_they_come)
        for task, message in run(delayed(_run_and_write)(task, folder) for task in todo):
            if message:
                failed[task.name] = message
            advance(task)
    return Outcome(len(todo) - len(failed), len(mine) - len(todo), failed)


def run_task(task: Task, folder: Path | None = None) -> dict[str, Any]:
    """Train and test every repeat of a task; the folder keeps states of long trainings."""
    started = time.perf_counter()
    dataset, n_train = load(task.spec)
    repeats = list(repeats_of(task.spec, dataset, n_train))
    chosen = _choose(task.spec, dataset, repeats)
    trainings = list(zip(range(len(repeats)), repeats, chosen, strict=True))
    fitted = _fit(task.spec, dataset, trainings, folder)
    relevant = dataset.known_relevant()
    return {
        "key": task.key,
        **task.names,
        "spec": task.spec,
        "size": {
            "n": len(dataset),
            "d": 0 if task.spec.get("images") else dataset.X.shape[1],
            "q": relevant.shape[1],
        },
        "degenerate": count_degenerate(relevant),
        "repeats": [
            _judge(classifier, dataset, repeat) | ({"chosen": own} if own else {})
            for classifier, repeat, own in zip(fitted, repeats, chosen, strict=True)
        ],
        "seconds": round(time.perf_counter() - started, 2),
        "versions": {
            "comes": comes.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "device": _device_of(fitted[0]),
    }


def _fit(
    spec: dict[str, Any],
    dataset: Dataset,
    trainings: list[tuple[int, Repeat, dict[str, Any]]],
    folder: Path | None = None,
) -> list[Classifier]:
    """Return a classifier for the rows of every repeat, with settings of its own."""
    classifiers = [
        _make_classifier(spec, dataset, k, repeat.train, own) for k, repeat, own in trainings
    ]
    if spec.get("images"):
        return [
            classifier.fit(
                dataset.X[repeat.train],
                repeat.candidates[repeat.train],
                checkpoint=None if folder is None else folder / f"{k}{CHECKPOINT}",
            )
            for classifier, (k, repeat, _) in zip(classifiers, trainings, strict=True)
        ]
    labels, rows = zip(*((r.candidates, r.train) for _, r, _ in trainings), strict=True)
    return fit_together(classifiers, dataset.X, list(labels), rows, n_jobs=1)


def _make_classifier(
    spec: dict[str, Any], dataset: Dataset, k: int, rows: Rows, own: dict[str, Any]
) -> Any:
    """Return the classifier of the k-th repeat, which knows what the spec lets it know of rows."""
    relevant = dataset.known_relevant()[rows]
    seed = spec["seed"] + k
    known: dict[str, Any] = {"random_state": seed, "progress": False}
    if spec["class_prior"] == "true":
        prior = count_class_prior(relevant)
        known["class_prior"] = add_prior_noise(prior, spec["prior_noise"], seed=seed)
        family = family_of(spec["method"])
        known |= {} if family is None else family.settings_with_prior  # the same for all methods
    if "flood" in spec:
        known["flood_level"] = spec["flood"] * _risk_floor(relevant)
    make: Any = ImageClassifier if spec.get("images") else CandidateClassifier
    return make(_method(spec["method"]), **known | spec["settings"] | own)


def _choose(spec: dict[str, Any], dataset: Dataset, repeats: list[Repeat]) -> list[dict[str, Any]]:
    """Return the settings of each repeat that have the least risk on held-out candidates."""
    search = spec.get("search")
    if search is None:
        return [{} for _ in repeats]
    names = ("learning_rate", "epochs")
    grid = [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(search[name] for name in names))
    ]
    contests = []
    for k, repeat in enumerate(repeats):
        rows, held = train_test_split(
            repeat.train, test_size=search["held_out"], random_state=spec["seed"] + k
        )
        classifiers = [_make_classifier(spec, dataset, k, rows, own) for own in grid]
        contests.append(Contest(classifiers, repeat.candidates, [(rows, held)]))
    choices = choose_each(contests, dataset.X, criterion="own_risk", n_jobs=1)
    return [grid[choice.best] for choice in choices]


def _judge(classifier: Classifier, dataset: Dataset, repeat: Repeat) -> dict[str, Any]:
    """Return the metrics of the test rows, and how the training went."""
    relevant = dataset.known_relevant()[repeat.test]
    X = dataset.X[repeat.test]
    if isinstance(classifier, ImageClassifier):  # other methods will ask for the same features
        scores = classifier.decision_function(X, cache=True)
    else:
        scores = classifier.decision_function(X)
    predictions = classifier.cut_scores(scores)

    def rounded(metrics: dict[str, float]) -> dict[str, float]:
        return {name: round(value, DIGITS) for name, value in metrics.items()}

    return {
        "pml": rounded(evaluate(scores, relevant, predictions, "pml")),
        "sklearn": rounded(evaluate(scores, relevant, predictions, "sklearn")),
        "hamming_loss": rounded(
            {
                "zero": hamming_loss(scores > 0, relevant),
                "minmax": hamming_loss(cut_by_row(scores), relevant),
            }
        ),
        "true_risk": rounded(_true_risks(scores, relevant)),
        "risk": [float(f"{value:.5g}") for value in classifier.history_.risk],
        "seconds": round(classifier.history_.seconds, 2),
    }


def _device_of(classifier: Classifier) -> str:
    network = classifier.network_ if isinstance(classifier, ImageClassifier) else classifier.module_
    device = next(network.parameters()).device
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


def _true_risks(scores: npt.NDArray[np.floating], relevant: BoolMatrix) -> dict[str, float]:
    """Return what the risks of the paper estimate: its Equations 2 and 4 on true labels."""
    g, y = torch.as_tensor(scores, dtype=torch.float64), torch.as_tensor(relevant)
    # With the truth for candidates and its own prior, (1 - pi_j) / n_j is 1 / n.
    ranking = ranking_risk(g, y, y.double().mean(dim=0))
    return {"hamming": float(bce_risk(g, y)), "ranking": float(ranking) - _risk_floor(relevant)}


def _risk_floor(relevant: BoolMatrix) -> float:
    """Return the least ranking risk that any scores can have: sum_{j<k} p(y_j = 0, y_k = 0)."""
    n_irrelevant = (~relevant).sum(axis=1)
    return float((n_irrelevant * (n_irrelevant - 1) / 2).mean())


def _run_and_write(task: Task, folder: Path) -> tuple[Task, str]:
    """Run a task and write its result; return the last line of its error, if there was one."""
    home = folder / task.key
    home.mkdir(exist_ok=True)
    try:
        with warnings.catch_warnings(), _one_thread():
            warnings.simplefilter("ignore", ComesWarning)  # of labels that nothing excludes
            result = run_task(task, home)
    except Exception as error:
        text = f"{task.name}\n{traceback.format_exc()}"
        (home / "error.txt").write_text(text, encoding="utf-8")
        return task, f"{type(error).__name__}: {error}"
    with replacing_file(home / "result.json") as path:
        path.write_text(json.dumps(result) + "\n", encoding="utf-8")
    for leftover in (home / "error.txt", *home.glob(f"*{CHECKPOINT}")):
        leftover.unlink(missing_ok=True)
    return task, ""


def _method(name: str) -> Any:
    """Return the name of a method, or the risk of one's own that FILE.py:FUNCTION names."""
    file, colon, function = name.rpartition(":")
    if not colon:
        return name
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).exists():
        raise ComesError(f"{file} is no Python file; a method is a name or FILE.py:FUNCTION.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise ComesError(f"{file} has no {function}.")
    return getattr(module, function)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _backend(name: str, scheduler: str | None) -> Iterator[None]:
    """Let joblib use processes, or the cluster at an address."""
    package = {"dask": "distributed", "ray": "ray"}.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        raise ComesError(f"backend {name} needs a package: pip install {package}.")
    if name == "dask":
        from distributed import Client

        try:
            client = Client(scheduler)
        except OSError as error:
            raise ComesError(f"no Dask scheduler answers at {scheduler}: {error}.") from None
        with client, parallel_config(backend="dask"):
            yield
    elif name == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(address=scheduler)
        register_ray()
        with parallel_config(backend="ray"):
            yield
    elif name == "loky":
        with parallel_config(backend="loky", inner_max_num_threads=1):
            yield
    else:
        raise ComesError(f"backend must be loky, dask or ray; got {name!r}.")


@contextmanager
def _progress_bar(total: int, show: bool | None) -> Iterator[Callable[[Task], None]]:
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda task: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("tasks", total=total)
        yield lambda task: bar.update(line, advance=1, description=task.name)
