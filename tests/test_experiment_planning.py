"""The tasks of an experiment, their names and their keys."""

from pathlib import Path

import pytest

from comes.errors import ComesError
from comes.experiment.config import read_experiment
from comes.experiment.results import read_results
from comes.experiment.tasks import run_task, tasks_of
from small_experiments import NAME, small_tasks

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def test_a_sweep_is_a_task_for_every_value() -> None:
    sweep = {"key": "prior_noise", "values": [0.0, 0.5]}
    tasks = small_tasks(sweep=sweep)
    assert [(task.names.method, task.spec.prior_noise, task.names.sweep) for task in tasks] == [
        ("comes-hl", 0.0, "prior_noise"),
        ("comes-hl", 0.5, "prior_noise"),
        ("bce", 0.0, "prior_noise"),
        ("bce", 0.5, "prior_noise"),
    ]
    assert tasks[0].name == f"comes-hl on {NAME}, prior_noise 0"
    assert tasks[0].key == small_tasks()[0].key  # the same work, done once


def test_keys_depend_on_what_decides_the_result_alone() -> None:
    (one, other) = small_tasks()
    assert one.key != other.key
    renamed = small_tasks(name="renamed", methods=[{"method": "comes-hl", "label": "ours"}])
    assert renamed[0].key == one.key
    assert (renamed[0].names.method, renamed[0].spec.method) == ("ours", "comes-hl")
    assert small_tasks(seed=1)[0].key != one.key
    for again in (
        {"method": "bce", "label": "again"},
        {"method": "bce", "settings": {"epochs": 1}},
    ):
        with pytest.raises(ComesError, match=r"small has (bce|again) on scenes.* twice; give one"):
            small_tasks(methods=[{"method": "bce"}, {"method": "bce"} | again])


def test_a_task_with_rates_by_instance_keeps_its_key_and_says_that_they_were_removed() -> None:
    """The key is that of version 1.0.0, whose results are still found by it."""
    settings = {"exclude_rate": "instance"}
    (task,) = small_tasks(methods=[{"method": "likelihood", "settings": settings}])
    assert task.key == "77823a481c1b5343"
    with pytest.raises(ComesError, match="Rates that depend on the instance were removed"):
        run_task(task)


def test_settings_and_priors_of_a_method_come_before_those_of_the_experiment() -> None:
    own = {"method": "bce", "settings": {"epochs": 9}, "class_prior": "estimated"}
    mine, other = small_tasks(methods=[own, {"method": "gdf"}])
    assert mine.spec.settings == {"epochs": 9, "hidden": 8, "device": "cpu"}
    assert (mine.spec.class_prior, other.spec.class_prior) == ("estimated", "true")


def test_a_file_of_ones_own_that_changes_is_run_again(tmp_path: Path) -> None:
    method, data = tmp_path / "mine.py", tmp_path / "mine.npz"
    data.write_bytes(b"rows")
    keys = set()
    for text in ("def risk(scores, candidates): ...", "def risk(scores, candidates): pass"):
        method.write_text(text)
        choices = {"methods": [{"method": f"{method}:risk"}], "data": [{"name": str(data)}]}
        keys.add(small_tasks(**choices)[0].key)
    data.write_bytes(b"other rows")
    keys.add(small_tasks(**choices)[0].key)
    assert len(keys) == 3
    labelled = {"data": [{"name": str(data), "label": "photos of mine"}]}
    (task,) = small_tasks(**choices | labelled)
    assert task.names.data == "photos of mine"
    assert task.key in keys


def test_shipped_experiments_can_be_read_and_have_the_committed_results() -> None:
    paths = sorted(EXPERIMENTS.glob("*.toml"))
    assert len(paths) > 20
    for path in paths:
        tasks = {task.key: task for task in tasks_of(read_experiment(path))}
        assert tasks, path
        folder = EXPERIMENTS / "results" / path.stem
        if not folder.exists():
            assert path.stem == "smoke"
            continue
        assert {found.parent.name for found in folder.glob("*/result.json")} == set(tasks), path
        for result in read_results([folder]):
            spec = result.spec
            assert spec == tasks[spec.key].spec, path
            assert result.names == tasks[spec.key].names, path
            assert len(result.repeats) == (spec.label_seeds or spec.first_folds or spec.folds)
