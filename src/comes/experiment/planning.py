"""The tasks of an experiment: every method on every data set, at every value of a sweep."""

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from comes.errors import ComesError
from comes.experiment.config import DataChoice, Experiment, MethodChoice, Search
from comes.experiment.tasks import Task
from comes.results import AnswerSpec, DataSpec, Names, SearchSpec, TaskSpec


def tasks_of(experiment: Experiment) -> list[Task]:
    """Return the tasks of an experiment; no two have the same name or do the same.

    Parameters
    ----------
    experiment : Experiment
        As `read_experiment` returns it.

    Returns
    -------
    tasks : list of Task

    Examples
    --------
    >>> methods = [{"method": "bce"}, {"method": "comes-hl", "label": "ours"}]
    >>> values = {"name": "tiny", "folds": 3, "data": [{"name": "scenes"}], "methods": methods}
    >>> [task.name for task in tasks_of(Experiment.model_validate(values))]
    ['bce on scenes', 'ours on scenes']
    """
    values = [None] if experiment.sweep is None else experiment.sweep.values
    tasks = [
        _make_task(experiment, data, method, value)
        for data, method, value in itertools.product(
            experiment.drawn_data, experiment.methods, values
        )
    ]
    names: dict[str, Task] = {}
    for task in tasks:
        if task.name in names or task.key in {other.key for other in names.values()}:
            raise ComesError(
                f"{experiment.name} has {task.name} twice; give one another label, or leave it out."
            )
        names[task.name] = task
    return tasks


def _make_task(
    experiment: Experiment, data: DataChoice, method: MethodChoice, value: float | None
) -> Task:
    """Return the task of a method on a data set, at a value of the sweep if there is one."""
    search, sweep = experiment.search, experiment.sweep
    rates = method.answer_rates or experiment.answer_rates
    spec = TaskSpec(
        folds=experiment.folds,
        first_folds=experiment.first_folds,
        label_seeds=experiment.label_seeds,
        test_share=experiment.test_share,
        seed=experiment.seed,
        class_prior=method.class_prior or experiment.class_prior,
        prior_noise=experiment.prior_noise,
        images=experiment.images,
        search=None if search is None else _make_search_spec(search),
        data=_make_data_spec(data),
        method=method.method,
        settings=experiment.settings | method.settings,
        content=_hash_files(data.name, method.method.rpartition(":")[0]),
        flood=experiment.flood,
        train_rows=experiment.train_rows,
        sees=method.sees or (None if data.answers is None else "all"),
        answer_rates="true" if rates == "true" else None,
        training=method.training,
    )
    varied: dict[str, Any] = {} if sweep is None else {sweep.key: value}
    names = Names(experiment.name, data.title, method.name, None if sweep is None else sweep.key)
    return Task(names, replace(spec, **varied))


def _make_data_spec(data: DataChoice) -> DataSpec:
    """Return what of a data set decides a result."""
    answers = None if data.answers is None else AnswerSpec(**data.answers.model_dump())
    return DataSpec(**data.model_dump(exclude={"label", "answers"}), answers=answers)


def _make_search_spec(search: Search) -> SearchSpec:
    """Return what of a search decides a result; what is left out is as it was in early results."""
    kept = search.model_dump(include={"learning_rate", "epochs", "held_out"})
    if search.criterion == "trained_risk":
        return SearchSpec(**kept)
    return SearchSpec(**kept, criterion=search.criterion, extend=True if search.extend else None)


def _hash_files(*names: str) -> str | None:
    """Return a hash of the user's own files, so that a task is run again when they change."""
    files = [path for path in map(Path, names) if path.is_file()]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files]
    return "".join(hashes) or None
