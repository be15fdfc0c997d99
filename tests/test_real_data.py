"""The real files of COMES_DATA: what they hold; trainings are in `system/test_real_trainings`."""

import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from comes.datasets import load_dataset, read_dataset, write_dataset
from comes.metrics import average_precision, count_degenerate

read_once, load_once = cache(read_dataset), cache(load_dataset)


@pytest.mark.needs("pml")
def test_yeast_counts_stay_sparse_and_are_as_described(pml_data: Path) -> None:
    dataset = load_once("YeastBP")
    assert sparse.issparse(dataset.X)
    assert dataset.X.shape == (6139, 6139)
    assert count_degenerate(dataset.known_relevant())["rows_without_relevant"] == 1882
    assert str(dataset).startswith("6139 rows, 6139 features, 217 labels, 5.93 candidates per row")


@pytest.mark.needs("pml")
def test_yeast_takes_little_memory(pml_data: Path) -> None:
    """At the peak, the dense counts as stored (38 MB) and what scipy needs to unpack them."""
    tracemalloc.start()
    dataset = read_dataset(pml_data / "YeastBP.mat")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dataset.X.nnz == 552_430
    assert kept < 10e6 and peak < 70e6


@pytest.mark.needs("pml")
def test_pml_sets_by_name() -> None:
    for name, candidates, relevant in (
        ("YeastBP", 5.93, 5.54),
        ("YeastCC", 1.39, 1.35),
        ("YeastMF", 1.04, 1.01),
        ("mirflickr5000", 3.35, 1.77),
    ):
        dataset = load_once(name)
        assert dataset.candidates is not None, name
        assert dataset.candidates.sum(axis=1).mean() == pytest.approx(candidates, abs=0.005), name
        assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(relevant, abs=0.005)


@pytest.mark.needs("mulan")
def test_mulan_sets_by_name() -> None:
    for name, cardinality, is_sparse in (  # the published ones, emotions' truncated
        ("emotions", 1.868, False),
        ("scene", 1.074, False),
        ("enron", 3.378, True),
    ):
        dataset = load_dataset(name)
        found = dataset.known_relevant().sum(axis=1).mean()
        assert found == pytest.approx(cardinality, abs=0.0005), name
        assert sparse.issparse(dataset.X) == is_sparse, name


@pytest.mark.needs("mulan")
def test_an_official_split_is_a_part_of_the_whole(mulan_data: Path) -> None:
    whole, train, test = (load_dataset("scene", split) for split in ("", "train", "test"))
    np.testing.assert_array_equal(whole.X, np.concatenate([train.X, test.X]))
    parts = [train.known_relevant(), test.known_relevant()]
    np.testing.assert_array_equal(whole.relevant, np.concatenate(parts))


@pytest.mark.needs("images")
def test_voc_images_are_read_from_their_archive(image_data: Path) -> None:
    dataset = load_dataset("VOC2012-160px", "val")
    assert dataset.items is not None and dataset.items[0] == "2008_000002.jpg"
    assert dataset.X[0].shape == (160, 160, 3) and dataset.X[5822].std() > 0
    assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(1.43, abs=0.005)
    assert load_dataset("VOC2012-160px", "val", difficult="relevant").known_relevant().sum() > (
        dataset.known_relevant().sum()
    )


@pytest.mark.needs("pml")
def test_real_files_survive_a_conversion(pml_data: Path, tmp_path: Path) -> None:
    dataset = load_once("mirflickr5000")
    for ending in (".npz", ".mat", ".parquet"):
        write_dataset(dataset, tmp_path / f"copy{ending}")
        copy = read_dataset(tmp_path / f"copy{ending}")
        np.testing.assert_array_equal(copy.X, dataset.X, ending)
        np.testing.assert_array_equal(copy.candidates, dataset.candidates, ending)
        np.testing.assert_array_equal(copy.relevant, dataset.relevant, ending)


@pytest.mark.needs("pml")
def test_scoring_by_frequency_alone_looks_good_in_the_convention_of_scikit_learn(
    pml_data: Path,
) -> None:
    """The numbers of docs/reference/metrics.md."""
    relevant = read_once(pml_data / "YeastCC.mat").known_relevant()
    scores = np.tile(relevant.mean(axis=0), (len(relevant), 1))
    assert round(average_precision(scores, relevant), 3) == 0.181
    assert round(average_precision(scores, relevant, "sklearn"), 3) == 0.676
