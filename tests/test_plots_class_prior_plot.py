"""The plot of class priors."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from comes.errors import ComesError
from comes.plots import plot_class_priors
from comes.priors import ClassPriorEstimate, prior_table
from drawn_axes import legend_of, points_of, rows_of, spans_of

PRIOR = np.array([0.2, 0.4])
ESTIMATE = ClassPriorEstimate(
    PRIOR, PRIOR, np.array([0.1, 0.4]), np.array([0.3, 0.7]), PRIOR / 10, ("ok", "ok")
)


def test_bounds_reach_from_lower_to_upper() -> None:
    for axes in (
        plot_class_priors(ESTIMATE, label_names=["sky", "sea"]),
        plot_class_priors(prior_table(ESTIMATE, ["sky", "sea"])),
    ):
        assert rows_of(axes) == ["sea", "sky"]  # the most frequent first
        assert spans_of(axes) == [[0.4, 0.7], [0.1, 0.3]]
        assert points_of(axes, 0)[:, 0].tolist() == [0.4, 0.2]
        assert legend_of(axes) == []


def test_true_priors_are_marked_where_they_are_known() -> None:
    table = prior_table(ESTIMATE, ["sky", "sea"], relevant=[[1, 0], [0, 1], [0, 1], [0, 0]])
    for axes in (plot_class_priors(table), plot_class_priors(ESTIMATE, [0.25, 0.5])):
        assert points_of(axes, 1)[:, 0].tolist() == [0.5, 0.25]
        assert legend_of(axes) == ["estimated", "true"]


def test_a_classifier_has_bounds_by_its_standard_errors() -> None:
    fitted = SimpleNamespace(
        class_prior_=PRIOR, class_prior_error_=np.array([0.1, np.nan]), label_names_=["sky", "sea"]
    )
    axes = plot_class_priors(fitted)
    assert rows_of(axes) == ["sea", "sky"]
    np.testing.assert_allclose(spans_of(axes)[1], [0.2 - 0.196, 0.2 + 0.196])
    assert spans_of(axes)[0] == []  # a dot alone
    with pytest.raises(ComesError, match="has no class prior"):
        plot_class_priors(SimpleNamespace(class_prior_=None))


def many(q: int) -> pd.DataFrame:
    prior = np.linspace(0.1, 0.5, q)
    labels = [f"label {k}" for k in range(q)]
    upper = prior + np.linspace(0, 0.4, q)
    return pd.DataFrame({"label": labels, "class_prior": prior, "lower": 0.0, "upper": upper})


def test_of_many_labels_those_with_the_widest_bounds_are_shown() -> None:
    axes = plot_class_priors(many(217), most=3)
    assert rows_of(axes) == ["label 216", "label 215", "label 214"]
    assert "3 of 217 labels: those with the widest bounds" in axes.get_xlabel()


def test_many_labels_with_the_truth_are_drawn_over_it_and_all_of_them() -> None:
    truth = np.linspace(0, 1, 217)
    axes = plot_class_priors(many(217), truth)
    assert axes.get_xlabel() == "true class prior"
    np.testing.assert_array_equal(points_of(axes, 1)[:, 0], truth)


def test_names_and_true_priors_must_fit_the_labels() -> None:
    with pytest.raises(ComesError, match=r"for each of 2 labels; got shape \(1,\)"):
        plot_class_priors(ESTIMATE, [0.2])
    with pytest.raises(ComesError, match="must name each of 2 labels; got 1 names"):
        plot_class_priors(ESTIMATE, label_names=["sky"])
