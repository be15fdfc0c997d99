"""Features of many pictures in several processes: killed, resumed, and computed once."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import counted_features
from counted_features import N, compute, compute_in_memory, write_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pictures."""
    return write_folder(tmp_path)


def start(folder: Path, *stop_at: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, counted_features.__file__, str(folder), *stop_at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_computation_goes_on_to_the_same_bytes(folder: Path, cache: Path) -> None:
    with start(folder, "24") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        process.kill()
    (mark,) = cache.glob("*.json")
    assert json.loads(mark.read_text())["done"] == 24
    output, error = start(folder).communicate()
    assert output == f"{N - 24}\n", error
    (file,) = cache.iterdir()
    resumed = file.read_bytes()
    file.unlink()
    compute(folder)
    assert file.read_bytes() == resumed


def test_two_processes_compute_once(folder: Path, cache: Path) -> None:
    with start(folder, "24") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "stopped\n"
        with start(folder) as second:
            assert second.stderr is not None
            for line in second.stderr:
                if "another process computes features" in line:
                    break
            else:
                pytest.fail("the second process did not wait for the first")
            output, error = first.communicate("go on\n")
            assert output == f"{N}\n", error
            output, error = second.communicate()
            assert output == "0\n", error
    assert [file.suffix for file in cache.iterdir()] == [".npy"]
    np.testing.assert_array_equal(compute(folder), compute_in_memory(folder))
