from pathlib import Path

import pytest

from comes.errors import ComesError
from comes.files import replacing_file, replacing_folder


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "scores.csv"
    target.write_text("old")
    with replacing_file(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    file, folder = tmp_path / "scores.csv", tmp_path / "model"
    file.write_text("old")
    folder.mkdir()
    (folder / "model.json").write_text("old")
    with pytest.raises(error), replacing_file(file) as temporary:
        temporary.write_text("half")
        raise error
    with pytest.raises(error), replacing_folder(folder, "model.json") as half:
        (half / "model.json").write_text("half")
        raise error
    assert file.read_text() == (folder / "model.json").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [folder, file]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with replacing_folder(tmp_path / "model", "model.json") as folder:
            (folder / "model.json").write_text(text)
            (folder / text).touch()
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["model.json", "new"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_folder_around_must_exist(tmp_path: Path) -> None:
    inside = tmp_path / "nowhere" / "scores.csv"
    message = "nowhere is not a folder. Create it first"
    with pytest.raises(ComesError, match=message), replacing_file(inside):
        pass
