"""Tasks: run once, resumed, sharded, and the same however they are run."""

import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.experiment import run as running
from comes.experiment.config import Experiment
from comes.experiment.results import Size, read_results
from comes.experiment.run import run_tasks
from comes.experiment.tasks import Task, read_task_results, run_task, tasks_of
from comes.metrics import METRICS
from comes.report.experiment_page import write_report
from pictures import write_pictures
from results import skip_drawing
from small_experiments import NAME, read_numbers, small_task, small_tasks


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all small tasks were run at once."""
    folder = tmp_path_factory.mktemp("whole")
    tasks = small_tasks()
    assert run_tasks(tasks, folder) == dict.fromkeys(task.name for task in tasks)
    return folder


def test_a_result_says_what_was_run_and_how_it_went(whole: Path) -> None:
    tasks = small_tasks()
    (result,) = read_results([whole / tasks[0].key])
    assert (result.names.data, result.names.method) == (NAME, "comes-hl")
    assert result.spec == tasks[0].spec
    assert result.size == Size(n=300, d=256, q=10)
    assert None not in asdict(result.degenerate).values()
    assert set(result.versions) == {"comes", "torch", "numpy", "python"}
    assert result.device == "cpu"
    assert len(result.repeats) == 3
    assert result.label_names is not None and len(result.label_names) == 10
    means = result.label_means("average_precision")
    assert means is not None and means.mean() == pytest.approx(
        result.values("mean_average_precision").mean(), abs=1e-3
    )
    assert result.peak_memory is None or result.peak_memory > 50
    assert all(repeat.held_out is None for repeat in result.repeats)  # nothing was held out
    for repeat in result.repeats:
        assert set(repeat.pml) == set(repeat.sklearn) == set(METRICS)
        assert len(repeat.risk) == 2
        assert repeat.chosen is None
        values = [*repeat.pml.values(), *asdict(repeat.hamming_loss).values()]
        assert all(math.isfinite(value) and value == round(value, 6) for value in values)


def test_results_of_tasks_have_the_names_of_these_tasks(whole: Path, tmp_path: Path) -> None:
    ours, bce = small_tasks(name="other", methods=[{"method": "comes-hl"}, {"method": "bce"}])
    ours = replace(ours, names=replace(ours.names, method="ours"))
    absent = small_task("gdf")
    (result,) = read_task_results([ours, absent], whole)
    assert result.names == ours.names
    assert len(read_task_results([ours, bce], whole)) == 2
    assert read_task_results([absent], whole) == read_task_results([ours], tmp_path) == []


def test_what_was_run_is_not_run_again(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.glob("*/result.json")}
    monkeypatch.setattr(running, "run_task", lambda task: pytest.fail("was run again"))
    assert run_tasks(small_tasks(), whole) == {}
    assert before == {path: path.stat().st_mtime_ns for path in whole.glob("*/result.json")}


def test_shards_make_the_whole(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same numbers, and the same files of the report."""
    skip_drawing(monkeypatch)
    assert len(run_tasks(small_tasks(), tmp_path, shard=(1, 2))) == 1
    assert len(run_tasks(small_tasks(), tmp_path, shard=(2, 2))) == 1
    assert read_numbers(tmp_path) == read_numbers(whole)
    pages = [
        write_report(read_task_results(small_tasks(), folder), tmp_path / f"report {k}").parent
        for k, folder in enumerate((tmp_path, whole))
    ]
    for name in ("metrics.csv", "tables.tex"):
        assert len({(page / name).read_bytes() for page in pages}) == 1, name


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
    assert len(read_numbers(tmp_path)) == 1
    assert len(run_tasks(small_tasks(), tmp_path)) == 1
    assert read_numbers(tmp_path) == read_numbers(whole)


def test_a_failing_task_is_written_down_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = [{"method": "bce", "settings": {"epochs": 0}}, {"method": "bce", "label": "good"}]
    tasks = small_tasks(methods=methods)
    message = "ComesError: epochs must be a whole number of at least 1; got 0."
    assert run_tasks(tasks, tmp_path) == {f"bce on {NAME}": message, f"good on {NAME}": None}
    assert message in (tmp_path / tasks[0].key / "error.txt").read_text()
    assert not (tmp_path / tasks[0].key / "result.json").exists()
    good = run_task(tasks[1])
    monkeypatch.setattr(running, "run_task", lambda task, folder: good)
    assert run_tasks(tasks, tmp_path) == {f"bce on {NAME}": None}  # it is tried again
    assert not (tmp_path / tasks[0].key / "error.txt").exists()


def test_every_failing_task_of_a_sweep_is_named(tmp_path: Path) -> None:
    sweep = {"key": "train_rows", "values": [100, 10**6, 10**7]}
    tasks = small_tasks(methods=[{"method": "bce"}], sweep=sweep)
    ran = run_tasks(tasks, tmp_path)
    assert ran.pop(f"bce on {NAME}, train_rows 100") is None
    assert list(ran) == [f"bce on {NAME}, train_rows 1e+0{power}" for power in (6, 7)]
    message = "ComesError: train_rows is 1000000, and there are 200 rows to train on."
    assert message in ran.values()
    error = (tmp_path / tasks[1].key / "error.txt").read_text()
    assert error.startswith(f"bce on {NAME}, train_rows 1e+06\nTraceback")


def test_what_cannot_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ComesError, match="file cannot be a folder of results: File exists"):
        run_tasks(small_tasks(), tmp_path / "file")
    for shard in ((3, 2), (0, 2)):
        with pytest.raises(ComesError, match=rf"a shard is 1/N to N/N; got {shard[0]}/2"):
            run_tasks(small_tasks(), tmp_path, shard=shard)
    with pytest.raises(ComesError, match="backend must be loky, dask or ray"):
        run_tasks(small_tasks(), tmp_path, backend="slurm")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ComesError, match=r"dask needs distributed.*pip install 'comes\[scale\]'"):
        run_tasks(small_tasks(), tmp_path, backend="dask")


def test_the_command_runs_shows_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(
        "name = 'small'\nfolds = 2\n[settings]\nepochs = 1\nhidden = 4\n"
        "[[data]]\nname = 'scenes'\ncase = 'b'\nrows = 100\n"
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
        assert "variant of ctl" in Path(shown["page"]).read_text()
    text = (tmp_path / "small.toml").read_text().replace("{ variant = 'none' }", "{}")
    (tmp_path / "good.toml").write_text(text)
    for shard in ("1/2", "2/2"):
        assert not Path("halves", "report").exists()  # before all is there
        half = ["bench", "good.toml", "--workers", "1", "-o", "halves", "--shard", shard]
        assert CliRunner().invoke(app, half).exit_code == 0
    assert Path("halves", "report", "index.html").exists()
    wrong = CliRunner().invoke(app, ["bench", "small.toml", "--shard", "2-8"])
    assert "must look like 2/8" in str(wrong.exception)


@pytest.mark.long
def test_an_experiment_on_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_drawing(monkeypatch)
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    table = write_pictures(tmp_path, n=12)
    data = {
        "name": str(table),
        "test": str(table),
        "case": "b",
        "rate": 0.7,
        "read": {"relevant": ["is_*"], "ignore": ["has_*"], "images": str(tmp_path / "photos")},
    }
    settings = {"backbone": "timm:resnet10t", "weights": None, "image_size": 32}
    experiment: dict[str, Any] = {
        "name": "pictures",
        "images": True,
        "label_seeds": 2,
        "settings": settings,
        "data": [data],
        "methods": [{"method": "comes-hl"}],
    }
    tasks = tasks_of(Experiment(**experiment))
    assert list(run_tasks(tasks, tmp_path / "runs").values()) == [None]
    assert not run_tasks(tasks, tmp_path / "runs")
    results = read_results([tmp_path / "runs"])
    assert [result.size for result in results] == [Size(n=24, d=0, q=3)]
    page = write_report(results, tmp_path / "report").read_text()
    assert "tested on" in page and "not said" not in page  # not the paper's data
    tuned = experiment | {"settings": settings | {"epochs": 1}}
    tasks = tasks_of(Experiment(**tuned))
    assert list(run_tasks(tasks, tmp_path / "tuned").values()) == [None]
    files = {path.name for path in (tmp_path / "tuned").glob("*/*")}
    assert files == {"result.json"}  # no state is left


def test_a_full_disk_fails_a_task_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: Any) -> None:
        raise ComesError("result.json cannot be written: No space left on device.")

    monkeypatch.setattr(running, "write_result", fill)
    (error,) = run_tasks(small_tasks()[:1], tmp_path).values()
    assert error is not None and "No space left" in error
