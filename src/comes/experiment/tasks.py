"""What a method sees of what was drawn, and what it is told of the rates."""

import importlib.util
import itertools
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.model_selection import KFold, train_test_split

import comes
from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, join_rows, make_scenes, open_dataset
from comes.datasets.dataset import take_rows
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.estimator.choose import Choice, Contest, choose_each, estimate_shared_prior
from comes.estimator.together import fit_together
from comes.experiment.results import (
    RESULT_FILE,
    AnswerSpec,
    DataSpec,
    Degenerate,
    HammingByCut,
    Names,
    RepeatResult,
    Result,
    SearchSpec,
    Sees,
    Size,
    TaskSpec,
    TrueRisk,
    read_results,
)
from comes.flat_settings import from_flat, frozen_settings
from comes.generation import generate, simulate_answers
from comes.images import ImageClassifier
from comes.label_metrics import LABEL_METRICS, measure_labels
from comes.methods import method_of_label
from comes.metrics import count_degenerate, evaluate, hamming_loss
from comes.priors import count_class_prior
from comes.risks import bce_risk, ranking_risk
from comes.selection.thresholds import cut_by_row
from comes.tables.columns import needs_encoding

Rows = npt.NDArray[np.intp]
PAPER_EXCLUDE_RATE = 0.1  # of the cases that have a rate, where none is given


def draw_labels(spec: TaskSpec, dataset: Dataset, rows: Rows, seed: int) -> BoolMatrix | Answers:
    """Return what a method sees of the labels, (n_samples, n_labels); drawn for these rows."""
    if spec.sees == "truth":  # all that is irrelevant is excluded
        return _place(dataset.known_relevant()[rows], rows, len(dataset))
    if spec.data.case is not None:
        relevant = dataset.known_relevant()[rows]
        X = take_rows(dataset.X, rows) if spec.data.case == "instance" else None
        drawn = generate(spec.data.case, relevant, X, rate=spec.data.rate, seed=seed)
        return _place(drawn, rows, len(dataset))
    if spec.data.answers is not None:
        return _show(_draw_answers(spec.data.answers, dataset, rows, seed), spec.sees)
    if spec.sees in ("all", "no_maybe"):
        return _show(_known_answers(dataset, spec.data.name), spec.sees)
    assert dataset.candidates is not None
    return dataset.candidates


def true_rates(spec: TaskSpec) -> dict[str, float]:
    """Return the settings of a classifier that say at which rates its labels were drawn."""
    if spec.sees == "truth":
        return {"exclude_rate": 1.0}
    answers = spec.data.answers
    if answers is None:
        return {"exclude_rate": _exclude_rate_of(spec.data)}
    if answers.people is not None:
        raise ComesError("people have their own rates, which are estimated; got answer_rates true.")
    if spec.sees == "candidates":
        return {"exclude_rate": answers.asked_rate * answers.no_rate}
    yes_rate = 0.0 if spec.sees == "no_maybe" else answers.yes_rate
    return {"no_rate": answers.no_rate, "yes_rate": yes_rate}


def _place(drawn: BoolMatrix, rows: Rows, n: int) -> BoolMatrix:
    """Return candidates of n rows, of which only these exclude anything."""
    candidates = np.ones((n, drawn.shape[1]), dtype=bool)
    candidates[rows] = drawn
    return candidates


def _draw_answers(spec: AnswerSpec, dataset: Dataset, rows: Rows, seed: int) -> Answers:
    """Return answers about these rows, with nobody asked about the others."""
    given = {name: value for name, value in asdict(spec).items() if value is not None}
    X = take_rows(dataset.X, rows) if spec.doubt_strength or spec.asked_strength else None
    relevant = dataset.known_relevant()
    drawn = simulate_answers(relevant[rows], X, **given, seed=seed)
    if drawn.annotations is not None:
        return Answers.from_long(
            replace(drawn.annotations, row=rows[drawn.annotations.row]), relevant.shape
        )
    codes = np.zeros(relevant.shape, dtype=np.int8)
    codes[rows] = drawn.codes
    return Answers.from_codes(codes)


def _show(answers: Answers, sees: Sees | None) -> BoolMatrix | Answers:
    """Return what a method sees: all, yes as maybe, or what is still possible."""
    if sees == "candidates":
        return answers.candidates
    if sees == "all":
        return answers
    if answers.annotations is not None:
        said = replace(answers.annotations, code=_hide_yes(answers.annotations.code))
        return Answers.from_long(said, answers.shape, answers.label_names, chosen=answers.chosen)
    codes = _hide_yes(answers.codes)
    return Answers.from_codes(codes, label_names=answers.label_names, chosen=answers.chosen)


def _hide_yes(codes: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    return np.where(codes == State.YES, np.int8(State.MAYBE), codes)


def _known_answers(dataset: Dataset, name: str) -> Answers:
    """Return the data set's own answers, where it is known who was asked."""
    if dataset.answers is None or dataset.answers.kind != "answers":
        raise ComesError(f"{name} does not say who was asked; let methods see candidates.")
    return dataset.answers


def _exclude_rate_of(data: DataSpec) -> float:
    """Return the rate at which a case excludes irrelevant labels."""
    if data.case is None or data.case in ("one", "size"):
        raise ComesError(
            f"the exclude rate of {data.name} is not known; got answer_rates true. Leave it out."
        )
    if data.rate is None:
        return PAPER_EXCLUDE_RATE
    return 1 - data.rate if data.case == "a" else data.rate


class Repeat(NamedTuple):
    """Rows to train and to test on, and labels; those of test rows are never used."""

    train: Rows
    test: Rows
    labels: Any  # (n, q): candidates as a bool matrix, or what the method sees as Answers


class Loaded(NamedTuple):
    """A data set, and how many of its rows are to be trained on; None where that is drawn."""

    dataset: Dataset
    n_train: int | None


def load_data(spec: DataSpec) -> Loaded:
    """Return the data set of a task, followed by the rows of its test set if it names one."""
    dataset = _open_part(spec, spec.name)
    if spec.test is None:
        return Loaded(dataset, None)
    test = _open_part(spec, spec.test).align_labels(dataset.label_names)
    return Loaded(join_rows(dataset, test), len(dataset))


def _open_part(spec: DataSpec, name: str) -> Dataset:
    """Return the data set to train on, or the one to test on."""
    if name == "scenes":
        dataset = make_scenes(n=2000 if spec.rows is None else spec.rows)
    else:
        dataset = open_dataset(name, **(spec.read or {}))
    dataset.known_relevant()
    if spec.case is None and spec.answers is None and dataset.candidates is None:
        raise ComesError(f"{name} comes without candidates; give it a case, or answers.")
    if isinstance(dataset.X, pd.DataFrame) and not needs_encoding(dataset.X):
        return replace(dataset, X=dataset.X.to_numpy(dtype=np.float64))
    return dataset


def draw_repeats(spec: TaskSpec, dataset: Dataset, n_train: int | None = None) -> Iterator[Repeat]:
    """Yield the folds, or the label seeds, of a task."""
    for k, (train, test) in enumerate(_split_rows(spec, len(dataset), n_train)):
        label_seed = spec.seed if spec.folds is not None else spec.seed + k
        labels = draw_labels(spec, dataset, train, label_seed)
        yield Repeat(_draw_rows(train, spec.train_rows, spec.seed + k), test, labels)


def _split_rows(spec: TaskSpec, n: int, n_train: int | None) -> list[tuple[Rows, Rows]]:
    """Return the rows to train and to test on of every repeat; label seeds share them."""
    if spec.folds is not None:
        if spec.folds > n:
            raise ComesError(f"folds must be at most the number of rows, {n}; got {spec.folds}.")
        folds = KFold(spec.folds, shuffle=True, random_state=spec.seed)
        return list(folds.split(np.zeros(n)))[: spec.first_folds]
    assert spec.label_seeds is not None
    if n_train is not None:
        train, test = np.split(np.arange(n), [n_train])
    else:
        train, test = train_test_split(
            np.arange(n), test_size=spec.test_share, random_state=spec.seed
        )
    return [(train, test)] * spec.label_seeds


def _draw_rows(rows: Rows, train_rows: float | None, seed: int) -> Rows:
    """Return the rows to train on: all, or as many as the task wants."""
    most = len(rows) if train_rows is None else int(train_rows)
    if most > len(rows):
        raise ComesError(f"train_rows is {most}, and there are {len(rows)} rows to train on.")
    return rows if most == len(rows) else np.random.default_rng(seed).permutation(rows)[:most]


Classifier = CandidateClassifier | ImageClassifier
DIGITS = 6  # of a metric in a result
LABEL_DIGITS = 4  # of that of a label


class Found(NamedTuple):
    """What a search found for a repeat; nothing where there was none."""

    settings: Mapping[str, Any] = MappingProxyType({})
    tied: int | None = None  # how many other settings are level with them
    edges: tuple[str, ...] | None = None  # in what nothing was tried beyond them


def judge_classifier(
    classifier: Classifier, dataset: Dataset, repeat: Repeat, found: Found
) -> RepeatResult:
    """Return the numbers of a repeat."""
    relevant = dataset.known_relevant()[repeat.test]
    X = take_rows(dataset.X, repeat.test)
    if isinstance(classifier, ImageClassifier):  # other methods will ask for the same features
        scores = classifier.decision_function(X, cache=True)
    else:
        scores = classifier.decision_function(X)
    predictions = classifier.cut_scores(scores)
    return RepeatResult(
        pml=_round_values(evaluate(scores, relevant, predictions, "pml")),
        sklearn=_round_values(evaluate(scores, relevant, predictions, "sklearn")),
        hamming_loss=HammingByCut(
            zero=round(hamming_loss(scores > 0, relevant), DIGITS),
            minmax=round(hamming_loss(cut_by_row(scores), relevant), DIGITS),
        ),
        true_risk=TrueRisk(**_round_values(true_risks(scores, relevant))),
        risk=tuple(float(f"{value:.5g}") for value in classifier.history_.risk),
        seconds=round(classifier.history_.seconds, 2),
        chosen=dict(found.settings) or None,
        tied=found.tied,
        edges=found.edges,
        held_out=tuple(round(score, DIGITS) for score in classifier.history_.validation) or None,
        by_label=_measure_labels(scores, relevant, predictions),
    )


def _measure_labels(
    scores: npt.NDArray[np.floating], relevant: BoolMatrix, predictions: npt.NDArray[np.int64]
) -> dict[str, tuple[float | None, ...]]:
    """Return what a result keeps of every label."""
    table = measure_labels(scores, relevant, predictions)
    return {
        name: tuple(None if np.isnan(v) else round(v, LABEL_DIGITS) for v in table[name].tolist())
        for name in LABEL_METRICS
    }


def true_risks(scores: npt.NDArray[np.floating], relevant: BoolMatrix) -> dict[str, float]:
    """Return what the risks of the paper estimate: its Equations 2 and 4 on true labels."""
    g, y = torch.as_tensor(scores, dtype=torch.float64), torch.as_tensor(relevant)
    # With the truth for candidates and its own prior, (1 - pi_j) / n_j is 1 / n.
    ranking = ranking_risk(g, y, y.double().mean(dim=0))
    return {"hamming": float(bce_risk(g, y)), "ranking": float(ranking) - risk_floor(relevant)}


def risk_floor(relevant: BoolMatrix) -> float:
    """Return the least ranking risk that any scores can have: sum_{j<k} p(y_j = 0, y_k = 0)."""
    n_irrelevant = (~relevant).sum(axis=1)
    return float((n_irrelevant * (n_irrelevant - 1) / 2).mean())


def name_device(classifier: Classifier) -> str:
    """Return where a classifier was trained: "cpu", or the name of a GPU."""
    network = classifier.network_ if isinstance(classifier, ImageClassifier) else classifier.module_
    device = next(network.parameters()).device
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


def _round_values(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in metrics.items()}


CHECKPOINT = ".checkpoint"  # ending of the state of one repeat


class Trial(NamedTuple):
    """One training: the number of its repeat, its rows, and the settings found for it."""

    number: int
    repeat: Repeat
    found: Found


def fit_trials(
    spec: TaskSpec, dataset: Dataset, trials: list[Trial], folder: Path | None = None
) -> list[Classifier]:
    """Return a classifier for every trial; the folder keeps states of long trainings."""
    classifiers = [_make_classifier(spec, dataset, trial) for trial in trials]
    if spec.images:
        return [
            classifier.fit(
                take_rows(dataset.X, repeat.train),
                repeat.labels[repeat.train],
                checkpoint=None if folder is None else folder / f"{k}{CHECKPOINT}",
            )
            for classifier, (k, repeat, _) in zip(classifiers, trials, strict=True)
        ]
    labels, rows = zip(*((t.repeat.labels, t.repeat.train) for t in trials), strict=True)
    return fit_together(classifiers, dataset.X, list(labels), rows, n_jobs=1)


def _make_classifier(spec: TaskSpec, dataset: Dataset, trial: Trial) -> Any:
    """Return the classifier of a trial, which knows what the spec lets it know; not fitted."""
    relevant = dataset.known_relevant()[trial.repeat.train]
    seed = spec.seed + trial.number
    known: dict[str, Any] = {"random_state": seed, "progress": False}
    if spec.class_prior == "true":
        prior = count_class_prior(relevant)
        noise = np.random.default_rng(seed).normal(scale=spec.prior_noise, size=prior.shape)
        known["class_prior"] = np.clip(prior + noise, 0, 0.999)
        named = method_of_label(spec.method)
        known |= {} if named is None else named.settings_with_prior  # the same for all methods
    if spec.answer_rates == "true":
        known |= true_rates(spec)
    if spec.flood is not None:
        known["flood_level"] = spec.flood * risk_floor(relevant)
    settings = known | dict(spec.settings) | dict(trial.found.settings)
    settings = frozen_settings(spec.method, spec.training, spec.images, settings)
    make = ImageClassifier if spec.images else CandidateClassifier
    return make(**from_flat({"method": load_method(spec.method), **settings}))


def choose_settings(spec: TaskSpec, dataset: Dataset, repeats: list[Repeat]) -> list[Found]:
    """Return the settings of each repeat that are best by what was said about held-out rows."""
    search = spec.search
    if search is None:
        return [Found() for _ in repeats]
    contests = [_make_contest(spec, search, dataset, k, own) for k, own in enumerate(repeats)]
    if search.criterion is None:
        choices = choose_each(contests, dataset.X, criterion="trained_risk", n_jobs=1)
        return [Found(_settings_of(choice)) for choice in choices]
    extend = bool(search.extend)
    choices = choose_each(contests, dataset.X, criterion=search.criterion, extend=extend, n_jobs=1)
    return [Found(_settings_of(choice), len(choice.tied), choice.edges) for choice in choices]


def _make_contest(
    spec: TaskSpec, search: SearchSpec, dataset: Dataset, k: int, repeat: Repeat
) -> Contest:
    """Return the grid of a search, with the rows of a repeat that it is judged on."""
    rows, held = train_test_split(
        repeat.train, test_size=search.held_out, random_state=spec.seed + k
    )
    grid: list[dict[str, Any]] = [
        {"learning_rate": learning_rate, "epochs": epochs}
        for learning_rate, epochs in itertools.product(search.learning_rate, search.epochs)
    ]
    shorter = repeat._replace(train=rows)
    classifiers = [_make_classifier(spec, dataset, Trial(k, shorter, Found(own))) for own in grid]
    prior = None
    if search.criterion not in (None, "own_risk"):  # one that all are judged with
        prior = classifiers[0].class_prior
        if prior is None:
            own_X, said = take_rows(dataset.X, repeat.train), repeat.labels[repeat.train]
            prior = estimate_shared_prior(own_X, said, spec.seed + k)
    return Contest(classifiers, repeat.labels, [(rows, held)], prior)


def _settings_of(choice: Choice) -> dict[str, Any]:
    """Return what a search varies, of the classifier that it chose."""
    return {name: getattr(choice.classifier, name) for name in ("learning_rate", "epochs")}


def load_method(name: str) -> Any:
    """Return the name of a method, or the user's own risk that FILE.py:FUNCTION names."""
    file, colon, function = name.rpartition(":")
    if not colon:
        return name
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).exists():
        raise ComesError(f"{file} is not a Python file; a method is a name or FILE.py:FUNCTION.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise ComesError(f"{file} has no {function}.")
    return getattr(module, function)


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MIB = 2**20


def forget_peaks() -> None:
    """Let the peaks start anew: a process may have run other tasks."""
    with suppress(OSError):
        CLEAR.write_text("5")  # Linux: the peak becomes what is used now
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def read_peak() -> float | None:
    """Return the greatest memory of this process, in MiB; None where the system does not tell."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else round(int(found[1]) / 1024, 1)


def read_device_peak(device: str) -> float | None:
    """Return the greatest memory of tensors on a GPU, in MiB; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    return round(torch.cuda.max_memory_allocated() / MIB, 1)


@dataclass(frozen=True)
class Task:
    """A method on a data set. Its spec alone decides the result.

    Examples
    --------
    >>> from comes.experiment.results import DataSpec
    >>> spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    >>> task = Task(Names("smoke", "scenes", "plain BCE"), spec)
    >>> task.name, task.key
    ('plain BCE on scenes', '55cf8858d1e5c08f')
    """

    names: Names
    spec: TaskSpec

    @property
    def name(self) -> str:
        """What a person would call it; it is unique within an experiment."""
        return self.names.title(self.spec)

    @property
    def key(self) -> str:
        """Name of its folder: equal specs have equal keys, in whatever experiment they are."""
        return self.spec.key


def run_task(task: Task, folder: Path | None = None) -> Result:
    """Train and test every repeat of a task.

    Parameters
    ----------
    task : Task
    folder : Path, optional
        Keeps checkpoints, from which long trainings resume.

    Returns
    -------
    result : Result

    Examples
    --------
    >>> from comes.experiment.results import DataSpec
    >>> data = DataSpec(name="scenes", case="b", rate=0.5, rows=40)
    >>> settings = {"epochs": 1, "hidden": 4, "device": "cpu"}
    >>> spec = TaskSpec(data=data, method="bce", settings=settings, folds=2)
    >>> result = run_task(Task(Names("tiny", "scenes", "bce"), spec))
    >>> result.size.n, len(result.repeats), "average_precision" in result.means()
    (40, 2, True)
    """
    started = time.perf_counter()
    forget_peaks()
    dataset, n_train = load_data(task.spec.data)
    repeats = list(draw_repeats(task.spec, dataset, n_train))
    chosen = choose_settings(task.spec, dataset, repeats)
    trials = [Trial(k, *both) for k, both in enumerate(zip(repeats, chosen, strict=True))]
    fitted = fit_trials(task.spec, dataset, trials, folder)
    relevant = dataset.known_relevant()
    d = 0 if task.spec.images else dataset.X.shape[1]
    device = name_device(fitted[0])
    return Result(
        names=task.names,
        spec=task.spec,
        size=Size(n=len(dataset), d=d, q=relevant.shape[1]),
        degenerate=Degenerate(**count_degenerate(relevant)),
        repeats=tuple(
            judge_classifier(classifier, dataset, trial.repeat, trial.found)
            for classifier, trial in zip(fitted, trials, strict=True)
        ),
        seconds=round(time.perf_counter() - started, 2),
        versions={
            "comes": comes.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        device=device,
        label_names=tuple(dataset.label_names),
        peak_memory=read_peak(),
        peak_device_memory=read_device_peak(device),
    )


def read_task_results(tasks: Sequence[Task], folder: str | Path) -> list[Result]:
    """Return the results of tasks that a folder holds, under the names of these tasks.

    Parameters
    ----------
    tasks : list of Task
    folder : path
        It may hold results of other experiments.

    Returns
    -------
    results : list of Result
        Empty where no task has a result yet.

    Examples
    --------
    >>> import tempfile
    >>> from comes.experiment.results import DataSpec
    >>> spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    >>> read_task_results([Task(Names("smoke", "scenes", "bce"), spec)], tempfile.mkdtemp())
    []
    """
    names = {task.key: task.names for task in tasks}
    if not any((Path(folder) / key / RESULT_FILE).exists() for key in names):
        return []
    return read_results([folder], names)
