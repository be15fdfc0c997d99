"""Files and folders: whole or as they were, never over what is read, and refused in one sentence.

Kills are in `system/test_interruptions_kills`.
"""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from comes import CandidateClassifier
from comes.datasets import Dataset, write_dataset
from comes.datasets.predictions import prediction_table, write_prediction_table
from comes.errors import ComesError
from comes.files import (
    check_file_target,
    check_folder_target,
    expanded,
    refuse_inputs,
    refuse_same,
    replacing_file,
    replacing_folder,
    writing,
)
from refusals import refused


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "scores.csv"
    target.write_text("old")
    with replacing_file(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    file, folder = tmp_path / "scores.csv", tmp_path / "model"
    file.write_text("old")
    folder.mkdir()
    (folder / "model.json").write_text("old")
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), replacing_file(file) as temporary:
            temporary.write_text("half")
            raise error
        with pytest.raises(error), replacing_folder(folder, ["model.json"]) as half:
            (half / "model.json").write_text("half")
            raise error
        assert file.read_text() == (folder / "model.json").read_text() == "old"
        assert sorted(tmp_path.iterdir()) == [folder, file]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with replacing_folder(tmp_path / "model", ["old", "new"]) as folder:
            (folder / text).touch()
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_folder_around_must_exist(tmp_path: Path) -> None:
    inside = tmp_path / "nowhere" / "scores.csv"
    message = "nowhere is not a folder. Create it first"
    with refused(message), replacing_file(inside):
        pass


def test_a_folder_with_anything_else_in_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "model.json").touch()
    (tmp_path / "thesis.txt").touch()
    with refused("holds something else .thesis.txt."):
        check_folder_target(tmp_path, ["model.json"])


def test_an_interrupt_between_the_renames_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()
    replace, calls = Path.replace, 0

    def interrupted_second_time(self: Path, other: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return replace(self, other)

    monkeypatch.setattr(writing, "_exchange", lambda *_: False)  # a system that cannot
    monkeypatch.setattr(Path, "replace", interrupted_second_time)
    with pytest.raises(KeyboardInterrupt), replacing_folder(target, ["old"]):
        pass
    assert (target / "old").exists()
    assert list(tmp_path.iterdir()) == [target]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    with replacing_folder(tmp_path / "link", ["new"]) as folder:
        (folder / "new").touch()
    assert (tmp_path / "model" / "new").exists()
    assert (tmp_path / "link").is_symlink()


def test_a_folder_for_a_file_and_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refused("is a file; expected the name of a folder"):
        check_folder_target(tmp_path / "file", [])
    with refused("is a folder; expected the name of a file"):
        check_file_target(tmp_path)


def test_the_current_folder_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused("the current folder cannot be replaced"):
        check_folder_target(".", [])


def test_a_folder_is_exchanged_at_once_or_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("first", "second", "third"):
        if text == "third":
            monkeypatch.setattr(writing, "_exchange", lambda *_: False)
        with replacing_folder(tmp_path / "model", ["model.json"]) as folder:
            (folder / "model.json").write_text(text)
        assert (tmp_path / "model" / "model.json").read_text() == text
        assert [path.name for path in tmp_path.iterdir()] == ["model"]


# Targets that cannot be written


@pytest.mark.parametrize("check", [check_file_target, lambda path: check_folder_target(path, [])])
def test_pipes_and_devices_are_not_replaced(tmp_path: Path, check: Callable[[Path], Path]) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    reading, unnamed = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        special = [tmp_path / name for name in ("fifo", "link", "socket")]
        for path in (*special, Path("/dev/null"), Path(f"/dev/fd/{unnamed}")):
            with refused(f"{path} is a pipe or a device, which cannot be replaced"):
                check(path)
    os.close(reading)
    os.close(unnamed)


@pytest.mark.parametrize("check", [check_file_target, lambda path: check_folder_target(path, [])])
def test_impossible_names_are_refused_in_a_short_sentence(
    tmp_path: Path, check: Callable[[str], Path]
) -> None:
    (tmp_path / "circle").symlink_to("circle")
    names = {
        "x" * 300: "cannot be written: File name too long. Choose a shorter name",
        "x" * 5000: "cannot be written: File name too long. Choose a shorter name",
        "/".join(["x" * 100] * 30): "is not a folder",
        "/".join(["x" * 100] * 60): "cannot be written: File name too long",
        "a\0b": "cannot be written: embedded null byte",
        "circle": "cannot be written: ",
    }
    for name, message in names.items():
        with pytest.raises(ComesError, match=message) as error:
            check(f"{tmp_path}/{name}")
        assert len(str(error.value)) < 400
    with pytest.raises(ComesError, match="cannot be found") as error:
        expanded(f"~{'x' * 5000}/a.csv")
    assert len(str(error.value)) < 400


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "a." + "x" * 253):
        with replacing_file(tmp_path / name) as temporary:
            temporary.touch()
        (tmp_path / name).unlink()
        with replacing_folder(tmp_path / name, []):
            pass
        (tmp_path / name).rmdir()


def test_what_is_written_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    for umask, mode in ((0o022, 0o755), (0o077, 0o700)):
        before = os.umask(umask)
        try:
            with replacing_file(tmp_path / "scores.csv") as temporary:
                temporary.write_text("new")
            with replacing_folder(tmp_path / "model", ["model.json"]) as folder:
                (folder / "model.json").touch()
        finally:
            os.umask(before)
        assert (tmp_path / "scores.csv").stat().st_mode & 0o777 == mode & 0o666
        assert (tmp_path / "model").stat().st_mode & 0o777 == mode


# Inputs


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


# Full disks


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond a number of bytes: what writes more gets an error of the system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_files_that_were_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(400, 5)), rng.random((400, 3)) < 0.5
    items = [f"item {k}" for k in range(400)]
    dataset = Dataset(X, ["sea", "sky", "sun"], candidates, items=items)
    labels = Dataset(None, ["sea", "sky", "sun"], candidates, items=items)
    table = prediction_table(rng.random((400, 3)), candidates, ["sea", "sky", "sun"])
    for ending in (".csv", ".csv.gz", ".parquet", ".npz", ".jsonl"):
        path = tmp_path / f"photos{ending}"
        for old in (None, b"old"):
            if old is not None:
                path.write_bytes(old)
            with refused(f"photos{ending} cannot be written"), full_disk(1000):
                write_dataset(labels if ending == ".jsonl" else dataset, path)
            if ending != ".npz":
                with refused(f"photos{ending} cannot be written"), full_disk(1000):
                    write_prediction_table(table, path)
            left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
            assert left == ({} if old is None else {path.name: old}), ending
        path.unlink()


def test_a_full_disk_leaves_the_model_that_was_there(tmp_path: Path) -> None:
    X, path = np.random.default_rng(0).normal(size=(30, 2)), tmp_path / "model"

    def fit(hidden: int, length: int) -> CandidateClassifier:
        clf = CandidateClassifier("bce", epochs=1, hidden=hidden, n_networks=1)
        return clf.fit(X, X > 0, label_names=["a" * length, "b"])

    small = fit(4, 1)
    small.save(path)
    for large in (fit(4000, 1), fit(4, 10_000)):  # in weights, and in their description
        with refused("model cannot be written: File too large"), full_disk(5000):
            large.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    loaded = CandidateClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), small.predict_proba(X))
