"""Experiments: read from TOML, run once, resumed, sharded, and the same however they are run."""

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from comes.cli import app
from comes.datasets import make_scenes, write_dataset
from comes.errors import ComesError
from comes.experiment import Task, run_task, run_tasks, running
from comes.experiment.config import Experiment, read_experiment, tasks_of
from comes.experiment.tasks import load, repeats_of
from comes.generation import case_b
from comes.metrics import METRICS
from comes.report import read_runs, write_report
from pictures import write_pictures

SETTINGS = {"epochs": 2, "hidden": 8, "device": "cpu"}
DATA = [{"name": "scenes", "case": "b", "rate": 0.5}]


def experiment(**changes: Any) -> Experiment:
    values: dict[str, Any] = {"name": "small", "folds": 3, "data": DATA, "settings": SETTINGS}
    values["methods"] = [{"method": "comes-hl"}, {"method": "bce"}]
    return Experiment.model_validate(values | changes)


def small_tasks(**changes: Any) -> list[Task]:
    return tasks_of(experiment(**changes))


def results(folder: Path) -> dict[str, Any]:
    """Return what the results say, without what depends on the machine."""
    found = {}
    for path in folder.glob("*/result.json"):
        result = json.loads(path.read_text())
        for repeat in result["repeats"]:
            del repeat["seconds"]
        found[path.parent.name] = {k: v for k, v in result.items() if k != "seconds"}
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all small tasks were run at once."""
    folder = tmp_path_factory.mktemp("whole")
    outcome = run_tasks(small_tasks(), folder)
    assert (outcome.done, outcome.kept, outcome.failed) == (2, 0, {})
    return folder


def test_a_result_says_what_was_run_and_how_it_went(whole: Path) -> None:
    (task, _) = small_tasks()
    result = json.loads((whole / task.key / "result.json").read_text())
    assert (result["data"], result["method"]) == ("scenes, case b 0.5", "comes-hl")
    assert result["spec"] == task.spec
    assert result["size"] == {"n": 2000, "d": 256, "q": 10}
    assert set(result["versions"]) == {"comes", "torch", "numpy", "python"}
    assert len(result["repeats"]) == 3
    for repeat in result["repeats"]:
        assert set(repeat["pml"]) == set(repeat["sklearn"]) == set(METRICS)
        assert set(repeat["hamming_loss"]) == {"zero", "minmax"}
        assert len(repeat["risk"]) == 2
        assert all(math.isfinite(value) for value in repeat["pml"].values())


def test_what_was_run_is_not_run_again(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.glob("*/result.json")}
    monkeypatch.setattr(running, "run_task", lambda task: pytest.fail("was run again"))
    assert run_tasks(small_tasks(), whole).kept == 2
    assert before == {path: path.stat().st_mtime_ns for path in whole.glob("*/result.json")}


def test_shards_make_the_whole(whole: Path, tmp_path: Path) -> None:
    assert run_tasks(small_tasks(), tmp_path, shard=(1, 2)).done == 1
    assert run_tasks(small_tasks(), tmp_path, shard=(2, 2)).done == 1
    assert results(tmp_path) == results(whole)


def test_more_workers_give_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    run_tasks(small_tasks(), tmp_path, workers=2)
    assert results(tmp_path) == results(whole)


def test_a_cluster_gives_the_same_numbers(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster:
        monkeypatch.chdir(tmp_path)  # where the workers are not
        address = cluster.scheduler_address
        outcome = run_tasks(small_tasks(), "runs", backend="dask", scheduler=address, workers=2)
    assert (outcome.done, outcome.failed) == (2, {})
    assert results(tmp_path / "runs") == results(whole)


def test_a_killed_command_goes_on_and_gives_the_same_page(tmp_path: Path) -> None:
    """Killed after the first result; what was finished is not touched again."""
    config = tmp_path / "small.toml"
    config.write_text(
        "name = 'small'\nfolds = 3\n[settings]\nepochs = 3\nhidden = 32\n"
        "[[data]]\nname = 'scenes'\ncase = 'b'\nrate = 0.5\n"
        + "".join(f"[[methods]]\nmethod = '{m}'\n" for m in ("bce", "ccmn", "ctl", "comes-hl"))
    )
    start = [sys.executable, "-c", "from comes.cli import main; main()", "bench", str(config)]
    start += ["--workers", "1", "-o"]
    killed = subprocess.Popen([*start, str(tmp_path / "killed")], start_new_session=True)
    while not (done := list((tmp_path / "killed").glob("*/result.json"))):
        assert killed.poll() is None
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    done = list((tmp_path / "killed").glob("*/result.json"))
    assert 1 <= len(done) < 4
    before = {path: path.stat().st_mtime_ns for path in done}
    subprocess.run([*start, str(tmp_path / "killed")], check=True, capture_output=True)
    assert before == {path: path.stat().st_mtime_ns for path in done}
    for shard in ("1/2", "2/2"):
        assert not (tmp_path / "shards" / "report").exists()  # before all is there
        command = [*start, str(tmp_path / "shards"), "--shard", shard]
        subprocess.run(command, check=True, capture_output=True)
    command = [*start, str(tmp_path / "whole")]
    subprocess.run(command, check=True, capture_output=True)
    pages = [tmp_path / name / "report" for name in ("killed", "shards", "whole")]
    for name in ("metrics.csv", "tables.tex"):
        assert len({(page / name).read_bytes() for page in pages}) == 1
    assert all((page / "index.html").exists() for page in pages)


def test_a_stopped_run_goes_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def interrupted(task: Task, folder: Path) -> Any:
        calls.append(task)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_task(task, folder)

    with monkeypatch.context() as patched:
        patched.setattr(running, "run_task", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_tasks(small_tasks(), tmp_path)
    assert len(results(tmp_path)) == 1
    outcome = run_tasks(small_tasks(), tmp_path)
    assert (outcome.done, outcome.kept) == (1, 1)
    assert results(tmp_path) == results(whole)


def test_a_failing_task_is_written_down_and_the_rest_goes_on(tmp_path: Path) -> None:
    methods = [{"method": "bce", "settings": {"epochs": 0}}, {"method": "bce", "label": "good"}]
    tasks = small_tasks(methods=methods)
    outcome = run_tasks(tasks, tmp_path)
    assert outcome.done == 1
    message = "ComesError: epochs must be a whole number of at least 1; got 0."
    assert outcome.failed == {"bce on scenes, case b 0.5": message}
    assert message in (tmp_path / tasks[0].key / "error.txt").read_text()
    assert not (tmp_path / tasks[0].key / "result.json").exists()
    assert run_tasks(tasks, tmp_path).kept == 1  # the other is tried again


def test_every_failing_task_of_a_sweep_is_named(tmp_path: Path) -> None:
    sweep = {"key": "train_rows", "values": [100, 10**6, 10**7]}
    tasks = small_tasks(methods=[{"method": "bce"}], sweep=sweep)
    outcome = run_tasks(tasks, tmp_path)
    assert outcome.done == 1
    assert list(outcome.failed) == [
        "bce on scenes, case b 0.5, train_rows 1e+06",
        "bce on scenes, case b 0.5, train_rows 1e+07",
    ]
    message = "ComesError: train_rows is 1000000, and there are 1333 rows to train on."
    assert message in outcome.failed.values()
    error = (tmp_path / tasks[1].key / "error.txt").read_text()
    assert error.startswith("bce on scenes, case b 0.5, train_rows 1e+06\nTraceback")


def test_folds_cover_every_row_once_and_labels_are_made_for_training_rows_only() -> None:
    (task,) = small_tasks(methods=[{"method": "bce"}], folds=4)
    dataset = load(task.spec).dataset
    relevant = dataset.known_relevant()
    repeats = list(repeats_of(task.spec, dataset))
    assert sorted(np.concatenate([r.test for r in repeats])) == list(range(2000))
    for repeat in repeats:
        assert repeat.candidates[repeat.test].all()
        assert not (relevant & ~repeat.candidates).any()
        share = (~repeat.candidates[repeat.train]).sum() / (~relevant[repeat.train]).sum()
        assert share == pytest.approx(0.5, abs=0.01)
    (first,) = repeats_of(task.spec | {"first_folds": 1}, dataset)
    assert (first.test == repeats[0].test).all()


def test_label_seeds_share_their_test_rows() -> None:
    (task,) = small_tasks(methods=[{"method": "bce"}], folds=None, label_seeds=2, test_share=0.25)
    one, two = repeats_of(task.spec, load(task.spec).dataset)
    assert (one.test == two.test).all()
    assert len(one.test) == 500
    assert (one.candidates != two.candidates).any()


@pytest.fixture
def settings_of_classifiers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of all classifiers that a task would fit; the task is interrupted then."""
    seen: list[dict[str, Any]] = []

    def spy(classifiers: Any, *data: Any, **options: Any) -> Any:
        seen.extend(c.get_params() for c in classifiers)
        raise InterruptedError

    monkeypatch.setattr(running, "fit_together", spy)
    return seen


def test_true_priors_come_from_training_rows_and_ccmn_knows_the_same(
    settings_of_classifiers: list[dict[str, Any]],
) -> None:
    seen = settings_of_classifiers
    (task,) = small_tasks(methods=[{"method": "ccmn"}], prior_noise=0.0)
    with pytest.raises(InterruptedError):
        run_task(task)
    dataset = load(task.spec).dataset
    for k, repeat in enumerate(repeats_of(task.spec, dataset)):
        prior = dataset.known_relevant()[repeat.train].mean(axis=0)
        np.testing.assert_allclose(seen[k]["class_prior"], prior)
        assert seen[k]["flip_rate"] == "class_prior"
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


def test_a_sweep_is_a_task_for_every_value() -> None:
    sweep = {"key": "prior_noise", "values": [0.0, 0.5]}
    tasks = small_tasks(sweep=sweep)
    assert [(task.method, task.spec["prior_noise"], task.sweep) for task in tasks] == [
        ("comes-hl", 0.0, "prior_noise"),
        ("comes-hl", 0.5, "prior_noise"),
        ("bce", 0.0, "prior_noise"),
        ("bce", 0.5, "prior_noise"),
    ]
    assert tasks[0].key == small_tasks()[0].key  # the same work, done once


def test_the_flood_level_is_in_units_of_the_floor_of_the_risk(
    settings_of_classifiers: list[dict[str, Any]],
) -> None:
    (task,) = small_tasks(methods=[{"method": "comes-rl"}], flood=0.5)
    with pytest.raises(InterruptedError):
        run_task(task)
    dataset = load(task.spec).dataset
    first = next(iter(repeats_of(task.spec, dataset)))
    irrelevant = ~dataset.known_relevant()[first.train]
    floor = sum((irrelevant[:, j] & irrelevant[:, k]).mean() for j in range(10) for k in range(j))
    assert settings_of_classifiers[0]["flood_level"] == pytest.approx(0.5 * floor)


def test_fewer_rows_are_trained_on_and_the_same_tested() -> None:
    for repeated in ({"folds": 3}, {"folds": None, "label_seeds": 3}):
        (task,) = small_tasks(methods=[{"method": "bce"}], train_rows=100, **repeated)
        (whole,) = small_tasks(methods=[{"method": "bce"}], **repeated)
        dataset = load(task.spec).dataset
        for some, all_ in zip(
            repeats_of(task.spec, dataset), repeats_of(whole.spec, dataset), strict=True
        ):
            assert len(set(some.train)) == 100
            assert set(some.train) < set(all_.train)
            assert not np.array_equal(some.train, all_.train[:100])
            assert (some.test == all_.test).all()


def test_true_risks_are_their_definitions() -> None:
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=(7, 4)), rng.random((7, 4)) < 0.4
    hamming = ranking = 0.0
    for g, y in zip(scores, relevant, strict=True):
        hamming += sum(math.log1p(math.exp(-s if r else s)) for s, r in zip(g, y, strict=True)) / 4
        for j in range(4):
            for k in range(4):
                if y[j] and not y[k]:
                    ranking += 1 / (1 + math.exp(g[j] - g[k]))
    risks = running._true_risks(scores, relevant)
    assert risks == {"hamming": pytest.approx(hamming / 7), "ranking": pytest.approx(ranking / 7)}


def test_features_with_names_can_be_repeated_over(tmp_path: Path) -> None:
    table = pd.DataFrame(make_scenes(n=60).X[:, :5]).add_prefix("pixel ")
    table["truth"] = ["a", "b", "a;c"] * 20
    table["maybe"] = ["a;b", "b;c", "a;c"] * 20
    table.to_parquet(tmp_path / "named.parquet")
    read = {"labels": ["maybe"], "relevant": ["truth"]}
    data: list[dict[str, Any]] = [{"name": str(tmp_path / "named.parquet"), "read": read}]
    data += [data[0] | {"case": "b", "rate": 0.5}]
    own, made = small_tasks(data=data, methods=[{"method": "bce"}])
    assert (own.data, made.data) == ("named", "named, case b 0.5")
    for task in (own, made):
        assert run_task(task)["size"] == {"n": 60, "d": 5, "q": 3}
    wrong = data[0] | {"read": {"labls": ["maybe"]}}
    with pytest.raises(ValueError, match="read has no 'labls'. Did you mean 'labels'"):
        small_tasks(data=[wrong])


def test_a_search_chooses_by_the_risk_of_held_out_candidates() -> None:
    """A learning rate that cannot learn is never chosen."""
    search = {"learning_rate": [1e-9, 5e-2], "epochs": [5]}
    (task,) = small_tasks(methods=[{"method": "comes-hl"}], search=search, first_folds=2)
    result = run_task(task)
    assert [r["chosen"] for r in result["repeats"]] == [{"learning_rate": 5e-2, "epochs": 5}] * 2


def test_a_trial_that_diverges_is_not_chosen_and_loses_no_other() -> None:
    search = {"learning_rate": [1e30, 5e-2], "epochs": [5]}
    settings = SETTINGS | {"momentum": 0.0}
    methods = [{"method": "comes-hl-unbiased"}]
    (task,) = small_tasks(methods=methods, search=search, first_folds=2, settings=settings)
    chosen = [repeat["chosen"]["learning_rate"] for repeat in run_task(task)["repeats"]]
    assert chosen == [5e-2, 5e-2]


def test_data_and_a_method_of_ones_own(tmp_path: Path) -> None:
    scenes = make_scenes(n=300)
    candidates = case_b(scenes.known_relevant(), exclude_rate=0.5)
    write_dataset(replace(scenes, candidates=candidates), tmp_path / "mine.npz")
    (tmp_path / "mine.py").write_text(
        "def risk(scores, candidates):\n    return (scores * ~candidates).square().mean()\n"
    )
    data = [{"name": str(tmp_path / "mine.npz")}]
    methods = [{"method": f"{tmp_path / 'mine.py'}:risk", "label": "my risk"}]
    (task,) = small_tasks(data=data, methods=methods)
    assert (task.data, task.method) == ("mine", "my risk")
    assert len(run_task(task)["repeats"]) == 3
    for wrong, message in (("mine.py:nothing", "has no nothing"), ("no.py:risk", "no Python file")):
        with pytest.raises(ComesError, match=message):
            running._method(f"{tmp_path / wrong}")


def test_keys_depend_on_what_decides_the_result_alone() -> None:
    (one, other) = small_tasks()
    assert one.key != other.key
    renamed = small_tasks(name="renamed", methods=[{"method": "comes-hl", "label": "ours"}])
    assert renamed[0].key == one.key
    assert small_tasks(seed=1)[0].key != one.key
    for again in (
        {"method": "bce", "label": "again"},
        {"method": "bce", "settings": {"epochs": 1}},
    ):
        with pytest.raises(ComesError, match=r"small has (bce|again) on scenes.* twice; give one"):
            small_tasks(methods=[{"method": "bce"}, {"method": "bce"} | again])


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
    assert task.data == "photos of mine"
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


def test_what_cannot_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ComesError, match="cannot be read: No such file"):
        read_experiment(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes("name = 'größe'".encode("latin-1"))
    with pytest.raises(ComesError, match="latin.toml is not TOML"):
        read_experiment(tmp_path / "latin.toml")
    with pytest.raises(ComesError, match="latin.toml cannot be a folder of results: File exists"):
        run_tasks(small_tasks(), tmp_path / "latin.toml")
    with pytest.raises(ComesError, match=r"a shard is 1/N to N/N; got 3/2"):
        run_tasks(small_tasks(), tmp_path, shard=(3, 2))
    with pytest.raises(ComesError, match="backend must be loky, dask or ray"):
        run_tasks(small_tasks(), tmp_path, backend="slurm")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ComesError, match="backend dask needs a package: pip install distributed"):
        run_tasks(small_tasks(), tmp_path, backend="dask")
    (task,) = small_tasks(data=[{"name": "scenes"}], methods=[{"method": "bce"}])
    with pytest.raises(ComesError, match="no candidates of its own; give it a case"):
        run_task(task)


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("experiments/*.toml")))
def test_shipped_experiments_can_be_read(path: Path) -> None:
    assert tasks_of(read_experiment(path))


@pytest.mark.parametrize(
    "name",
    [
        *("paper", "variants", "fair", "synthetic", "settings"),
        *("prior-noise", "flood", "rows", "stopping", "thresholds"),
        *("images-probe", "images-paper", "images-clean"),
        *("images-tuned", "images-paper-others"),
    ],
)
def test_committed_results_are_those_of_the_shipped_experiment(name: str) -> None:
    home = Path(__file__).parents[1] / "experiments"
    tasks = {task.key: task for task in tasks_of(read_experiment(home / f"{name}.toml"))}
    found = {p.parent.name: p for p in (home / "results" / name).glob("*/result.json")}
    assert set(found) == set(tasks)
    for key, path in found.items():
        result = json.loads(path.read_text())
        assert result["spec"] == tasks[key].spec
        spec = tasks[key].spec
        n_repeats = spec.get("label_seeds", spec.get("first_folds", spec.get("folds")))
        assert len(result["repeats"]) == n_repeats


def test_the_command_runs_shows_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(
        "name = 'small'\nfolds = 2\n[settings]\nepochs = 1\nhidden = 4\n"
        "[[data]]\nname = 'scenes'\ncase = 'b'\n"
        "[[methods]]\nmethod = 'bce'\n"
        "[[methods]]\nmethod = 'ctl'\nsettings = { variant = 'none' }\n"
    )
    command = ["bench", "small.toml", "--workers", "1", "--json"]
    for done, kept in ((1, 0), (0, 1)):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1  # one method has no such variant
        assert "Error: ctl on scenes, case b: ComesError: variant of ctl" in result.stderr
        shown = json.loads(result.stdout)
        assert (shown["done"], shown["kept"], shown["folder"]) == (done, kept, "runs/small")
        assert [row["method"] for row in shown["means"]] == ["bce"]
        assert 0 < shown["means"][0]["average_precision"] < 1
    wrong = CliRunner().invoke(app, ["bench", "small.toml", "--shard", "2-8"])
    assert "must look like 2/8" in str(wrong.exception)


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
    (task,) = small_tasks(data=[data], methods=[{"method": "bce"}], folds=None, label_seeds=2)
    dataset, n_train = load(task.spec)
    assert n_train == 60 and len(dataset) == 120
    for repeat in repeats_of(task.spec, dataset, n_train):
        assert repeat.train.tolist() == list(range(60))
        assert repeat.test.tolist() == list(range(60, 120))
        assert repeat.candidates[60:].all()  # nothing is said of them
    assert run_task(task)["size"] == {"n": 120, "d": 3, "q": 2}
    with pytest.raises(ValidationError, match="needs label_seeds"):
        small_tasks(data=[data], folds=2)


def test_an_experiment_on_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    table = write_pictures(tmp_path, n=40)
    data = {
        "name": str(table),
        "test": str(table),
        "case": "b",
        "rate": 0.7,
        "read": {"relevant": ["is_*"], "ignore": ["has_*"], "images": str(tmp_path / "photos")},
    }
    settings = {"backbone": "timm:resnet10t", "weights": None, "image_size": 32}
    experiment = {
        "name": "pictures",
        "images": True,
        "label_seeds": 2,
        "settings": settings,
        "data": [data],
        "methods": [{"method": "comes-hl"}, {"method": "ccmn"}],
    }
    tasks = tasks_of(Experiment.model_validate(experiment))
    assert not run_tasks(tasks, tmp_path / "runs").failed
    assert run_tasks(tasks, tmp_path / "runs").kept == 2
    page = write_report(read_runs([tmp_path / "runs"]), tmp_path / "report").read_text()
    assert "fine-tunes a ResNet-50" in page
    tuned = tasks_of(Experiment.model_validate(experiment | {"settings": settings | {"epochs": 1}}))
    assert not run_tasks(tuned, tmp_path / "tuned").failed
    files = {path.name for path in (tmp_path / "tuned").glob("*/*")}
    assert files == {"result.json"}  # no state is left
    for key, value, message in (
        ("settings", {"hidden": 5}, "settings has no 'hidden'"),
        ("label_seeds", None, "images are repeated over label_seeds|either folds or label_seeds"),
    ):
        with pytest.raises(ValidationError, match=message):
            Experiment.model_validate(experiment | {key: value})
