"""`comes fit` of tables and texts in several processes finds the model of one."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from comes.errors import ComesWarning
from comes.images import load_model
from command_line import command_runner

WORDS = np.array(["red", "green", "blue", "sky", "sea", "tree", "car", "road"])


def write_data(folder: Path) -> None:
    """Write a table of numbers and one of texts, with candidates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in X]
    mentioned = np.array([["red" in text, "sky" in text, "car" in text] for text in texts])
    for name, table, relevant in (
        ("numbers.csv", pd.DataFrame(X, columns=["a", "b", "c", "d"]), X[:, :3] > 0.5),
        ("texts.csv", pd.DataFrame({"body": texts}), mentioned),
    ):
        candidates = relevant | (rng.random(relevant.shape) < 0.5)
        for label in range(3):
            table[f"has_{label}"] = candidates[:, label].astype(int)
        table.to_csv(folder / name, index=False)


def fit_in_processes(n: int, folder: Path, *arguments: str) -> list[tuple[int, str, str]]:
    """Run ``comes fit`` as torchrun does, without the seconds that it takes to start."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # as its agent has one
    together = {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    together["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "comes", "fit", *arguments, "--device", "cpu"],
            cwd=folder,
            env=os.environ | together | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(n)
    ]
    texts = [process.communicate(timeout=1200) for process in processes]
    return [(p.returncode, *text) for p, text in zip(processes, texts, strict=True)]


FITS: dict[str, list[str]] = {
    "default": ["numbers.csv", "--epochs", "4"],
    "comes-rl, stopped early": ["numbers.csv", "--method", "comes-rl", "--early-stopping"],
    "texts": ["texts.csv", "--text", "body", "--method", "comes-hl", "--epochs", "4"],
}


@pytest.mark.parametrize("name", FITS)
def test_two_processes_find_the_model_of_one(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = [*FITS[name], "--labels", "has_*"]
    run = command_runner(monkeypatch, capsys)
    with warnings.catch_warnings():
        warnings.simplefilter("default", ComesWarning)  # printed, as on a terminal
        assert run("fit", *arguments, "--device", "cpu", "-o", "one").stdout.count("model:") == 1
    ended = fit_in_processes(2, tmp_path, *arguments, "-o", "two")
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert [stdout.count("model:") for _, stdout, _ in ended] == [1, 0]  # one process speaks
    one, two = (load_file(tmp_path / output / "model.safetensors") for output in ("one", "two"))
    assert one.keys() == two.keys()
    has_dropout = name == "default"  # of which every process draws its own
    for key, weights in one.items():
        if not has_dropout:
            np.testing.assert_allclose(two[key], weights, atol=1e-4, err_msg=key)
    histories: list[Any] = [load_model(tmp_path / output).history_ for output in ("one", "two")]
    atol = 0.03 if has_dropout else 1e-5
    np.testing.assert_allclose(histories[0].risk, histories[1].risk, rtol=0, atol=atol)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "numbers.csv",
        "one",
        "texts.csv",
        "two",
    ]


def test_an_error_before_training_ends_all_processes(tmp_path: Path) -> None:
    write_data(tmp_path)
    arguments = ["numbers.csv", "--labels", "has_*", "--set", "mistake_rate=0.4", "-o", "model"]
    ended = fit_in_processes(2, tmp_path, *arguments, "--set", "exclude_rate=0.2")
    assert [code for code, _, _ in ended] == [1, 1], ended
    for _, _, errors in ended:
        assert "the rate of 'mistake' must be below" in errors
        assert "Traceback" not in errors
