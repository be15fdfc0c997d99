"""A training that was stopped and goes on must end where one without a stop does."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from comes.errors import ComesError, ComesWarning
from comes.training import History
from comes.training.pixels import PixelRows
from pictures import pictures
from stopped_trainings import (
    BATCHES,
    CPU,
    EPOCHS,
    SIZES,
    STARTS,
    StoppedError,
    assert_equal,
    interrupt,
    network,
    stop,
    streamed,
    trained,
)


@cache
def uninterrupted(
    patience: int | None = 3, validates: bool = True
) -> tuple[dict[str, Tensor], History, int]:
    """Return what a training without a checkpoint finds."""
    return trained(patience=patience, validates=validates)


def test_a_checkpoint_changes_nothing_and_stays(tmp_path: Path) -> None:
    plain = uninterrupted()
    assert_equal(trained(tmp_path / "training.pt"), plain)
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]
    assert plain[1].best_epoch == 5
    assert len(plain[1].risk) == 8  # three more, as the patience says


def test_the_format_of_a_checkpoint_stays(tmp_path: Path) -> None:
    trained(tmp_path / "training.pt")
    state = torch.load(tmp_path / "training.pt", weights_only=True)
    assert set(state) == {
        "best", "fingerprint", "is_enough", "model", "n_processes", "optimiser", "random", "risk",
        "shuffle", "steps", "total",
    }  # fmt: skip
    assert set(state["best"]) == {"best", "scores", "weights"}
    assert state["is_enough"] is True
    assert len(state["random"]) == 1  # that of a process which trains alone
    assert state["steps"] == 0  # of the next epoch


@pytest.mark.parametrize("patience", [3, None])
def test_a_stop_between_epochs_changes_nothing(patience: int | None, tmp_path: Path) -> None:
    expected = uninterrupted(patience)
    for at_score in (2, 7, 8):
        path = tmp_path / str(at_score) / "training.pt"
        path.parent.mkdir()
        with pytest.raises(StoppedError):
            trained(path, patience=patience, at_score=at_score)
        found = trained(path, patience=patience)
        assert_equal(found, expected)
        assert found[2] == expected[2] - BATCHES * (at_score - 1)  # nothing done twice
        assert [path.name for path in path.parent.iterdir()] == ["training.pt"]


@pytest.mark.parametrize("validates", [True, False])
def test_stops_in_the_middle_of_epochs_change_nothing(validates: bool, tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for at_batch in (2, 8, 5):  # before the first file; then after epochs 2 and 3
        with pytest.raises(StoppedError):
            trained(path, at_batch=at_batch, validates=validates)
    found = trained(path, validates=validates)
    assert_equal(found, uninterrupted(validates=validates))
    assert found[2] == BATCHES * ((8 if validates else EPOCHS) - 3)


def test_a_stop_within_an_epoch_loses_no_step(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for at_batch in (2, 4, 5):  # after 1, 4 and 8 steps, of 3 in an epoch
        with pytest.raises(StoppedError):
            trained(path, every=0, at_batch=at_batch)
    found, expected = trained(path, every=0), uninterrupted()
    assert_equal(found, expected)
    assert found[2] == expected[2] - 8
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]


@pytest.mark.parametrize(("every", "at_batch", "n_kept"), [(None, 8, 6), (0, 9, 8)])
def test_ctrl_c_keeps_the_checkpoint_and_the_weights_so_far(
    every: float | None, at_batch: int, n_kept: int, tmp_path: Path
) -> None:
    path = tmp_path / "training.pt"
    with pytest.warns(ComesWarning, match="Interrupted after 2 of 12 epochs"):
        _, history, _ = trained(path, every=every, at_batch=at_batch, then=interrupt)
    assert history.interrupted
    assert len(history.risk) == 2
    found, expected = trained(path, every=every), uninterrupted()
    assert_equal(found, expected)
    assert found[2] == expected[2] - n_kept


def test_a_state_is_kept_within_an_epoch_if_the_last_is_old_enough(tmp_path: Path) -> None:
    for every, n_steps in ((0, 5), (1e6, 3), (None, 3)):
        path = tmp_path / f"{every}.pt"
        with pytest.raises(StoppedError):
            trained(path, every=every, at_batch=6)
        assert trained(path, every=every)[2] == uninterrupted()[2] - n_steps, every


def test_without_ends_the_state_is_kept_by_the_clock_alone(tmp_path: Path) -> None:
    for every, n_kept in ((1e6, 0), (0, 8)):
        path = tmp_path / f"{every}.pt"
        with pytest.raises(StoppedError):
            trained(path, every=every, at_ends=False, at_batch=9)
        assert path.exists() == (n_kept > 0)
        found, expected = trained(path, every=every, at_ends=False), uninterrupted()
        assert_equal(found, expected)
        assert found[2] == expected[2] - n_kept


def test_a_state_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_batch=8)
    state = torch.load(path, weights_only=True)
    del state["steps"], state["total"], state["n_processes"]
    torch.save(state, path)
    found, expected = trained(path), uninterrupted()
    assert_equal(found, expected)
    assert found[2] == expected[2] - 2 * BATCHES


def test_augmentation_goes_on_where_it_was(tmp_path: Path) -> None:
    rows = PixelRows(list(pictures(60)[0]), 8, CPU, "crop")
    expected = trained(rows=rows)
    for every, at_batch in ((None, 8), (0, 9)):  # between epochs, and within one
        path = tmp_path / f"{at_batch}.pt"
        with pytest.raises(StoppedError):
            trained(path, rows=rows, every=every, at_batch=at_batch)
        assert_equal(trained(path, rows=rows, every=every), expected)


def test_a_stream_goes_on_without_reading_what_is_done(tmp_path: Path) -> None:
    path, read = tmp_path / "training.pt", list[int]()
    with pytest.raises(StoppedError):
        trained(path, rows=streamed(), every=0, at_batch=3)
    assert_equal(trained(path, rows=streamed(read)), trained(rows=streamed()))
    rows, groups = streamed().draw_order(torch.Generator().manual_seed(4))
    third = set(rows[40:].tolist())  # the batch that is left of the first epoch
    needed = [
        group
        for group in groups
        if third & {STARTS[b] + row for b in group for row in range(SIZES[b])}
    ]
    assert len(needed) < len(groups)
    blocks = [block for group in needed for block in group]
    assert read[: len(blocks)] == blocks


def test_a_finished_training_trains_no_more(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for patience in (3, None):  # stopped early, and not
        first = trained(path, patience=patience)
        found = trained(path, patience=patience)
        assert found[2] == 0
        assert_equal(found, first)
        path.unlink()


def test_a_crash_while_writing_leaves_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, save, n_saved = tmp_path / "training.pt", torch.save, 0

    def save_or_fail(state: Any, file: Any) -> None:
        nonlocal n_saved
        n_saved += 1
        save(state, file)
        if n_saved == 3:
            raise StoppedError

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(torch, "save", save_or_fail)
        trained(path)
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]
    found = trained(path)
    assert_equal(found, uninterrupted())
    assert found[2] == BATCHES * (8 - 2)


def test_going_on_leaves_the_global_random_state_alone(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", at_batch=8)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained(tmp_path / "training.pt")
    assert torch.equal(torch.rand(3), expected)


def test_scores_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", at_score=4, as_score=np.float64)
    assert_equal(trained(tmp_path / "training.pt", as_score=np.float64), uninterrupted())


def test_the_checkpoint_of_another_training_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_score=2)
    before = path.read_bytes()
    with pytest.raises(ComesError, match="training.pt belongs to another training"):
        trained(path, fingerprint="another")
    assert path.read_bytes() == before


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_text(path: Path) -> None:
    path.write_text("no checkpoint\n")


def replaced_by_weights(path: Path) -> None:
    torch.save(network().state_dict(), path)


def replaced_by_code(path: Path) -> None:
    torch.save({"fingerprint": "the same", "code": stop}, path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_score=2)
    whole = path.read_bytes()
    for damage in (truncated, emptied, replaced_by_text, replaced_by_weights, replaced_by_code):
        path.write_bytes(whole)
        damage(path)
        with pytest.raises(ComesError, match="training.pt is not a checkpoint, or is damaged"):
            trained(path)
        assert path.exists(), damage.__name__
