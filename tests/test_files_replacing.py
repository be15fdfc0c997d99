from pathlib import Path

import pytest

from comes.files import (
    check_file_target,
    check_folder_target,
    replacing,
    replacing_file,
    replacing_folder,
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

    monkeypatch.setattr(replacing, "_exchange", lambda *_: False)  # a system that cannot
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
            monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
        with replacing_folder(tmp_path / "model", ["model.json"]) as folder:
            (folder / "model.json").write_text(text)
        assert (tmp_path / "model" / "model.json").read_text() == text
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
