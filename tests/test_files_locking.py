"""`locked`: one at a time, and none for ever; other processes are in `system/test_files_kills`."""

import threading
from pathlib import Path

import pytest

from comes.files import locked


def test_another_waits_until_the_first_is_done(tmp_path: Path) -> None:
    order: list[str] = []
    is_busy = threading.Event()

    def say_busy() -> None:
        order.append("busy")
        is_busy.set()

    def wait_for_the_lock() -> None:
        with locked(tmp_path / "lock", say_busy):
            order.append("second")
            assert (tmp_path / "lock").exists()  # a third one would wait for us

    with locked(tmp_path / "lock"):
        other = threading.Thread(target=wait_for_the_lock)
        other.start()
        assert is_busy.wait(300)
        order.append("first")
    other.join()
    assert order == ["busy", "first", "second"]
    assert not (tmp_path / "lock").exists()


def test_a_file_that_a_killed_process_left_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with locked(tmp_path / "lock", pytest.fail):
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


def test_an_error_inside_sets_it_free(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        _ = 1 / 0
    with locked(tmp_path / "lock", pytest.fail):
        pass
