"""Experiments: read from TOML, and turned into tasks with keys."""

from pathlib import Path

import pytest
from pydantic import ValidationError

import comes.experiment
from comes.errors import ComesError
from comes.experiment import read_experiment, tasks_of
from comes.results import read_results
from small_experiments import DATA, NAME, small_experiment, small_tasks

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fold = 3", "fold is no key of an experiment. Did you mean 'folds'?"),
        ("[[data]]\nnam = 'scenes'", "data.0.nam is no key .* mean 'name'"),
        ("zzz = 1", "zzz is no key of an experiment. Known are name, data"),
        ("folds = 1", "folds: Input should be greater than or equal to 2"),
        ("folds = 3\nlabel_seeds = 3", "give either folds or label_seeds"),
        ("label_seeds = 3", "label_seeds need a case for every data set"),
        ("folds = ", "is not TOML"),
        ("folds = 3\n[settings]\nepoch = 3", "settings has no 'epoch'. Did you mean 'epochs'"),
        ("folds = 3\n[[methods]]\nmethod = 'comes-hi'", "no 'comes-hi'. Did you mean 'comes-hl'"),
        ("folds = 3\n[[methods]]\nmethod = 'bce'\nlabel = ''", "label: .* at least 1 character"),
        ("folds = 3\n[sweep]\nkey = 'prior_noise'\nvalues = [0, -1]", "greater than or equal to 0"),
        ("folds = 3\n[sweep]\nkey = 'train_rows'\nvalues = [0, 9]", "greater than or equal to 1"),
        ("folds = 3\n[sweep]\nkey = 'seed'\nvalues = [1, 2]", "sweep.key: Input should be"),
        ("folds = 3\n[sweep]\nky = 'flood'", "sweep.ky is no key .* mean 'key'"),
    ],
)
def test_a_mistake_in_a_file_says_where_it_is(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    rest = "[[data]]\nname = 'scenes'\n[[methods]]\nmethod = 'bce'\n"
    path.write_text(f"name = 'wrong'\n{text}\n" + ("" if "[[data" in text else rest))
    with pytest.raises(ComesError, match=f"wrong.toml.*{message}"):
        read_experiment(path)


def test_a_mistake_in_how_a_file_is_read_is_found_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="read has no 'labls'. Did you mean 'labels'"):
        small_tasks(data=[{"name": "mine.csv", "read": {"labls": ["maybe"]}}])


def test_a_test_set_of_its_own_needs_label_seeds() -> None:
    with pytest.raises(ValidationError, match="needs label_seeds"):
        small_experiment(data=[DATA[0] | {"test": "test.csv"}], folds=2)


def test_images_have_settings_of_their_own_and_label_seeds() -> None:
    images = {"images": True, "folds": None, "label_seeds": 2, "settings": {"image_size": 32}}
    small_experiment(**images)
    for key, value, message in (
        ("settings", {"hidden": 5}, "settings has no 'hidden'"),
        ("label_seeds", None, "images are repeated over label_seeds|either folds or label_seeds"),
    ):
        with pytest.raises(ValidationError, match=message):
            small_experiment(**images | {key: value})


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="cannot be read: No such file"):
        read_experiment(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes("name = 'größe'".encode("latin-1"))
    with pytest.raises(ComesError, match="latin.toml is not TOML"):
        read_experiment(tmp_path / "latin.toml")


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_experiments_can_be_read_and_have_the_committed_results(path: Path) -> None:
    tasks = {task.key: task for task in tasks_of(read_experiment(path))}
    assert tasks
    folder = EXPERIMENTS / "results" / path.stem
    if not folder.exists():
        assert path.stem in ("smoke", "images-table3")
        return
    assert {found.parent.name for found in folder.glob("*/result.json")} == set(tasks)
    for result in read_results([folder]):
        spec = result.spec
        assert spec == tasks[spec.key].spec
        assert result.names == tasks[spec.key].names
        assert len(result.repeats) == (spec.label_seeds or spec.first_folds or spec.folds)


def test_the_door_has_what_it_says() -> None:
    assert set(comes.experiment.__all__) <= set(dir(comes.experiment))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        comes.experiment.nothing  # noqa: B018
