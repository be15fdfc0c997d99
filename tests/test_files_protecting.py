"""What is read is not written over, whatever its path is called."""

import os
from pathlib import Path

import pytest

from comes.files import refuse_inputs, refuse_same
from refusals import refused


def test_other_names_of_a_file_are_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, folder = tmp_path / "data.csv", tmp_path / "folder"
    data.write_text("x")
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    (tmp_path / "same").symlink_to(tmp_path)
    for name in ("data.csv", "link.csv", "hard.csv", "folder/../data.csv", "same/data.csv"):
        for output, read in ((tmp_path / name, data), (data, tmp_path / name)):
            with refused("is the file that is read"):
                refuse_inputs(output, None, 3, read)
    for name in ("~/data.csv", "../data.csv"):
        with refused("is the file that is read"):
            refuse_inputs(name, str(data))
    refuse_inputs(tmp_path / "other.csv", data)
    refuse_inputs(data, "YeastBP", "no/such/file", "x" * 300)
    refuse_inputs("x" * 300, data)


def test_a_folder_that_holds_what_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "data.csv").write_text("x")
    with refused("holds data.csv, which is read and would be lost"):
        refuse_inputs(tmp_path / "model", tmp_path / "model" / "data.csv")
    with refused("is the folder that is read"):
        refuse_inputs(tmp_path / "model", tmp_path / "model")
    refuse_inputs(tmp_path / "model" / "other.csv", tmp_path / "model")


def test_two_results_need_two_files(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    with refused(r"two results would go to a\.csv"):
        refuse_same(tmp_path / "a.csv", None, tmp_path / "link.csv")
    refuse_same(tmp_path / "a.csv", tmp_path / "b.csv", None, None)
