"""Every command with an output leaves its inputs alone; tried with the same file by other names."""

import os
from pathlib import Path

import pandas as pd
import pytest

from comes.datasets import make_scenes
from comes.jobs import fit_model, generate_candidates
from command_line import Run, command_runner

run = pytest.fixture(command_runner)

COMMANDS = {
    "convert": ("datasets", "convert", "d.csv", "OUT"),
    "generate": ("generate", "d.csv", "-o", "OUT"),
    "generate answers": ("generate", "d.csv", "--case", "answers", "-o", "OUT"),
    "priors": ("priors", "d.csv", "-o", "OUT"),
    "predict": ("predict", "d.csv", "-m", "model", "-o", "OUT"),
    "ask next": ("predict", "d.csv", "-m", "model", "-o", "p.csv", "--ask-next", "OUT"),
    "features": ("features", "d.parquet", "--images", ".", "-o", "OUT"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scenes = generate_candidates(make_scenes(n=40), tmp_path / "d.csv", rate=0.5)
    fit_model(scenes, {"method": "bce", "epochs": 1}, output=tmp_path / "model")
    pd.read_csv("d.csv").to_parquet("d.parquet")
    return tmp_path


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize("name", ["same", "link", "hard", "./d"])
def test_no_command_writes_over_its_input(run: Run, folder: Path, command: str, name: str) -> None:
    data = "d.parquet" if command == "features" else "d.csv"
    ending = Path(data).suffix
    Path(f"link{ending}").symlink_to(data)
    os.link(data, f"hard{ending}")
    before = Path(data).read_bytes()
    output = data if name == "same" else f"{name}{ending}"
    arguments = [output if part == "OUT" else part for part in COMMANDS[command]]
    error = run(*arguments, code=1).stderr
    assert "is the file that is read, and would be replaced. Name another one." in error
    assert Path(data).read_bytes() == before and Path(f"hard{ending}").read_bytes() == before


def test_a_model_does_not_take_the_place_of_its_data(run: Run, folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "model.json").write_text((folder / "d.csv").read_text())
    (folder / "e.partial").write_text((folder / "d.csv").read_text())
    held = run("fit", "d.csv", "--priors", "other/model.json", "-o", "other", code=1).stderr
    assert "holds model.json, which is read and would be lost" in held
    for output in ("d.csv", "model/../d.csv"):
        run("fit", "d.csv", "-o", output, code=1)
    assert (folder / "d.csv").read_text() == (folder / "e.partial").read_text()


def test_two_outputs_of_a_command_are_two_files(run: Run, folder: Path) -> None:
    command = ("predict", "d.csv", "-m", "model", "-o", "p.csv", "--ask-next", "./p.csv")
    assert "two results would go to p.csv" in run(*command, code=1).stderr


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "d.csv", "-m", "model", "-o"),
        ("datasets", "convert", "d.csv"),
        ("fit", "d.csv", "--epochs", "1", "-o"),
        ("generate", "d.csv", "-o"),
        ("report", "runs", "-o"),
        ("export", "model"),
    ],
)
def test_a_name_of_300_characters_is_one_sentence(
    run: Run, folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "runs").mkdir()
    ending = ".onnx" if command[0] == "export" else ".csv"
    error = run(*command, "x" * 300 + ending, code=1).stderr
    assert "cannot be written: File name too long. Choose a shorter name." in error or (
        command[0] == "report" and "result.json" in error
    )
    assert error.count("\n") == 1
