"""Features of many pictures: on disk as they are computed, resumed, never computed twice."""

import errno
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from comes.datasets import Images
from comes.datasets.images import image_names
from comes.errors import ComesError, ComesWarning
from comes.files import features as files_features
from comes.generation import case_b
from comes.images import classifier
from comes.images.features import as_pictures, compute_features, stream_features
from comes.training.pixels import Preprocessing
from counted_features import (
    AT_ONCE,
    CPU,
    Counting,
    N,
    compute,
    compute_in_memory,
    write_folder,
)
from pictures import SIZE, pictures, small_classifier


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pictures."""
    return write_folder(tmp_path)


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


def test_a_damaged_part_is_not_believed(folder: Path, cache: Path) -> None:
    expected = compute_in_memory(folder)
    for damage in ("short", "no mark", "odd mark", "rows after the mark"):
        with pytest.raises(KeyboardInterrupt):
            compute(folder, Counting(stop_at=24))
        (part,), (mark,) = cache.glob("*.part"), cache.glob("*.json")
        if damage == "short":
            part.write_bytes(part.read_bytes()[:-5])
        elif damage == "no mark":
            mark.unlink()
        elif damage == "odd mark":
            mark.write_text("{")
        else:
            part.write_bytes(part.read_bytes() + b"half a row that no mark speaks of")
        np.testing.assert_array_equal(compute(folder), expected, err_msg=damage)
        (file,) = cache.iterdir()
        file.unlink()


def test_a_full_disk_is_told_and_costs_nothing_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        found.append(compute_features(backbone, images, CPU))
    assert len(list(cache.iterdir())) == len(ways)
    for one in range(len(ways)):
        assert not any(np.array_equal(found[one], other) for other in found[one + 1 :])


def test_large_features_are_mapped_and_stay_as_they_are(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_features, "MAPPED", 0)
    found = compute(folder)
    assert isinstance(found, np.memmap)
    (file,) = cache.iterdir()
    before = file.read_bytes()
    torch.from_numpy(found).zero_()
    assert file.read_bytes() == before


def test_parts_are_the_rows(folder: Path) -> None:
    images = Images(folder, image_names(folder))
    for on_disk in (False, True):
        parts = list(stream_features(Counting(), images, CPU, cache=on_disk, at_once=AT_ONCE))
        assert [len(part) for part in parts] == [8, 8, 8, 8, 8, 8, 8, 4]
        np.testing.assert_array_equal(np.concatenate(parts), compute_in_memory(folder))


def test_a_prediction_holds_few_features_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, relevant = pictures(N)
    clf = small_classifier(probe_epochs=2).fit(pixels, case_b(relevant, 0.5, seed=0))
    whole = clf.decision_function(pixels)
    monkeypatch.setattr(classifier, "compute_features", pytest.fail)
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
    for images in (Images(folder, image_names(folder)), as_pictures(pictures(4)[0])):
        joined = hashlib.sha256(b"".join(images.states())).hexdigest()
        assert images.fingerprint() == joined
