"""Trainings of a task: what classifiers know, and the settings that a search finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.answers import Answers
from comes.datasets import Dataset, make_scenes, write_dataset
from comes.errors import ComesError
from comes.experiment import tasks as fitting
from comes.experiment.config import SearchSpec, TaskSpec, as_json, read_experiment
from comes.experiment.tasks import Repeat, draw_repeats, load_data, run_task, tasks_of
from comes.generation import case_b
from comes.methods import METHODS, find_method
from refusals import refused
from small_experiments import DATA, SETTINGS, small_task, small_tasks


@pytest.fixture
def settings_of_classifiers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of all classifiers that a task would fit; the task is interrupted then."""
    seen: list[dict[str, Any]] = []

    def spy(classifiers: Any, *data: Any, **options: Any) -> Any:
        seen.extend(
            c.get_params(deep=False) | {"method": find_method(c.method)} for c in classifiers
        )
        raise InterruptedError

    monkeypatch.setattr(fitting, "fit_together", spy)
    return seen


def test_true_priors_come_from_training_rows_and_ccmn_knows_the_same(
    settings_of_classifiers: list[dict[str, Any]],
) -> None:
    seen = settings_of_classifiers
    task = small_task("ccmn", prior_noise=0.0)
    with pytest.raises(InterruptedError):
        run_task(task)
    dataset = load_data(task.spec.data)[0]
    for k, repeat in enumerate(draw_repeats(task.spec, dataset)):
        prior = dataset.known_relevant()[repeat.train].mean(axis=0)
        np.testing.assert_allclose(seen[k]["class_prior"], prior)
        assert seen[k]["method"].flip_rate == "class_prior"
        assert seen[k]["random_state"] == k
    own = {"methods": [{"method": "comes-hl", "class_prior": "estimated"}], "class_prior": "true"}
    for changes in ({"prior_noise": 0.3}, {"class_prior": "estimated"}, own):
        seen.clear()
        (task,) = small_tasks(**{"methods": [{"method": "comes-hl"}]} | changes)
        with pytest.raises(InterruptedError):
            run_task(task)
        given = seen[0]["class_prior"]
        assert (given is None) == ("class_prior" in changes)
        assert given is None or np.abs(given - prior).max() > 0.05
        assert given is None or (given.min() >= 0 and given.max() <= 0.999)
        assert seen[0]["method"].name == "comes-hl"


def test_what_is_estimated_is_not_told(settings_of_classifiers: list[dict[str, Any]]) -> None:
    with pytest.raises(InterruptedError):
        run_task(small_task("ccmn", class_prior="estimated"))
    assert settings_of_classifiers[0]["method"].flip_rate is None


def test_the_flood_level_is_in_units_of_the_floor_of_the_risk(
    settings_of_classifiers: list[dict[str, Any]],
) -> None:
    task = small_task("comes-rl", flood=0.5)
    with pytest.raises(InterruptedError):
        run_task(task)
    dataset = load_data(task.spec.data)[0]
    first = next(iter(draw_repeats(task.spec, dataset)))
    irrelevant = ~dataset.known_relevant()[first.train]
    floor = sum((irrelevant[:, j] & irrelevant[:, k]).mean() for j in range(10) for k in range(j))
    assert settings_of_classifiers[0]["method"].flood_level == pytest.approx(0.5 * floor)


def test_a_flood_level_that_is_left_out_is_the_papers(
    settings_of_classifiers: list[dict[str, Any]],
) -> None:
    """Stored results left it out when 0 was the default, and still mean that."""
    levels: tuple[tuple[dict[str, Any], Any], ...] = (
        ({}, 0.0),
        ({"flood_level": "auto"}, "auto"),
        ({"flood_level": 2}, 2),
    )
    for given, expected in levels:
        settings_of_classifiers.clear()
        with pytest.raises(InterruptedError):
            run_task(small_task("comes-rl", settings=SETTINGS | given))
        assert [own["method"].flood_level for own in settings_of_classifiers] == [expected] * 3


def make_classifier(spec: TaskSpec) -> Any:
    """Return the classifier of a task, with rows of no data set."""
    repeat = Repeat(0, np.arange(30), np.arange(30, 50), np.zeros((50, 4), dtype=bool))
    relevant = np.random.default_rng(0).random((50, 4)) < 0.3
    dataset = Dataset(np.zeros((50, 1)), list("abcd"), relevant=relevant)
    return fitting._make_classifier(spec, dataset, repeat, {})


# What version 1.0.0 made of a spec that names no setting; these numbers belong to stored results.
PAPER: dict[str, Any] = {
    "epochs": 200,
    "batch_size": 256,
    "learning_rate": 5e-3,
    "dropout": 0.0,
    "n_networks": 1,
    "optimizer": {"name": "sgd", "starts_at_prior": False},
}
MEASURED: dict[str, Any] = {
    "epochs": None,
    "batch_size": 64,
    "learning_rate": 5e-4,
    "dropout": 0.5,
    "n_networks": 4,
    "optimizer": {"name": "adam", "starts_at_prior": True},
}
ROWS: dict[str, Any] = {
    "model": "mlp",
    "hidden": 500,
    "weight_decay": 1e-4,
    "threshold": "half",
    "early_stopping": False,
    "rates": None,
    "encoder": None,
    "patience": None,
    "device": "auto",
    "require_candidates": False,
    "callbacks": None,
    "warm_start": False,
}
IMAGES: dict[str, Any] = {
    "backbone": "resnet50",
    "weights": "imagenet",
    "image_size": None,
    "features": "auto",
    "probe_epochs": None,
    "epochs": 0,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "backbone_learning_rate": 1e-5,
    "weight_decay": 0.0,
    "optimizer": None,
    "augment": "flip",
    "soft_targets": None,
    "threshold": "half",
    "early_stopping": False,
    "patience": None,
    "part_size": None,
    "precision": "auto",
    "device": "auto",
    "rates": None,
}


def test_what_a_spec_leaves_out_is_what_1_0_0_had() -> None:
    """Whatever the classifiers do by default."""
    images = {"images": True, "folds": None, "label_seeds": 2}
    for method in METHODS:
        measured = MEASURED if method in ("likelihood", "bce") else PAPER
        expected: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
            ({}, ROWS | PAPER | {"scale": "dense"}),
            ({"training": "default"}, ROWS | measured | {"scale": "columns"}),
            (images, IMAGES),
        )
        for changes, settings in expected:
            own = {"method": method} | {k: v for k, v in changes.items() if k == "training"}
            changes = {k: v for k, v in changes.items() if k != "training"}
            (task,) = small_tasks(methods=[own], settings={}, class_prior="estimated", **changes)
            found = make_classifier(task.spec).get_params(deep=False)
            of_method = find_method(found.pop("method")).get_params()
            usual: dict[str, Any] = {} if task.spec.training else {"flood_level": 0.0}
            known = METHODS[method].get_params()
            assert of_method == known | {k: v for k, v in usual.items() if k in known}, method
            told = {"class_prior": None, "random_state": 0, "verbose": -1}
            assert found == settings | told, (method, changes)


def test_training_by_default_is_a_choice_that_changes_the_key() -> None:
    (plain,) = small_tasks(methods=[{"method": "bce"}])
    (task,) = small_tasks(methods=[{"method": "bce", "training": "default"}])
    assert plain.spec.training is None and task.spec.training == "default"
    assert plain.key != task.key and "training" not in as_json(plain.spec)
    with pytest.raises(ValueError, match="training"):
        small_tasks(methods=[{"method": "bce", "training": "other"}])


def test_experiments_of_1_0_0_can_be_run_but_for_features_that_are_gone() -> None:
    root, gone, n = Path(__file__).parents[1] / "experiments", set(), 0
    for path in sorted(root.glob("*.toml")):
        for task in tasks_of(read_experiment(path)):
            classifier, n = make_classifier(task.spec), n + 1
            features = task.spec.settings.get("features")
            if features not in ("both", "classes", "clusters"):
                classifier._check_settings()
                continue
            with refused(f"features='{features}' was removed after version 1.0.0; what was stored"):
                classifier.fit(np.zeros((4, 8, 8, 3), np.uint8), np.ones((4, 2), bool))
            gone.add((path.name, features))
    assert n > 500
    assert gone == {
        ("images-ablation.toml", "classes"),
        *(("images-views.toml", features) for features in ("both", "classes", "clusters")),
    }


def test_the_stored_results_of_the_paper_have_the_keys_of_its_config() -> None:
    """A setting that is left out is not part of the key, whatever its default has become."""
    root = Path(__file__).parents[1] / "experiments"
    tasks = tasks_of(read_experiment(root / "paper.toml"))
    of_the_paper = [
        task
        for task in tasks
        if "flood_level" not in task.spec.settings and task.spec.training is None
    ]
    assert len(of_the_paper) == 32
    for task in of_the_paper:
        assert (root / "results" / "paper" / task.key / "result.json").exists(), task.name


def test_a_search_chooses_by_what_was_said_about_held_out_rows() -> None:
    """A learning rate that cannot learn is never chosen."""
    for criterion in ("trained_risk", "own_risk", "log_likelihood", "ranking"):
        grid = {"learning_rate": [1e-9, 5e-2], "epochs": [9], "extend": False}
        search = grid | {"criterion": criterion}
        data = [DATA[0] | {"rows": 400}]
        result = run_task(small_task("comes-hl", search=search, first_folds=1, data=data))
        (repeat,) = result.repeats
        assert repeat.chosen == {"learning_rate": 5e-2, "epochs": 9}, criterion
        assert len(repeat.risk) == 9
        told = criterion != "trained_risk"  # as early results were found, and what they say
        edge = ("learning_rate 0.05 is the greatest tried",)
        assert (repeat.tied, repeat.edges) == ((0, edge) if told else (None, None)), criterion


def test_a_search_goes_beyond_the_edge_of_its_grid() -> None:
    """Ten times further at most, three times."""
    search = {"learning_rate": [1e-7, 1e-4], "epochs": [9], "criterion": "own_risk"}
    result = run_task(small_task("bce", search=search, first_folds=1))
    assert result.repeats[0].chosen == {"learning_rate": pytest.approx(0.1), "epochs": 9}


def test_a_search_takes_any_setting_of_the_classifier() -> None:
    search = {"hidden": [4, 8], "flood_level": [0.0, 5.0], "criterion": "own_risk"}
    task = small_task("comes-rl", search=search, first_folds=1)
    assert as_json(task.spec)["search"]["settings"] == {"hidden": [4, 8], "flood_level": [0.0, 5.0]}
    (repeat,) = run_task(task).repeats
    assert repeat.chosen is not None and list(repeat.chosen) == ["hidden", "flood_level"]
    assert repeat.chosen["hidden"] in (4, 8)
    with refused("search has no 'hiden'. Did you mean 'hidden'?"):
        small_task(search={"hiden": [4, 8]})
    with refused("search has no 'heldout'. Did you mean 'held_out'?"):
        small_task(search={"epochs": [3], "heldout": [0.3]})


def test_what_a_search_leaves_out_means_what_it_meant_in_early_results() -> None:
    grid = {"learning_rate": [0.1], "epochs": [3]}
    early = small_task(search=grid | {"criterion": "trained_risk"}).spec
    assert early.search == SearchSpec(learning_rate=(0.1,), epochs=(3,), held_out=0.2)
    now = small_task(search=grid).spec
    assert now.search is not None and early.key != now.key
    assert (now.search.criterion, now.search.extend) == ("log_likelihood", True)


def test_a_trial_that_diverges_is_not_chosen_and_loses_no_other() -> None:
    search = {"learning_rate": [1e30, 5e-2], "epochs": [5], "extend": False}
    settings = SETTINGS | {"momentum": 0.0}
    task = small_task("comes-hl-unbiased", search=search, first_folds=2, settings=settings)
    chosen = [repeat.chosen for repeat in run_task(task).repeats]
    assert chosen == [{"learning_rate": 5e-2, "epochs": 5}] * 2


def test_data_and_a_method_of_ones_own(tmp_path: Path) -> None:
    scenes = make_scenes(n=300)
    candidates = case_b(scenes.known_relevant(), exclude_rate=0.5)
    write_dataset(
        replace(scenes, answers=Answers.from_candidates(candidates)), tmp_path / "mine.npz"
    )
    (tmp_path / "mine.py").write_text(
        "def risk(scores, candidates):\n    return (scores * ~candidates).square().mean()\n"
        "def knowing(scores, candidates, class_prior):\n"
        "    assert class_prior.shape == (10,) and 0 < class_prior.min() < class_prior.max() < 1\n"
        "    return ((scores.sigmoid() - class_prior) * ~candidates).square().mean()\n"
    )
    data = [{"name": str(tmp_path / "mine.npz")}]
    for function, prior in (("risk", "true"), ("knowing", "true"), ("knowing", "estimated")):
        methods = [{"method": f"{tmp_path / 'mine.py'}:{function}", "label": "my risk"}]
        (task,) = small_tasks(data=data, methods=methods, class_prior=prior)
        assert (task.names.data, task.names.method) == ("mine", "my risk")
        assert len(run_task(task).repeats) == 3
    for wrong, message in (
        ("mine.py:nothing", "has no nothing"),
        ("no.py:risk", "not a Python file"),
    ):
        with pytest.raises(ComesError, match=message):
            fitting.load_method(f"{tmp_path / wrong}")
