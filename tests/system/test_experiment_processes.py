"""Experiments in several processes, killed processes, and searches with estimated priors."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.experiment import run as running
from comes.experiment.run import run_tasks
from comes.experiment.tasks import Task, run_task
from results import skip_drawing
from small_experiments import DATA, read_numbers, small_task, small_tasks


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all small tasks were run in this process."""
    folder = tmp_path_factory.mktemp("whole")
    assert list(run_tasks(small_tasks(), folder).values()) == [None] * 2
    return folder


def test_more_workers_give_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    run_tasks(small_tasks(), tmp_path, workers=2)
    assert read_numbers(tmp_path) == read_numbers(whole)


WAITING = """
import time
from pathlib import Path
from typing import Any

def risk(scores, candidates):
    while not Path(__file__).with_name("go").exists():
        time.sleep(0.01)
    return (scores * ~candidates).square().mean()
"""


def test_a_killed_command_goes_on_and_gives_the_same_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the first result, while the second waits; the first is not touched again."""
    skip_drawing(monkeypatch)
    (tmp_path / "waiting.py").write_text(WAITING)
    methods = ("bce", f"{tmp_path / 'waiting.py'}:risk", "ctl", "comes-hl")
    config = tmp_path / "small.toml"
    config.write_text(
        "name = 'small'\nfolds = 3\n[settings]\nepochs = 3\nhidden = 32\n"
        "[[data]]\nname = 'scenes'\ncase = 'b'\nrate = 0.5\n"
        + "".join(f"[[methods]]\nmethod = '{method}'\n" for method in methods)
    )
    command = ["bench", str(config), "--workers", "1", "-o"]
    start = [sys.executable, "-c", "from comes.cli import main; main()", *command]
    killed = subprocess.Popen([*start, str(tmp_path / "killed")], start_new_session=True)
    while not list((tmp_path / "killed").glob("*/result.json")):
        assert killed.poll() is None
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    (tmp_path / "go").touch()
    (done,) = (tmp_path / "killed").glob("*/result.json")
    before = done.stat().st_mtime_ns

    def bench(folder: str, *options: str) -> None:
        assert CliRunner().invoke(app, [*command, str(tmp_path / folder), *options]).exit_code == 0

    bench("killed")
    assert done.stat().st_mtime_ns == before
    for shard in ("1/2", "2/2"):
        assert not (tmp_path / "shards" / "report").exists()  # before all is there
        bench("shards", "--shard", shard)
    bench("whole")
    pages = [tmp_path / name / "report" for name in ("killed", "shards", "whole")]
    for name in ("metrics.csv", "tables.tex"):
        assert len({(page / name).read_bytes() for page in pages}) == 1
    assert all((page / "index.html").exists() for page in pages)


def test_a_worker_that_is_killed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(task: Task, *_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(running, "_run_and_write", kill)
    with pytest.raises(ComesError, match="a worker ended before its task did.*--workers"):
        run_tasks(small_tasks(), tmp_path, workers=2)


@pytest.mark.parametrize("criterion", ["trained_risk", "own_risk", "log_likelihood", "ranking"])
@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of priors, from few rows
def test_a_search_with_estimated_priors_chooses_what_learns(criterion: str) -> None:
    search = {"learning_rate": [1e-9, 5e-2], "epochs": [9], "extend": False}
    task = small_task(
        "comes-hl",
        search=search | {"criterion": criterion},
        class_prior="estimated",
        first_folds=2,
        data=[DATA[0] | {"rows": 900}],
    )
    chosen = [repeat.chosen for repeat in run_task(task).repeats]
    assert chosen == [{"learning_rate": 5e-2, "epochs": 9}] * 2
