"""Scorers for scikit-learn that see candidates alone."""

import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from comes.errors import ComesError
from comes.selection import candidate_scorer, estimate_metrics
from comes.selection.scorers import Criterion
from noisy_halves import CANDIDATES, PRIOR, X, classifier


def test_a_scorer_is_the_estimate() -> None:
    fitted = classifier("comes-rl", n_networks=1).fit(X, CANDIDATES)
    scores = fitted.decision_function(X)
    found = estimate_metrics(scores, CANDIDATES, PRIOR, predictions=fitted.predict(X))
    cases: list[tuple[Criterion, str, int]] = [
        ("hamming", "hamming_loss", -1),
        ("ranking", "ranking_risk", -1),
        ("auc", "macro_auc", 1),
    ]
    for criterion, metric, sign in cases:
        expected = pytest.approx(sign * found[metric].value)
        assert candidate_scorer(criterion)(fitted, X, CANDIDATES) == expected, criterion
        other = candidate_scorer(criterion, class_prior=PRIOR / 2)(fitted, X, CANDIDATES)
        assert other != expected, criterion
        frame = pd.DataFrame(CANDIDATES, columns=fitted.label_names_)
        turned = frame[fitted.label_names_[::-1]]  # labels are matched by name
        assert candidate_scorer(criterion)(fitted, X, turned) == expected, criterion


def test_a_grid_search_in_a_pipeline_needs_no_true_label() -> None:
    pipeline = make_pipeline(StandardScaler(), classifier(epochs=40, n_networks=1))
    grid = {"candidateclassifier__learning_rate": [1e-9, 1e-2]}
    search = GridSearchCV(pipeline, grid, scoring=candidate_scorer("auc"), cv=3)
    search.fit(X, CANDIDATES)
    assert search.best_params_ == {"candidateclassifier__learning_rate": 1e-2}
    assert 0.7 < search.best_score_ <= 1.2


def test_a_scorer_that_knows_no_prior_says_so() -> None:
    with pytest.raises(ComesError, match="has no class_prior_: give candidate_scorer"):
        candidate_scorer()(
            classifier("bce", epochs=1, n_networks=1).fit(X, CANDIDATES), X, CANDIDATES
        )
    with pytest.raises(ComesError, match="criterion must be one of hamming, ranking, auc"):
        candidate_scorer("accuracy")  # type: ignore[arg-type]
