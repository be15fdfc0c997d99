"""The larger real files of COMES_DATA, and trainings on real files."""

from functools import cache
from pathlib import Path

import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from comes.datasets import open_dataset
from comes.estimator import CandidateClassifier
from comes.priors import count_class_prior, estimate_class_prior

read_once = cache(open_dataset)


def first_fold_score(path: Path, method: str, epochs: int) -> float:
    dataset = read_once(path)
    relevant, candidates = dataset.known_relevant(), dataset.known_candidates()
    train, test = next(KFold(10, shuffle=True, random_state=0).split(relevant))
    classifier = CandidateClassifier(
        method, class_prior=count_class_prior(relevant[train]), epochs=epochs, random_state=0
    )
    classifier.fit(dataset.X[train], relevant[train], candidates=candidates[train])
    return classifier.score(dataset.X[test], relevant[test])


@pytest.mark.needs("pml")
def test_comes_hl_beats_bce_where_candidates_are_noisy(pml_data: Path) -> None:
    comes_hl, bce = (
        first_fold_score(pml_data / "mirflickr5000.mat", method, epochs=60)
        for method in ("comes-hl", "bce")
    )
    assert comes_hl > 0.82
    assert bce < comes_hl - 0.01


@pytest.mark.needs("pml")
def test_sparse_features_learn(pml_data: Path) -> None:
    assert first_fold_score(pml_data / "YeastCC.mat", "comes-hl", epochs=30) > 0.5


@pytest.mark.needs("pml")
@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # a label without an anchor
def test_priors_are_found_where_candidates_are_nearly_the_truth(pml_data: Path) -> None:
    dataset = read_once(pml_data / "YeastCC.mat")
    estimate = estimate_class_prior(dataset.X, dataset.known_candidates())
    assert abs(estimate.class_prior - count_class_prior(dataset.known_relevant())).mean() < 0.004


@pytest.mark.needs("mulan")
def test_mulan_sets_have_the_published_number_of_labels_per_row() -> None:
    for name, cardinality, is_sparse in (
        ("yeast", 4.237, False),
        ("bibtex", 2.402, True),
        ("delicious", 19.020, True),
        ("Corel5k", 3.522, True),
    ):
        dataset = open_dataset(name)
        found = dataset.known_relevant().sum(axis=1).mean()
        assert found == pytest.approx(cardinality, abs=0.0005), name
        assert sparse.issparse(dataset.X) == is_sparse, name
