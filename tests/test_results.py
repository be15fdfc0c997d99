"""Results: what is written is read again, what is no result is refused."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.errors import ComesError
from comes.experiment.config import DataSpec, SearchSpec
from comes.experiment.results import read_errors, read_results, write_result
from comes.experiment.tasks import forget_peaks, read_peak
from results import STORED, change_json, make_result, write_results


def test_stored_results_are_read_and_written_byte_for_byte(tmp_path: Path) -> None:
    paths = sorted(STORED.rglob("result.json"))[::10]  # of every kind of experiment
    assert len(paths) >= 46
    for path in paths:
        (result,) = read_results([path.parent])
        assert result.spec.key == path.parent.name
        assert write_result(result, tmp_path).read_bytes() == path.read_bytes(), path


def test_all_that_a_result_can_hold_is_read_as_it_was_written(tmp_path: Path) -> None:
    full = make_result(
        data="scenes",
        sweep="train_rows",
        train_rows=100.0,
        folds=None,
        label_seeds=3,
        flood=0.5,
        images=True,
        class_prior="estimated",
        content="0123456789abcdef",
        settings={"weights": None, "epochs": 3, "hidden": [8, 8]},
        search=SearchSpec(
            learning_rate=(0.1, 1.0),
            epochs=(3, 5),
            held_out=0.2,
            criterion="log_likelihood",
            extend=True,
        ),
    )
    data = DataSpec(name="a.csv", case="b", rate=0.5, test="b.csv", rows=40, read={"labels": ["x"]})
    full = replace(full, spec=replace(full.spec, data=data))
    chosen = replace(
        full.repeats[0], chosen={"epochs": 5, "learning_rate": 0.1}, tied=0, edges=("epochs 5",)
    )
    full = replace(full, repeats=(chosen, *full.repeats[1:]))
    (again,) = read_results([write_results(tmp_path, [full])])
    assert again == full
    assert again.spec.key == full.spec.key
    assert repr(again.repeats[0].chosen) == repr(chosen.chosen)  # 5 stays a whole number


def test_a_file_leaves_out_what_is_none(tmp_path: Path) -> None:
    """So that a new optional field changes no key."""
    stored = json.loads(write_result(make_result(), tmp_path).read_text())
    assert list(stored) == [
        *("key", "experiment", "data", "method", "sweep", "spec", "size", "degenerate"),
        *("repeats", "seconds", "versions", "device"),
    ]
    spec = ["folds", "test_share", "seed", "class_prior", "prior_noise", "data", "method"]
    assert list(stored["spec"]) == [*spec, "settings"]
    assert stored["spec"]["data"] == {"name": "photos"}
    assert stored["sweep"] == ""
    assert "chosen" not in stored["repeats"][0]


def test_keys_tell_whole_numbers_from_others() -> None:
    """A sweep has floats, and a key of an experiment a whole number: folders of both exist."""
    keys = {make_result(train_rows=rows).spec.key for rows in (100, 100.0, None)}
    assert len(keys) == 3


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="holds no result.json: give a folder"):
        read_results([tmp_path])
    with pytest.raises(ComesError, match="holds no result.json"):
        read_results([tmp_path / "missing"])
    twice = [make_result(), make_result(settings={"epochs": 3})]
    with pytest.raises(
        ComesError, match=r"two results are both bce on photos \(small\).*differ in settings.epochs"
    ):
        read_results([write_results(tmp_path / "twice", twice)])
    same = write_results(tmp_path / "same", [make_result(), make_result()])
    assert len(read_results([same])) == 1
    (same / "task-0" / "result.json").write_text('{"experiment": "cut of')
    with pytest.raises(ComesError, match="is not a result of `comes bench`"):
        read_results([same])


def test_values_of_a_sweep_are_several_results(tmp_path: Path) -> None:
    sweep = [make_result(sweep="flood", flood=at) for at in (0.0, 0.5)]
    assert len(read_results([write_results(tmp_path, sweep)])) == 2


REPEAT: dict[str, Any] = {
    "pml": {},
    "sklearn": {},
    "hamming_loss": {"zero": 0.1, "minmax": 0.1},
    "risk": [1.0],
}


WRONG: list[dict[str, Any]] = [
    {"repeats": []},
    {"repeats": 3},
    {"repeats": [{"pml": {}}]},
    {"repeats": [REPEAT | {"risk": []}]},
    {"repeats": [REPEAT | {"hamming_loss": {"zero": 0.1}}]},
    {"repeats": [REPEAT | {"pml": {"coverage": "low"}}]},
    {"spec": []},
    {"spec": {}},
    {"spec": {"data": {"name": "x"}, "method": "bce", "settings": 3}},
    {"sweep": "flood"},
    {"sweep": "seed"},
    {"size": None},
    {"data": 5},
    {"degenerate": {}},
]


def test_a_result_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = write_results(tmp_path, [make_result()])
    path = folder / "task-0" / "result.json"
    good = path.read_text()
    for changes in WRONG:
        path.write_text(good)
        read_results([folder])
        change_json(path, changes)
        with pytest.raises(ComesError, match="is not a result of `comes bench`: remove its folder"):
            pytest.fail(f"{changes} was read: {read_results([folder])}")


def test_a_spec_that_says_more_than_is_known_is_refused(tmp_path: Path) -> None:
    """What decides a result must not be dropped; it would look like another one."""
    folder = write_results(tmp_path, [make_result()])
    path = folder / "task-0" / "result.json"
    good = json.loads(path.read_text())["spec"]
    more = {"of_next_year": 3}
    for spec in (good | more, good | {"data": good["data"] | more}):
        change_json(path, {"spec": spec})
        with pytest.raises(ComesError, match=r"read: .*of_next_year. Use the v"):
            read_results([folder])


def test_a_metric_that_a_repeat_lacks_counts_as_absent(tmp_path: Path) -> None:
    folder = write_results(tmp_path, [make_result(metrics=["coverage", "sharpness"])])
    path = folder / "task-0" / "result.json"
    repeats = json.loads(path.read_text())["repeats"]
    del repeats[1]["pml"]["coverage"]
    change_json(path, {"repeats": repeats})
    (result,) = read_results([folder])
    assert np.isnan(result.values("coverage")).all()
    assert np.isfinite(result.values("coverage", "sklearn")).all()
    assert np.isnan(result.values("one_error")).all()


def test_the_correction_of_tests_knows_the_rows() -> None:
    assert make_result().test_over_train == pytest.approx(1 / 2)
    assert make_result(train_rows=5).test_over_train == pytest.approx(10 / 5)
    assert math.isnan(make_result(folds=None, label_seeds=3).test_over_train)


def test_errors_are_listed_with_their_task(tmp_path: Path) -> None:
    for name, text in {"a": "bce on photos\nTraceback\nComesError: no\n", "b": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "error.txt").write_text(text)
    assert read_errors([tmp_path]) == ["bce on photos: ComesError: no", "no message: no message"]
    assert read_errors([tmp_path / "b", tmp_path / "missing"]) == ["no message: no message"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells and forgets peaks")
def test_the_peak_of_memory_starts_anew() -> None:
    block = np.ones(60 * 2**20 // 8)
    high = read_peak()
    assert block.sum() > 0 and high is not None
    del block
    forget_peaks()
    low = read_peak()
    assert low is not None and low < high - 30
