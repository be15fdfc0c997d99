"""What the head of an `ImageClassifier` reads: every kind, trained, saved, fine-tuned and cut."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from comes import Answers, ImageClassifier
from comes.errors import ComesError, ComesWarning
from comes.estimator import sparse_head, view_heads
from comes.generation import case_b, simulate_answers
from comes.images import Backbone, compute_features, make_backbone
from comes.images.network import Clusters, Views
from comes.methods import METHODS
from comes.priors import count_class_prior
from comes.selection import choose_thresholds
from pictures import SIZE, pictures, small_classifier, tiny

PIXELS, RELEVANT = pictures()
FRESH, TRUTH = pictures(seed=1)
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
N_CLASSES, N_CLUSTERS, N_POOLED = 8, 12, 256
WIDTHS = {"all": 276, "pooled": 256}


def with_classes() -> Backbone:
    torch.manual_seed(1)
    return Backbone(tiny(), nn.Linear(N_POOLED, N_CLASSES))


def classifier(**settings: Any) -> ImageClassifier:
    return small_classifier(**{"backbone": with_classes()} | settings)


@pytest.fixture(scope="module")
def fitted() -> ImageClassifier:
    """The default head, of a network with classes, which no test changes."""
    return classifier().fit(PIXELS, CANDIDATES)


def test_by_default_the_likelihood_reads_everything_there_is(fitted: ImageClassifier) -> None:
    assert fitted.method_ == "likelihood"
    views = fitted.network_.views
    assert isinstance(views, Views) and views.pooled
    assert isinstance(views.clusters, Clusters) and views.classifier is not None
    assert fitted.score(FRESH, TRUTH) > 0.9
    assert isinstance(fitted.network_.backbone, Backbone)
    without = classifier(backbone=tiny(), probe_epochs=2).fit(PIXELS, CANDIDATES).network_.views
    assert isinstance(without, Views) and without.pooled
    assert without.classifier is None and without.clusters is not None


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.filterwarnings("ignore:The scores of label")
def test_every_kind_is_saved_pickled_and_cloned(kind: str, tmp_path: Path) -> None:
    clf = classifier(features=kind, temperature=0.7, probe_epochs=10).fit(PIXELS, CANDIDATES)
    assert isinstance(clf.network_.head, nn.Linear)
    assert clf.network_.head.in_features == WIDTHS[kind]
    assert (clf.network_.views is None) == (kind == "pooled")
    scores = clf.decision_function(PIXELS)
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=with_classes())
    np.testing.assert_array_equal(loaded.decision_function(PIXELS), scores)
    np.testing.assert_array_equal(loaded.predict(PIXELS), clf.predict(PIXELS))
    pickled = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(pickled.decision_function(PIXELS), scores)
    if kind == "all":
        again = clone(clf).fit(PIXELS, CANDIDATES)
        np.testing.assert_array_equal(again.decision_function(PIXELS), scores)


def test_pooled_features_alone_are_enough_to_learn() -> None:
    clf = classifier(features="pooled").fit(PIXELS, CANDIDATES)
    assert clf.score(FRESH, TRUTH) > 0.9


@pytest.mark.long
def test_fine_tuning_goes_on_from_a_head_of_views(fitted: ImageClassifier, tmp_path: Path) -> None:
    still = {"learning_rate": 0.0, "backbone_learning_rate": 0.0}
    unchanged = classifier(epochs=1, **still).fit(PIXELS, CANDIDATES)
    scores = fitted.decision_function(PIXELS)
    np.testing.assert_allclose(unchanged.decision_function(PIXELS), scores, atol=1e-4)
    settings: dict[str, Any] = {"epochs": 2, "augment": "none", "batch_size": 40}
    settings["soft_targets"] = False
    whole = classifier(**settings).fit(PIXELS, CANDIDATES)
    parts = classifier(**settings, part_size=16).fit(PIXELS, CANDIDATES)
    tuned = whole.decision_function(PIXELS)
    assert np.abs(tuned - scores).max() > 0.1
    # Adam makes full steps of the noise of small gradients, of which the network has many.
    difference = np.abs(parts.decision_function(PIXELS) - tuned)
    assert difference.mean() < 0.1 * np.abs(tuned - scores).mean()
    whole.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=with_classes())
    np.testing.assert_allclose(loaded.decision_function(PIXELS), tuned, atol=1e-5)
    before, after = fitted.network_.views, whole.network_.views
    assert before is not None and after is not None
    for name, tensor in after.state_dict().items():
        assert torch.equal(tensor, before.state_dict()[name])


def test_learned_thresholds_see_scores_of_rows_that_were_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    real = view_heads.cross_score

    def spy(*args: Any) -> Any:
        asked.append(real(*args))
        return asked[-1]

    monkeypatch.setattr(view_heads, "cross_score", spy)
    ways: tuple[Any, ...] = ("prior", "f1")
    for by in ways:
        clf = classifier(threshold=by, probe_epochs=10).fit(PIXELS, CANDIDATES)
        said = Answers.from_candidates(CANDIDATES)
        expected = choose_thresholds(asked[-1], said, PRIOR, by)
        np.testing.assert_allclose(clf.threshold_, expected, err_msg=by)
        assert 0 < clf.predict(PIXELS).mean() < 1
    classifier(probe_epochs=2).fit(PIXELS, CANDIDATES)
    assert len(asked) == len(ways)  # by default nothing is learned


def test_thresholds_are_learned_on_what_early_stopping_holds_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("was cross-scored")

    monkeypatch.setattr(view_heads, "cross_score", refuse)
    clf = classifier(threshold="f1", early_stopping=True).fit(PIXELS, CANDIDATES)
    assert clf.threshold_.shape == (3,) and len(clf.history_.validation) == 60


def test_pictures_are_learned_from_answers_and_from_ticks() -> None:
    asked = simulate_answers(RELEVANT, asked_rate=0.8, seed=1)
    ticked = RELEVANT & (np.random.default_rng(0).random(RELEVANT.shape) < 0.8)
    positives = Answers.from_positives(ticked)
    cases: list[tuple[Answers, dict[str, Any]]] = [
        (asked, {"no_rate": 0.8, "yes_rate": 0.8}),
        (positives, {"yes_rate": 0.8, "threshold": "f1"}),
    ]
    for answers, settings in cases:
        clf = classifier(**settings).fit(PIXELS, answers)
        assert clf.score(FRESH, TRUTH) > 0.85, answers.kind
        assert clf.network_.views is not None


def test_what_is_unsure_counts_only_where_it_is_used() -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.8, no_rate=0.9, yes_rate=0.3, seed=1)
    known = {"no_rate": 0.9, "yes_rate": 0.3}
    with_it, without = (
        classifier(uses_maybe=uses, probe_epochs=10, **known)
        .fit(PIXELS, answers)
        .decision_function(PIXELS)
        for uses in (True, False)
    )
    assert not np.allclose(with_it, without, atol=1e-3)


def test_one_label_and_few_pictures() -> None:
    one = classifier(class_prior=PRIOR[:1], probe_epochs=2).fit(PIXELS, CANDIDATES[:, :1])
    assert one.decision_function(PIXELS).shape == (120, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        for n in (1, 2, 9):
            S = CANDIDATES[:n].copy()
            S[0] = False
            few = classifier(probe_epochs=5).fit(PIXELS[:n], S)
            assert np.isfinite(few.decision_function(PIXELS)).all()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_and_reads_what_it_can(name: str) -> None:
    named = METHODS[name]
    known = dict(named.settings_with_prior)
    clf = classifier(method=name, probe_epochs=2, epochs=1, **known)
    clf.fit(PIXELS[:20], CANDIDATES[:20])
    width = N_CLASSES if named.has_sparse_head else N_POOLED
    if named.has_view_head:
        width = N_CLASSES + 2 + N_POOLED  # a cluster for every ten pictures
    assert clf.network_.head.in_features == width
    # A head on pooled features or views reads what is below the classifier.
    assert (clf.network_.backbone.classifier is None) == (width != N_CLASSES)
    assert np.isfinite(clf.decision_function(PIXELS[:4])).all()


def test_the_paper_s_head_is_as_it_was() -> None:
    """COMES-HL trains its sparse head by plain steps on classes alone."""
    clf = classifier(method="comes-hl").fit(PIXELS, CANDIDATES)
    X = compute_features(make_backbone(with_classes(), size=SIZE), PIXELS, "cpu", cache=False)
    head = sparse_head(X, CANDIDATES, PRIOR, 2.0, epochs=30, random_state=0, device="cpu")
    head.fit(X, CANDIDATES)
    np.testing.assert_allclose(
        clf.decision_function(PIXELS), head.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_the_seed_decides_the_clusters() -> None:
    one, again, other = (
        classifier(random_state=seed, probe_epochs=2).fit(PIXELS, CANDIDATES).network_
        for seed in (0, 0, 5)
    )
    assert torch.equal(one.head.weight, again.head.weight)  # type: ignore[arg-type]
    assert not torch.equal(one.views.clusters.centres, other.views.clusters.centres)  # type: ignore[union-attr, arg-type]


@pytest.mark.filterwarnings("ignore:The scores of label", "ignore:No label is predicted")
def test_the_hotter_the_more_classes_a_picture_has() -> None:
    cold, hot = (
        classifier(temperature=t, probe_epochs=2).fit(PIXELS, CANDIDATES).network_
        for t in (0.05, 5.0)
    )
    features = torch.randn(4, N_POOLED, generator=torch.Generator().manual_seed(0))
    assert cold.views is not None and hot.views is not None
    most = [views(features)[:, :N_CLASSES].amax(dim=1) for views in (cold.views, hot.views)]
    assert (most[0] > most[1]).all()


def test_a_head_on_classes_is_sparse_and_at_least_zero() -> None:
    clf = classifier(method="comes-hl").fit(PIXELS, CANDIDATES)
    assert isinstance(clf.network_.head, nn.Linear)
    weight = clf.network_.head.weight
    assert weight.shape == (3, 8)
    assert (weight >= 0).all() and (weight == 0).any() and (weight > 0).any()
    assert np.abs(clf.predict_proba(PIXELS).mean(axis=0) - PRIOR).max() < 0.15  # its level
    nothing = classifier(method="comes-hl", standard_errors=1000.0).fit(PIXELS, CANDIDATES)
    assert isinstance(nothing.network_.head, nn.Linear)
    assert (nothing.network_.head.weight == 0).all()


def test_features_that_cannot_be_read_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"features": "all", "method": "bce"}, "trains no such head. Take one of pooled."),
        ({"features": "classes"}, "features must be one of auto, all, pooled"),
        ({"features": "all", "reduction": "mean"}, "reduction is 'mean'.* Take one of pooled."),
        (
            {"features": "all", "probe_epochs": 0, "epochs": 1},
            "probe_epochs is 0. Take one of pooled",
        ),
    ]
    for settings, message in cases:
        with pytest.raises(ComesError, match=message):
            pytest.fail(f"{classifier(**settings).fit(PIXELS, CANDIDATES)} was fitted")


def test_other_methods_and_reductions_read_pooled_features() -> None:
    for settings in ({"method": "comes-hl-unbiased"}, {"reduction": "mean"}):
        clf = classifier(probe_epochs=2, **settings)
        assert clf.fit(PIXELS, CANDIDATES).network_.backbone.classifier is None
