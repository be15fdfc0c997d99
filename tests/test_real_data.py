"""On the real candidate labels of COMES_DATA, a training short enough for a test."""

from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.model_selection import KFold

from comes.datasets import read_dataset
from comes.estimator import CandidateClassifier
from comes.metrics import average_precision, count_degenerate
from comes.priors import count_class_prior, estimate_class_prior


def first_fold_score(path: Path, method: str, epochs: int) -> float:
    dataset = read_dataset(path)
    relevant, candidates = dataset.known_relevant(), dataset.candidates_with_names()
    train, test = next(KFold(10, shuffle=True, random_state=0).split(relevant))
    classifier = CandidateClassifier(
        method, class_prior=count_class_prior(relevant[train]), epochs=epochs, random_state=0
    )
    classifier.fit(dataset.X[train], relevant[train], candidates=candidates.iloc[train])
    return classifier.score(dataset.X[test], relevant[test])


def test_comes_hl_beats_bce_where_candidates_are_noisy(pml_data: Path) -> None:
    comes_hl, bce = (
        first_fold_score(pml_data / "mirflickr5000.mat", method, epochs=60)
        for method in ("comes-hl", "bce")
    )
    assert comes_hl > 0.82
    assert bce < comes_hl - 0.01


def test_yeast_counts_stay_sparse_and_are_as_described(pml_data: Path) -> None:
    dataset = read_dataset(pml_data / "YeastBP.mat")
    assert sparse.issparse(dataset.X)
    assert dataset.X.shape == (6139, 6139)
    assert count_degenerate(dataset.known_relevant())["rows_without_relevant"] == 1882
    assert str(dataset).startswith("6139 rows, 6139 features, 217 labels, 5.93 candidates per row")


def test_scoring_by_frequency_alone_looks_good_in_the_convention_of_scikit_learn(
    pml_data: Path,
) -> None:
    """The numbers of docs/metrics.md."""
    relevant = read_dataset(pml_data / "YeastCC.mat").known_relevant()
    scores = np.tile(relevant.mean(axis=0), (len(relevant), 1))
    assert round(average_precision(scores, relevant), 3) == 0.181
    assert round(average_precision(scores, relevant, "sklearn"), 3) == 0.676


def test_priors_are_found_where_candidates_are_nearly_the_truth(pml_data: Path) -> None:
    dataset = read_dataset(pml_data / "YeastCC.mat")
    estimate = estimate_class_prior(dataset.X, dataset.candidates_with_names())
    assert abs(estimate.class_prior - count_class_prior(dataset.known_relevant())).mean() < 0.002


def test_sparse_features_learn(pml_data: Path) -> None:
    assert first_fold_score(pml_data / "YeastCC.mat", "comes-hl", epochs=30) > 0.5
