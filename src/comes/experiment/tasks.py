"""Tasks of an experiment: planned from its config, trained and judged on every repeat."""

import hashlib
import importlib.util
import itertools
import platform
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
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
from comes.estimator.choose import Contest, choose_each, estimate_shared_prior
from comes.estimator.together import fit_together
from comes.experiment.config import (
    AnswerSpec,
    DataChoice,
    DataSpec,
    Experiment,
    MethodChoice,
    Protocol,
    SearchSpec,
    Sees,
    TaskSpec,
    check_names,
)
from comes.experiment.results import (
    RESULT_FILE,
    Degenerate,
    HammingByCut,
    Names,
    RepeatResult,
    Result,
    Size,
    TrueRisk,
    read_result,
)
from comes.flat_settings import flat_names, from_flat, frozen_settings
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
Classifier = CandidateClassifier | ImageClassifier
PAPER_EXCLUDE_RATE = 0.1  # of the cases that have a rate, where none is given
DIGITS = 6  # of a metric in a result
LABEL_DIGITS = 4  # of that of a label
STEPS = ("learning_rate", "epochs")  # beyond whose values a search can go
CHECKPOINT = ".checkpoint"  # ending of the state of one repeat


@dataclass(frozen=True)
class Task:
    """A method on a data set. Its spec alone decides the result."""

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


def tasks_of(experiment: Experiment) -> list[Task]:
    """Return the tasks of an experiment; no two have the same name or do the same."""
    _check_settings(experiment)
    values = [None] if experiment.sweep is None else experiment.sweep.values
    choices = itertools.product(experiment.drawn_data, experiment.methods, values)
    tasks: dict[str, Task] = {}
    for task in (_make_task(experiment, *choice) for choice in choices):
        if task.name in tasks or task.key in {other.key for other in tasks.values()}:
            raise ComesError(
                f"{experiment.name} has {task.name} twice; give one another label, or leave it out."
            )
        tasks[task.name] = task
    return list(tasks.values())


def _check_settings(experiment: Experiment) -> None:
    """Refuse settings that the classifier does not have."""
    classifier = (ImageClassifier if experiment.images else CandidateClassifier)()
    known = flat_names(classifier.get_params(deep=False)) - {"method"}
    parts: dict[str, Mapping[str, Any]] = {"settings": experiment.settings}
    for k, method in enumerate(experiment.methods):
        parts[f"methods.{k}.settings"] = method.settings
    try:
        for where, settings in parts.items():
            check_names(settings, known, where)
        if experiment.search is not None:
            grid = experiment.search.grid
            check_names(grid, known | {field.name for field in fields(SearchSpec)}, "search")
            if not grid or not all(grid.values()):
                raise ValueError("search: give at least one setting with values to try.")
    except ValueError as error:
        raise ComesError(f"{experiment.name}: {error}") from None


def _make_task(
    experiment: Experiment, data: DataChoice, method: MethodChoice, value: float | None
) -> Task:
    """Return the task of a method on a data set, at a value of the sweep if there is one."""
    sweep = None if experiment.sweep is None else experiment.sweep.key
    rates = method.answer_rates or experiment.answer_rates
    paths = (data.name, method.method.rpartition(":")[0])  # run again when a file changes
    files = [Path(path) for path in paths if Path(path).is_file()]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files]
    values: dict[str, Any] = {
        **{field.name: getattr(experiment, field.name) for field in fields(Protocol)},
        "class_prior": method.class_prior or experiment.class_prior,
        "data": DataSpec(**{field.name: getattr(data, field.name) for field in fields(DataSpec)}),
        "method": method.method,
        "settings": experiment.settings | method.settings,
        "content": "".join(hashes) or None,
        "flood": experiment.flood,
        "train_rows": experiment.train_rows,
        "sees": method.sees or (None if data.answers is None else "all"),
        "answer_rates": "true" if rates == "true" else None,
        "training": method.training,
    }
    spec = TaskSpec(**values | ({} if sweep is None else {sweep: value}))
    return Task(Names(experiment.name, data.title, method.label or method.method, sweep), spec)


def read_task_results(tasks: Sequence[Task], folder: str | Path) -> list[Result]:
    """Return the results of tasks that a folder holds, under the names of these tasks."""
    paths = [(task, Path(folder) / task.key / RESULT_FILE) for task in tasks]
    return [replace(read_result(path), names=task.names) for task, path in paths if path.exists()]


class Repeat(NamedTuple):
    """Rows to train and to test on, and labels; those of test rows are never used."""

    number: int
    train: Rows
    test: Rows
    labels: Any  # (n, q): candidates as a bool matrix, or what the method sees as Answers


def run_task(task: Task, folder: Path | None = None) -> Result:
    """Train and test every repeat of a task; the folder keeps states of long trainings."""
    started = time.perf_counter()
    forget_peaks()
    spec = task.spec
    dataset, n_train = load_data(spec.data)
    repeats = list(draw_repeats(spec, dataset, n_train))
    choices = choose_settings(spec, dataset, repeats)
    classifiers = [
        _make_classifier(spec, dataset, repeat, choice.get("chosen", {}))
        for repeat, choice in zip(repeats, choices, strict=True)
    ]
    if spec.images:
        for classifier, repeat in zip(classifiers, repeats, strict=True):
            state = None if folder is None else folder / f"{repeat.number}{CHECKPOINT}"
            X = take_rows(dataset.X, repeat.train)
            classifier.fit(X, repeat.labels[repeat.train], checkpoint=state)
    else:
        labels, rows = [repeat.labels for repeat in repeats], [repeat.train for repeat in repeats]
        classifiers = fit_together(classifiers, dataset.X, labels, rows, n_jobs=1)
    relevant = dataset.known_relevant()
    network = classifiers[0].network_ if spec.images else classifiers[0].module_
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    return Result(
        names=task.names,
        spec=spec,
        size=Size(len(dataset), 0 if spec.images else dataset.X.shape[1], relevant.shape[1]),
        degenerate=Degenerate(**count_degenerate(relevant)),
        repeats=tuple(
            judge_classifier(classifier, dataset, repeat.test, choice)
            for classifier, repeat, choice in zip(classifiers, repeats, choices, strict=True)
        ),
        seconds=round(time.perf_counter() - started, 2),
        versions={
            "comes": comes.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        device=f"{device} ({torch.cuda.get_device_name(device)})" if on_gpu else "cpu",
        label_names=tuple(dataset.label_names),
        peak_memory=read_peak(),
        peak_device_memory=(
            round(torch.cuda.max_memory_allocated() / 2**20, 1) if on_gpu else None
        ),
    )


def load_data(spec: DataSpec) -> tuple[Dataset, int | None]:
    """Return the data set of a task, followed by the rows of its test set if it names one.

    The number is that of its rows to train on; None where that is drawn.
    """
    dataset = _open_part(spec, spec.name)
    if spec.test is None:
        return dataset, None
    test = _open_part(spec, spec.test).align_labels(dataset.label_names)
    return join_rows(dataset, test), len(dataset)


def _open_part(spec: DataSpec, name: str) -> Dataset:
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
        most = len(train) if spec.train_rows is None else int(spec.train_rows)
        if most > len(train):
            raise ComesError(f"train_rows is {most}, and there are {len(train)} rows to train on.")
        if most < len(train):
            train = np.random.default_rng(spec.seed + k).permutation(train)[:most]
        yield Repeat(k, train, test, labels)


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


def draw_labels(spec: TaskSpec, dataset: Dataset, rows: Rows, seed: int) -> BoolMatrix | Answers:
    """Return what a method sees of the labels, (n_samples, n_labels); drawn for these rows."""
    relevant = dataset.known_relevant()
    candidates = np.ones_like(relevant, dtype=bool)  # of other rows nothing is excluded
    if spec.sees == "truth":  # all that is irrelevant is excluded
        candidates[rows] = relevant[rows]
    elif spec.data.case is not None:
        X = take_rows(dataset.X, rows) if spec.data.case == "instance" else None
        rate = spec.data.rate
        candidates[rows] = generate(spec.data.case, relevant[rows], X, rate=rate, seed=seed)
    elif spec.data.answers is not None:
        return _show(_draw_answers(spec.data.answers, dataset, rows, seed), spec.sees)
    elif spec.sees in ("all", "no_maybe"):
        if dataset.answers is None or dataset.answers.kind != "answers":
            raise ComesError(
                f"{spec.data.name} does not say who was asked; let methods see candidates."
            )
        return _show(dataset.answers, spec.sees)
    else:
        assert dataset.candidates is not None
        candidates = dataset.candidates
    return candidates


def true_rates(spec: TaskSpec) -> dict[str, float]:
    """Return the settings of a classifier that say at which rates its labels were drawn."""
    if spec.sees == "truth":
        return {"exclude_rate": 1.0}
    answers, data = spec.data.answers, spec.data
    if answers is None:
        if data.case in (None, "one", "size"):
            raise ComesError(
                f"the exclude rate of {data.name} is not known; got answer_rates true. Leave it "
                "out."
            )
        if data.rate is None:
            return {"exclude_rate": PAPER_EXCLUDE_RATE}
        return {"exclude_rate": 1 - data.rate if data.case == "a" else data.rate}
    if answers.people is not None:
        raise ComesError("people have their own rates, which are estimated; got answer_rates true.")
    if spec.sees == "candidates":
        return {"exclude_rate": answers.asked_rate * answers.no_rate}
    yes_rate = 0.0 if spec.sees == "no_maybe" else answers.yes_rate
    return {"no_rate": answers.no_rate, "yes_rate": yes_rate}


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
    of_people, names = answers.annotations, answers.label_names
    codes = answers.codes if of_people is None else of_people.code
    codes = np.where(codes == State.YES, np.int8(State.MAYBE), codes)
    if of_people is None:
        return Answers.from_codes(codes, label_names=names, chosen=answers.chosen)
    said = replace(of_people, code=codes)
    return Answers.from_long(said, answers.shape, names, chosen=answers.chosen)


def choose_settings(
    spec: TaskSpec, dataset: Dataset, repeats: Sequence[Repeat]
) -> list[dict[str, Any]]:
    """Return what a search chose in each repeat, as fields of its result; nothing without one."""
    search = spec.search
    if search is None:
        return [{} for _ in repeats]
    contests = []
    for repeat in repeats:
        seed = spec.seed + repeat.number
        rows, held = train_test_split(repeat.train, test_size=search.held_out, random_state=seed)
        shorter = repeat._replace(train=rows)
        classifiers = [
            _make_classifier(spec, dataset, shorter, dict(zip(search.grid, values, strict=True)))
            for values in itertools.product(*search.grid.values())
        ]
        prior = None
        if search.criterion not in (None, "own_risk"):  # one that all are judged with
            prior = classifiers[0].class_prior
            if prior is None:
                X, labels = take_rows(dataset.X, repeat.train), repeat.labels[repeat.train]
                prior = estimate_shared_prior(X, labels, seed)
        contests.append(Contest(classifiers, repeat.labels, [(rows, held)], prior))
    criterion = search.criterion or "trained_risk"
    extend = bool(search.extend and search.criterion)
    choices = choose_each(contests, dataset.X, criterion=criterion, extend=extend, n_jobs=1)
    combinations = list(itertools.product(*search.grid.values()))
    results = []
    for contest, choice in zip(contests, choices, strict=True):
        # What extends a grid differs in the learning rate and epochs only.
        others = [_describe_others(classifier) for classifier in contest.classifiers]
        place = others.index(_describe_others(choice.classifier))
        chosen = dict(zip(search.grid, combinations[place], strict=True))
        chosen |= {name: getattr(choice.classifier, name) for name in STEPS if name in chosen}
        told = {"tied": len(choice.tied), "edges": choice.edges} if search.criterion else {}
        results.append({"chosen": chosen, **told})
    return results


def _describe_others(classifier: CandidateClassifier) -> str:
    """Return the parameters of a classifier but for those that a search extends."""
    return repr({k: v for k, v in classifier.get_params().items() if k not in STEPS})


def _make_classifier(
    spec: TaskSpec, dataset: Dataset, repeat: Repeat, chosen: Mapping[str, Any]
) -> Any:
    """Return a classifier that knows what the spec lets it know; not fitted."""
    relevant = dataset.known_relevant()[repeat.train]
    seed = spec.seed + repeat.number
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
    settings = known | dict(spec.settings) | dict(chosen)
    settings = frozen_settings(spec.method, spec.training, spec.images, settings)
    make = ImageClassifier if spec.images else CandidateClassifier
    return make(**from_flat({"method": load_method(spec.method), **settings}))


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


def judge_classifier(
    classifier: Classifier, dataset: Dataset, test: Rows, choice: Mapping[str, Any]
) -> RepeatResult:
    """Return the numbers of a repeat, with what a search chose for it."""
    relevant, X = dataset.known_relevant()[test], take_rows(dataset.X, test)
    # Other methods will ask for the same features of images.
    cache: Any = {"cache": True} if isinstance(classifier, ImageClassifier) else {}
    scores = classifier.decision_function(X, **cache)
    predictions = classifier.cut_scores(scores)
    table = measure_labels(scores, relevant, predictions)
    history = classifier.history_
    cuts = {"zero": scores > 0, "minmax": cut_by_row(scores)}
    by_cut = {name: hamming_loss(cut, relevant) for name, cut in cuts.items()}
    return RepeatResult(
        pml=_round_values(evaluate(scores, relevant, predictions, "pml")),
        sklearn=_round_values(evaluate(scores, relevant, predictions, "sklearn")),
        hamming_loss=HammingByCut(**_round_values(by_cut)),
        true_risk=TrueRisk(**_round_values(true_risks(scores, relevant))),
        risk=tuple(float(f"{value:.5g}") for value in history.risk),
        seconds=round(history.seconds, 2),
        held_out=tuple(round(score, DIGITS) for score in history.validation) or None,
        by_label={
            name: tuple(
                None if np.isnan(value) else round(value, LABEL_DIGITS)
                for value in table[name].tolist()
            )
            for name in LABEL_METRICS
        },
        **choice,
    )


def _round_values(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in metrics.items()}


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


def forget_peaks() -> None:
    """Let the peaks of memory start anew: a process may have run other tasks."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak becomes what is used now
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def read_peak() -> float | None:
    """Return the greatest memory of this process, in MiB; None where the system does not tell."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return None if found is None else round(int(found[1]) / 1024, 1)
    return None
