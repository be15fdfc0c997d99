"""The real files of COMES_DATA: what they hold, and trainings short enough for a test."""

import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from comes.datasets import load_dataset, read_dataset, write_dataset
from comes.estimator import CandidateClassifier
from comes.metrics import average_precision, count_degenerate
from comes.priors import count_class_prior, estimate_class_prior

read_once, load_once = cache(read_dataset), cache(load_dataset)


def first_fold_score(path: Path, method: str, epochs: int) -> float:
    dataset = read_once(path)
    relevant, candidates = dataset.known_relevant(), dataset.known_candidates()
    train, test = next(KFold(10, shuffle=True, random_state=0).split(relevant))
    classifier = CandidateClassifier(
        method, class_prior=count_class_prior(relevant[train]), epochs=epochs, random_state=0
    )
    classifier.fit(dataset.X[train], relevant[train], candidates=candidates[train])
    return classifier.score(dataset.X[test], relevant[test])


@pytest.mark.slow
def test_comes_hl_beats_bce_where_candidates_are_noisy(pml_data: Path) -> None:
    comes_hl, bce = (
        first_fold_score(pml_data / "mirflickr5000.mat", method, epochs=60)
        for method in ("comes-hl", "bce")
    )
    assert comes_hl > 0.82
    assert bce < comes_hl - 0.01


def test_yeast_counts_stay_sparse_and_are_as_described(pml_data: Path) -> None:
    dataset = load_once("YeastBP")
    assert sparse.issparse(dataset.X)
    assert dataset.X.shape == (6139, 6139)
    assert count_degenerate(dataset.known_relevant())["rows_without_relevant"] == 1882
    assert str(dataset).startswith("6139 rows, 6139 features, 217 labels, 5.93 candidates per row")


def test_yeast_takes_little_memory(pml_data: Path) -> None:
    """At the peak, the dense counts as stored (38 MB) and what scipy needs to unpack them."""
    tracemalloc.start()
    dataset = read_dataset(pml_data / "YeastBP.mat")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dataset.X.nnz == 552_430
    assert kept < 10e6 and peak < 70e6


@pytest.mark.parametrize(
    ("name", "candidates", "relevant"),
    [
        ("YeastBP", 5.93, 5.54),
        ("YeastCC", 1.39, 1.35),
        ("YeastMF", 1.04, 1.01),
        ("mirflickr5000", 3.35, 1.77),
    ],
)
def test_pml_sets_by_name(pml_data: Path, name: str, candidates: float, relevant: float) -> None:
    dataset = load_once(name)
    assert dataset.candidates is not None
    assert dataset.candidates.sum(axis=1).mean() == pytest.approx(candidates, abs=0.005)
    assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(relevant, abs=0.005)


@pytest.mark.parametrize(
    ("name", "cardinality"),  # the published ones, emotions' truncated
    [
        ("emotions", 1.868),
        ("scene", 1.074),
        ("yeast", 4.237),
        ("enron", 3.378),
        ("bibtex", 2.402),
        ("delicious", 19.020),
        ("Corel5k", 3.522),
    ],
)
def test_mulan_sets_by_name(mulan_data: Path, name: str, cardinality: float) -> None:
    dataset = load_dataset(name)
    assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(cardinality, abs=0.0005)
    assert sparse.issparse(dataset.X) == (name in ("enron", "bibtex", "delicious", "Corel5k"))


def test_an_official_split_is_a_part_of_the_whole(mulan_data: Path) -> None:
    whole, train, test = (load_dataset("scene", split) for split in ("", "train", "test"))
    np.testing.assert_array_equal(whole.X, np.concatenate([train.X, test.X]))
    parts = [train.known_relevant(), test.known_relevant()]
    np.testing.assert_array_equal(whole.relevant, np.concatenate(parts))


def test_voc_images_are_read_from_their_archive(image_data: Path) -> None:
    dataset = load_dataset("VOC2012-160px", "val")
    assert dataset.items is not None and dataset.items[0] == "2008_000002.jpg"
    assert dataset.X[0].shape == (160, 160, 3) and dataset.X[5822].std() > 0
    assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(1.43, abs=0.005)
    assert load_dataset("VOC2012-160px", "val", difficult="relevant").known_relevant().sum() > (
        dataset.known_relevant().sum()
    )


@pytest.mark.parametrize("ending", [".npz", ".mat", ".parquet"])
def test_real_files_survive_a_conversion(pml_data: Path, tmp_path: Path, ending: str) -> None:
    dataset = load_once("mirflickr5000")
    write_dataset(dataset, tmp_path / f"copy{ending}")
    copy = read_dataset(tmp_path / f"copy{ending}")
    np.testing.assert_array_equal(copy.X, dataset.X)
    np.testing.assert_array_equal(copy.candidates, dataset.candidates)
    np.testing.assert_array_equal(copy.relevant, dataset.relevant)


def test_scoring_by_frequency_alone_looks_good_in_the_convention_of_scikit_learn(
    pml_data: Path,
) -> None:
    """The numbers of docs/reference/metrics.md."""
    relevant = read_once(pml_data / "YeastCC.mat").known_relevant()
    scores = np.tile(relevant.mean(axis=0), (len(relevant), 1))
    assert round(average_precision(scores, relevant), 3) == 0.181
    assert round(average_precision(scores, relevant, "sklearn"), 3) == 0.676


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # a label without an anchor
def test_priors_are_found_where_candidates_are_nearly_the_truth(pml_data: Path) -> None:
    dataset = read_once(pml_data / "YeastCC.mat")
    estimate = estimate_class_prior(dataset.X, dataset.known_candidates())
    assert abs(estimate.class_prior - count_class_prior(dataset.known_relevant())).mean() < 0.004


def test_sparse_features_learn(pml_data: Path) -> None:
    assert first_fold_score(pml_data / "YeastCC.mat", "comes-hl", epochs=30) > 0.5
