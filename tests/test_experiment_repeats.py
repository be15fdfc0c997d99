"""Repeats of a task: rows, and candidates for the rows trained on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.datasets import make_scenes
from comes.errors import ComesError
from comes.experiment.results import Size
from comes.experiment.tasks import draw_repeats, load_data, run_task
from small_experiments import DATA, small_task, small_tasks

BIG = [DATA[0] | {"rows": 2000}]


def test_folds_cover_every_row_once_and_labels_are_made_for_training_rows_only() -> None:
    task = small_task(data=BIG, folds=4)
    dataset = load_data(task.spec.data)[0]
    relevant = dataset.known_relevant()
    repeats = list(draw_repeats(task.spec, dataset))
    assert sorted(np.concatenate([r.test for r in repeats])) == list(range(2000))
    for repeat in repeats:
        assert repeat.labels[repeat.test].all()
        assert not (relevant & ~repeat.labels).any()
        share = (~repeat.labels[repeat.train]).sum() / (~relevant[repeat.train]).sum()
        assert share == pytest.approx(0.5, abs=0.01)
    (first,) = draw_repeats(replace(task.spec, first_folds=1), dataset)
    assert (first.test == repeats[0].test).all()


def test_another_seed_has_other_folds() -> None:
    one, other = (small_task(seed=seed) for seed in (0, 1))
    dataset = load_data(one.spec.data)[0]
    tests = [next(iter(draw_repeats(task.spec, dataset))).test for task in (one, other)]
    assert set(tests[0]) != set(tests[1])


def test_label_seeds_share_their_test_rows() -> None:
    task = small_task(folds=None, label_seeds=2, test_share=0.25)
    one, two = draw_repeats(task.spec, load_data(task.spec.data)[0])
    assert (one.test == two.test).all()
    assert len(one.test) == 75
    assert (one.labels != two.labels).any()


def test_scenes_have_two_thousand_rows_unless_told() -> None:
    task = small_task(data=[{"name": "scenes", "case": "b"}])
    assert len(load_data(task.spec.data)[0]) == 2000


def test_fewer_rows_are_trained_on_and_the_same_tested() -> None:
    for repeated in ({"folds": 3}, {"folds": None, "label_seeds": 3}):
        task, whole = small_task(train_rows=100, **repeated), small_task(**repeated)
        dataset = load_data(task.spec.data)[0]
        for some, all_ in zip(
            draw_repeats(task.spec, dataset), draw_repeats(whole.spec, dataset), strict=True
        ):
            assert len(set(some.train)) == 100
            assert set(some.train) < set(all_.train)
            assert not np.array_equal(some.train, all_.train[:100])
            assert (some.test == all_.test).all()


def test_features_with_names_can_be_repeated_over(tmp_path: Path) -> None:
    table = pd.DataFrame(make_scenes(n=60).X[:, :5]).add_prefix("pixel ")
    table["truth"] = ["a", "b", "a;c"] * 20
    table["maybe"] = ["a;b", "b;c", "a;c"] * 20
    table.to_parquet(tmp_path / "named.parquet")
    read = {"labels": ["maybe"], "relevant": ["truth"]}
    data: list[dict[str, Any]] = [{"name": str(tmp_path / "named.parquet"), "read": read}]
    data += [data[0] | {"case": "b", "rate": 0.5}]
    own, made = small_tasks(data=data, methods=[{"method": "bce"}])
    assert (own.names.data, made.names.data) == ("named", "named, case b 0.5")
    for task in (own, made):
        assert run_task(task).size == Size(n=60, d=5, q=3)


def test_data_without_candidates_needs_a_case() -> None:
    with pytest.raises(ComesError, match="comes without candidates; give it a case"):
        run_task(small_task(data=[{"name": "scenes"}]))


def test_a_test_set_of_its_own_is_never_trained_on(tmp_path: Path) -> None:
    for name, seed in (("train", 0), ("test", 1)):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(60, 3)), columns=pd.Index(["u", "v", "w"]))
        table["is_sky"], table["is_sea"] = (
            (table["u"] > 0).astype(int),
            (table["v"] > 0).astype(int),
        )
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    data = {
        "name": str(tmp_path / "train.csv"),
        "test": str(tmp_path / "test.csv"),
        "case": "b",
        "rate": 0.5,
        "read": {"relevant": ["is_*"]},
    }
    task = small_task(data=[data], folds=None, label_seeds=2)
    dataset, n_train = load_data(task.spec.data)
    assert n_train == 60 and len(dataset) == 120
    for repeat in draw_repeats(task.spec, dataset, n_train):
        assert repeat.train.tolist() == list(range(60))
        assert repeat.test.tolist() == list(range(60, 120))
        assert repeat.labels[60:].all()  # nothing is said of them
    assert run_task(task).size == Size(n=120, d=3, q=2)
