"""Every command with an output leaves its inputs alone; tried with the same file by other names."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from comes.datasets import make_scenes
from comes.workflows.data import convert_dataset
from comes.workflows.fit import fit_model
from command_line import Run, command_runner

run = pytest.fixture(command_runner)

COMMANDS = {
    "convert": ("datasets", "convert", "d.csv", "-o", "OUT"),
    "simulate": ("datasets", "convert", "d.csv", "--simulate", "b", "-o", "OUT"),
    "priors": ("priors", "d.csv", "-o", "OUT"),
    "predict": ("predict", "d.csv", "-m", "model", "-o", "OUT"),
    "ask next": ("predict", "d.csv", "-m", "model", "-o", "p.csv", "--ask-next", "OUT"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, links to it, and a model of it."""
    folder = tmp_path_factory.mktemp("inputs")
    small = replace(make_scenes(n=40), X=make_scenes(n=40).X[:, :8])
    scenes = convert_dataset(small, folder / "d.csv", simulate="b", rate=0.5)
    fit_model(scenes, {"method": "bce", "epochs": 1, "hidden": 4}, output=folder / "model")
    (folder / "link.csv").symlink_to("d.csv")
    os.link(folder / "d.csv", folder / "hard.csv")
    return folder


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(written)
    return written


def test_no_command_writes_over_its_input(run: Run, folder: Path) -> None:
    before = Path("d.csv").read_bytes()
    for name, command in COMMANDS.items():
        for path in ("d.csv", "link.csv", "hard.csv", "./d.csv"):
            arguments = [path if part == "OUT" else part for part in command]
            error = run(*arguments, code=1).stderr
            expected = "is the file that is read, and would be replaced. Name another one."
            assert expected in error, (name, path)
            assert Path("d.csv").read_bytes() == before, (name, path)


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


def test_a_name_of_300_characters_is_one_sentence(run: Run, folder: Path) -> None:
    for *command, ending in (
        ("predict", "d.csv", "-m", "model", "-o", ".csv"),
        ("datasets", "convert", "d.csv", "-o", ".csv"),
        ("fit", "d.csv", "--epochs", "1", "-o", ".csv"),
        ("split", "d.csv", "-o", ".csv"),
        ("export", "model", "-o", ".onnx"),
    ):
        error = run(*command, "x" * 300 + ending, code=1).stderr
        assert "cannot be written: File name too long. Choose a shorter name." in error, command
        assert error.count("\n") == 1, command
