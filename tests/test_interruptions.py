"""A disk that is full while a file is written; kills are in `system/test_interruptions_kills`."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from comes import CandidateClassifier
from comes.datasets import Dataset, prediction_table, write_dataset, write_prediction_table
from refusals import refused


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
