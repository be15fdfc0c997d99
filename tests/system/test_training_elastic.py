"""Processes that come and go over one training must end with the weights of one process."""

import json
from pathlib import Path

import pytest
from elastic_processes import CASES, come_and_go, run_torchrun

STORED = Path(__file__).parents[2] / "benchmarks" / "results" / "elastic_processes.json"


@pytest.mark.parametrize("name", ["comes-rl", "likelihood"])  # torchrun below trains COMES-HL
def test_two_processes_then_three_then_two_find_the_weights_of_one(
    name: str, tmp_path: Path
) -> None:
    found = come_and_go(name, tmp_path)
    assert found["exit_codes"] == [[1, -9], [1, -9, 1], [0, 0]]  # two were killed
    assert found["epochs_and_steps_done"] == [[1, 4], [3, 6], [6, 0]]  # in the middle of epochs
    assert found["largest_difference"] < 1e-9 < 1e-2 < found["largest_move"]


def test_torchrun_goes_on_after_the_loss_of_a_worker(tmp_path: Path) -> None:
    found = run_torchrun(tmp_path, workers=2)
    assert found["epochs_and_steps_done"] == [1, 4]  # when the worker was killed
    assert found["largest_difference"] < 1e-9 < 1e-2 < found["largest_move"]


def test_the_stored_results_say_so_of_every_method() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    rows = stored["rows"]
    assert [row["method"] for row in rows] == list(CASES)
    for row in rows:
        assert row["processes"] == [2, 3, 2]
        assert row["largest_difference"] < 1e-9 < row["largest_move"]
    assert stored["restarted"]["largest_difference"] < 1e-9
