"""What was trained is kept: when the disk is full, and when a signal comes at the end."""

import errno
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes import CandidateClassifier, load_model
from comes.datasets import make_scenes
from comes.errors import ComesError, ComesWarning
from comes.estimator import storage
from comes.files import defer_from_here, deferring_interrupts, no_longer_defer
from comes.training import loop
from comes.workflows.data import simulate_labels
from comes.workflows.fit import fit_model
from command_line import default_ctrl_c

SCENES = simulate_labels(make_scenes(n=60), "b", rate=0.5)
QUICK = {"method": "bce", "epochs": 3, "hidden": 4, "n_networks": 1}


ctrl_c = pytest.fixture(default_ctrl_c)


def test_a_full_disk_does_not_lose_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    write = storage.write_model

    def fill(path: Path, *parts: Any) -> None:
        if elsewhere not in Path(path).parents:
            raise ComesError(f"{path} cannot be written: No space left on device.")
        write(path, *parts)

    monkeypatch.setattr(storage, "write_model", fill)
    with pytest.raises(ComesError, match="No space left.* The trained model was saved as") as error:
        fit_model(SCENES, QUICK, output=tmp_path / "model")
    place = Path(str(error.value).split("saved as ")[1].removesuffix(": move it from there."))
    assert not (tmp_path / "model").exists()
    assert len(load_model(place).history_.risk) == 3


def test_a_model_that_can_be_saved_nowhere_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *parts: Any) -> None:
        raise ComesError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(storage, "write_model", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ComesError, match="could not be saved elsewhere, either, and is lost"):
        fit_model(SCENES, QUICK, output=tmp_path / "model")


def test_an_error_of_the_disk_inside_safetensors_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import SafetensorError

    def fail(*_: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    model = CandidateClassifier("bce", epochs=1, hidden=4).fit(np.eye(4), np.eye(4) > 0)
    with pytest.raises(ComesError, match="cannot be written: No space left on device. Free some"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == [] and errno.ENOSPC == 28


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_after_the_last_epoch_waits_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = loop.check_weights

    def interrupt(*parts: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        check(*parts)

    monkeypatch.setattr("comes.training.loop.check_weights", interrupt)
    path = tmp_path / "model"
    with (
        pytest.warns(ComesWarning, match="when the training was done: the model is saved as"),
        pytest.raises(KeyboardInterrupt),
    ):
        fit_model(SCENES, QUICK | {"class_prior": [0.2] * 10}, output=path)
    assert len(load_model(path).history_.risk) == 3


@pytest.mark.usefixtures("ctrl_c")
def test_signals_wait_raise_and_do_not_wait_twice() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferring_interrupts(at_once=False):
        defer_from_here()
        signal.raise_signal(signal.SIGINT)
        done.append("first")
        with deferring_interrupts():
            signal.raise_signal(signal.SIGINT)  # waits for the inner block, then for none
            done.append("second")
        done.append("never")
    assert done == ["first", "second"]
    with pytest.raises(KeyboardInterrupt), deferring_interrupts():
        signal.raise_signal(signal.SIGINT)
        no_longer_defer()
        done.append("never")
    assert "never" not in done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
