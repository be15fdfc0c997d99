"""Features of many pictures: on disk as they are computed, resumed, never computed twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from comes import ImageClassifier
from comes.datasets import Images, image_names, open_images
from comes.errors import ComesError, ComesWarning
from comes.estimator import features_of, image_classifier
from comes.estimator.features import as_pictures, stream_features
from comes.files import growing
from comes.generation import case_b
from comes.models import Backbone, Preprocessing
from pictures import SIZE, pictures, tiny

CPU = torch.device("cpu")
N, AT_ONCE = 60, 8

COMPUTE = """
import sys, time
import torch
sys.path.insert(0, sys.argv[2])
import test_estimator_features as tests
tests.growing.SECONDS = 0.0
backbone = tests.Counting(seconds=float(sys.argv[3]))
tests.compute(tests.Path(sys.argv[1]), backbone)
print(sum(backbone.rows))
"""


class Counting(Backbone):
    """The tiny network; remembers how many pictures it saw, and may be slow."""

    def __init__(self, seconds: float = 0.0, stop_at: int | None = None) -> None:
        super().__init__(tiny(), preprocessing=Preprocessing(SIZE))
        self.rows: list[int] = []
        self.seconds, self.stop_at = seconds, stop_at

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        if self.stop_at is not None and sum(self.rows) >= self.stop_at:
            raise KeyboardInterrupt
        time.sleep(self.seconds)
        if pixels.any():  # zeros only tell the number of features
            self.rows.append(len(pixels))
        return super().forward(pixels)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pictures."""
    (tmp_path / "photos").mkdir()
    for row, picture in enumerate(pictures(N)[0]):
        Image.fromarray(picture).save(tmp_path / "photos" / f"{row:03}.png")
    return tmp_path / "photos"


def compute(folder: Path, backbone: Backbone | None = None, skip_broken: bool = False) -> Any:
    """Return the features of a folder."""
    images, _ = open_images(folder, image_names(folder), skip_broken)
    return features_of(backbone or Counting(), images, None, CPU, at_once=AT_ONCE)


def compute_in_memory(folder: Path) -> Any:
    """Return the same, nothing from disk."""
    images = Images(folder, image_names(folder))
    return features_of(Counting(), images, None, CPU, cache=False, at_once=AT_ONCE)


def test_what_is_written_is_what_is_computed(folder: Path, cache: Path) -> None:
    found = compute(folder)
    np.testing.assert_array_equal(found, compute_in_memory(folder))
    (file,) = cache.iterdir()  # neither parts nor marks nor locks are left
    np.testing.assert_array_equal(np.load(file), found)
    backbone = Counting()
    compute(folder, backbone)
    assert backbone.rows == []


def test_an_interrupted_computation_goes_on(folder: Path, cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compute(folder, Counting(stop_at=24))
    assert {file.suffix for file in cache.iterdir()} == {".part", ".json"}
    backbone = Counting()
    found = compute(folder, backbone)
    assert sum(backbone.rows) == N - 24
    np.testing.assert_array_equal(found, compute_in_memory(folder))
    assert [file.suffix for file in cache.iterdir()] == [".npy"]


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_computation_goes_on_to_the_same_bytes(folder: Path, cache: Path) -> None:
    here = str(Path(__file__).parent)

    def start(seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", COMPUTE, str(folder), here, str(seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with start(0.2) as process:
        deadline = time.monotonic() + 60
        while not (marks := list(cache.glob("*.json"))) or read_done(marks[0]) < 16:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    (mark,) = cache.glob("*.json")
    done = read_done(mark)
    assert 16 <= done < N
    with start(0.0) as process:
        assert process.stdout is not None
        assert int(process.stdout.read()) == N - done
    (file,) = cache.iterdir()
    resumed = file.read_bytes()
    file.unlink()
    compute(folder)
    assert file.read_bytes() == resumed


def read_done(mark: Path) -> int:
    return int(json.loads(mark.read_text())["done"])


@pytest.mark.parametrize("skip_broken", [False, True])
def test_a_broken_picture_costs_nothing_before_it(folder: Path, skip_broken: bool) -> None:
    good = (folder / "040.png").read_bytes()
    (folder / "040.png").write_bytes(good[:50])
    with pytest.raises(ComesError, match="'040.png' cannot be read"):
        compute(folder)
    backbone = Counting()
    if skip_broken:
        with pytest.warns(ComesWarning, match="1 images cannot be read and are left out"):
            found = compute(folder, backbone, skip_broken=True)
    else:
        (folder / "040.png").write_bytes(good)
        found = compute(folder, backbone)
    assert sum(backbone.rows) == len(found) - 40
    (folder / "040.png").write_bytes(good)
    expected = compute_in_memory(folder)
    expected = np.delete(expected, 40, axis=0) if skip_broken else expected
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_changed_pictures_are_computed_again(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compute(folder, Counting(stop_at=24))
    (folder / "003.png").write_bytes((folder / "004.png").read_bytes())
    backbone = Counting()
    np.testing.assert_array_equal(compute(folder, backbone), compute_in_memory(folder))
    assert sum(backbone.rows) == N


@pytest.mark.parametrize("damage", ["short", "no mark", "odd mark"])
def test_a_damaged_part_is_not_believed(folder: Path, cache: Path, damage: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        compute(folder, Counting(stop_at=24))
    (part,), (mark,) = cache.glob("*.part"), cache.glob("*.json")
    if damage == "short":
        part.write_bytes(part.read_bytes()[:-5])
    elif damage == "no mark":
        mark.unlink()
    else:
        mark.write_text("{")
    np.testing.assert_array_equal(compute(folder), compute_in_memory(folder))


def test_rows_after_the_mark_are_overwritten(folder: Path, cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compute(folder, Counting(stop_at=24))
    (part,) = cache.glob("*.part")
    with part.open("ab") as file:
        file.write(b"half a row that no mark speaks of")
    np.testing.assert_array_equal(compute(folder), compute_in_memory(folder))


@pytest.mark.slow
def test_two_processes_compute_once(folder: Path, cache: Path) -> None:
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", COMPUTE, str(folder), here, "0.05"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = sorted(int(process.communicate()[0]) for process in started)
    assert counts == [0, N]
    assert [file.suffix for file in cache.iterdir()] == [".npy"]
    np.testing.assert_array_equal(compute(folder), compute_in_memory(folder))


def test_a_full_disk_is_told_and_costs_nothing_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    write, written = np.ascontiguousarray, []

    def fill_up(*arguments: Any) -> Any:
        written.append(arguments)
        if len(written) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(np, "ascontiguousarray", fill_up)
        with pytest.raises(ComesError, match="No space left on device. Make room there"):
            compute(folder)
    backbone = Counting()
    np.testing.assert_array_equal(compute(folder, backbone), compute_in_memory(folder))
    assert sum(backbone.rows) == N - 24


def test_another_preprocessing_is_another_file(folder: Path, cache: Path) -> None:
    images = Images(folder, image_names(folder))
    backbone = Counting()
    ways = [Preprocessing(SIZE), Preprocessing(SIZE, short_side=40), Preprocessing(24)]
    ways.append(Preprocessing(24, "bicubic"))
    found = []
    for way in ways:
        backbone.preprocessing = way
        found.append(features_of(backbone, images, None, CPU))
    assert len(list(cache.iterdir())) == len(ways)
    for one in range(len(ways)):
        assert not any(np.array_equal(found[one], other) for other in found[one + 1 :])


def test_large_features_are_mapped_and_stay_as_they_are(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "MAPPED", 0)
    found = compute(folder)
    assert isinstance(found, np.memmap)
    (file,) = cache.iterdir()
    before = file.read_bytes()
    torch.from_numpy(found).zero_()
    assert file.read_bytes() == before


@pytest.mark.parametrize("cache_on_disk", [False, True])
def test_parts_are_the_rows(folder: Path, cache_on_disk: bool) -> None:
    images = Images(folder, image_names(folder))
    parts = list(stream_features(Counting(), images, CPU, cache=cache_on_disk, at_once=AT_ONCE))
    assert [len(part) for part in parts] == [8, 8, 8, 8, 8, 8, 8, 4]
    np.testing.assert_array_equal(np.concatenate(parts), compute_in_memory(folder))


def test_a_prediction_holds_few_features_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, relevant = pictures(N)
    clf = ImageClassifier(
        backbone=tiny(), weights=None, image_size=SIZE, class_prior=relevant.mean(axis=0)
    ).fit(pixels, case_b(relevant, exclude_rate=0.5, seed=0))
    whole = clf.decision_function(pixels)
    monkeypatch.setattr(image_classifier, "features_of", pytest.fail)
    rows: list[int] = []
    score = clf.network_.score_features

    def count(part: torch.Tensor) -> torch.Tensor:
        rows.append(len(part))
        return score(part)

    monkeypatch.setattr(clf.network_, "score_features", count)
    clf.set_params(part_size=16)
    np.testing.assert_allclose(clf.decision_function(pixels), whole, atol=1e-5)
    assert rows == [16, 16, 16, 12]


def test_the_hash_is_that_of_all_states(folder: Path) -> None:
    import hashlib

    for images in (Images(folder, image_names(folder)), as_pictures(pictures(4)[0])):
        joined = hashlib.sha256(b"".join(images.states())).hexdigest()
        assert images.fingerprint() == joined
