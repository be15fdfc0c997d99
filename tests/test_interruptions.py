"""A disk that is full while a file is written; kills are in `system/test_interruptions_kills`."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from comes.datasets import Dataset, prediction_table, write_dataset, write_prediction_table
from comes.files import replacing_folder
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


def test_a_full_disk_leaves_the_folder_that_was_there(tmp_path: Path) -> None:
    for text in ("old", "new" * 1000):
        try:
            with full_disk(1000), replacing_folder(tmp_path / "model", ["model.json"]) as folder:
                (folder / "model.json").write_text(text)
        except ValueError as error:
            assert "cannot be written" in str(error) and len(text) > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "model.json").read_text() == "old"
