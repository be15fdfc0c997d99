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
from comes.estimator import view_heads
from comes.generation import case_b, simulate_answers
from comes.methods import METHODS
from comes.models import Backbone, Clusters, Views, make_backbone
from comes.priors import count_class_prior
from pictures import SIZE, pictures, small_classifier, tiny

PIXELS, RELEVANT = pictures()
FRESH, TRUTH = pictures(seed=1)
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
KINDS = ("classes", "clusters", "both", "all", "pooled")
N_CLASSES, N_CLUSTERS, N_POOLED = 8, 12, 256
WIDTHS = {"classes": 8, "clusters": 12, "both": 20, "all": 276, "pooled": 256}


def with_classes() -> Backbone:
    torch.manual_seed(1)
    return Backbone(tiny(), nn.Linear(N_POOLED, N_CLASSES))


def classifier(**settings: Any) -> ImageClassifier:
    return small_classifier(**{"backbone": with_classes()} | settings)


def test_by_default_the_likelihood_reads_everything_there_is() -> None:
    clf = classifier().fit(PIXELS, CANDIDATES)
    assert clf.method_ == "likelihood"
    views = clf.network_.views
    assert isinstance(views, Views) and views.pooled
    assert isinstance(views.clusters, Clusters) and views.classifier is not None
    assert clf.score(FRESH, TRUTH) > 0.9
    without = classifier(backbone=tiny()).fit(PIXELS, CANDIDATES).network_.views
    assert isinstance(without, Views) and without.pooled
    assert without.classifier is None and without.clusters is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:The scores of label")
def test_every_kind_is_saved_and_fine_tuned(kind: str, tmp_path: Path) -> None:
    clf = classifier(features=kind, temperature=0.7).fit(PIXELS, CANDIDATES)
    assert isinstance(clf.network_.head, nn.Linear)
    assert clf.network_.head.in_features == WIDTHS[kind]
    assert (clf.network_.views is None) == (kind == "pooled")
    if kind == "pooled" or kind == "all":
        assert clf.score(FRESH, TRUTH) > 0.9
    scores = clf.decision_function(PIXELS)
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=with_classes())
    np.testing.assert_array_equal(loaded.decision_function(PIXELS), scores)
    np.testing.assert_array_equal(loaded.predict(PIXELS), clf.predict(PIXELS))
    loaded.save(tmp_path / "again")
    again = ImageClassifier.load(tmp_path / "again", backbone=with_classes())
    np.testing.assert_array_equal(again.decision_function(PIXELS), scores)
    pickled = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(pickled.decision_function(PIXELS), scores)
    np.testing.assert_array_equal(
        clone(clf).fit(PIXELS, CANDIDATES).decision_function(PIXELS), scores
    )


@pytest.mark.parametrize("kind", ["both", "all"])
def test_fine_tuning_goes_on_from_a_head_of_views(kind: str, tmp_path: Path) -> None:
    still = {"learning_rate": 0.0, "backbone_learning_rate": 0.0}
    probed = classifier(features=kind).fit(PIXELS, CANDIDATES)
    unchanged = classifier(features=kind, epochs=1, **still).fit(PIXELS, CANDIDATES)
    scores = probed.decision_function(PIXELS)
    np.testing.assert_allclose(unchanged.decision_function(PIXELS), scores, atol=1e-4)
    settings: dict[str, Any] = {"features": kind, "epochs": 2, "augment": "none", "batch_size": 40}
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
    for name, tensor in whole.network_.views.state_dict().items():  # type: ignore[union-attr]
        assert torch.equal(tensor, probed.network_.views.state_dict()[name])  # type: ignore[union-attr]


def test_a_probe_of_views_leaves_the_network_of_the_user_alone() -> None:
    own = with_classes()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    clf = classifier(backbone=own, epochs=1, backbone_learning_rate=1e-3).fit(PIXELS, CANDIDATES)
    assert own.classifier is not None and all(p.requires_grad for p in own.parameters())
    assert all(torch.equal(own.state_dict()[name], before[name]) for name in before)
    assert all(parameter.grad is None for parameter in clf.network_.views.parameters())  # type: ignore[union-attr]


@pytest.mark.parametrize("threshold", ["prior", "risk", "f1"])
def test_learned_thresholds_see_scores_of_rows_that_were_left_out(
    threshold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    real = view_heads.cross_score

    def spy(*args: Any) -> Any:
        asked.append(real(*args))
        return asked[-1]

    monkeypatch.setattr(view_heads, "cross_score", spy)
    clf = classifier(threshold=threshold).fit(PIXELS, CANDIDATES)
    from comes.selection import choose_thresholds

    (scores,) = asked
    by: Any = threshold
    expected = choose_thresholds(scores, Answers.from_candidates(CANDIDATES), PRIOR, by)
    np.testing.assert_allclose(clf.threshold_, expected)
    assert 0 < clf.predict(PIXELS).mean() < 1
    classifier().fit(PIXELS, CANDIDATES)
    assert len(asked) == 1  # by default nothing is learned


def test_thresholds_are_learned_on_what_early_stopping_holds_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("was cross-scored")

    monkeypatch.setattr(view_heads, "cross_score", refuse)
    clf = classifier(threshold="f1", early_stopping=True).fit(PIXELS, CANDIDATES)
    assert clf.threshold_.shape == (3,) and len(clf.history_.validation) == 60


def positives() -> Answers:
    return Answers.from_positives(RELEVANT & (np.random.default_rng(0).random((120, 3)) < 0.8))


@pytest.mark.parametrize(
    ("answers", "settings"),
    [
        (simulate_answers(RELEVANT, asked_rate=0.8, seed=1), {"class_prior": None}),
        (simulate_answers(RELEVANT, asked_rate=0.8, seed=1), {"uses_maybe": False}),
        (simulate_answers(RELEVANT, asked_rate=0.8, seed=1), {"threshold": "f1"}),
        (positives(), {}),
        (positives(), {"threshold": "f1"}),
    ],
)
def test_pictures_are_learned_from_answers_of_every_kind(answers: Any, settings: Any) -> None:
    clf = classifier(**settings).fit(PIXELS, answers)
    assert clf.score(FRESH, TRUTH) > 0.85
    assert clf.network_.views is not None


def test_what_is_unsure_counts_only_where_it_is_used() -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.8, no_rate=0.9, yes_rate=0.3, seed=1)
    with_it, without = (
        classifier(uses_maybe=uses).fit(PIXELS, answers).decision_function(PIXELS)
        for uses in (True, False)
    )
    assert not np.allclose(with_it, without, atol=1e-3)


def test_one_label_and_few_pictures() -> None:
    one = classifier(class_prior=PRIOR[:1]).fit(PIXELS, CANDIDATES[:, :1])
    assert one.decision_function(PIXELS).shape == (120, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        for n in (1, 2, 9):
            S = CANDIDATES[:n].copy()
            S[0] = False
            few = classifier().fit(PIXELS[:n], S)
            assert np.isfinite(few.decision_function(PIXELS)).all()


def test_a_flip_rate_is_refused_by_the_likelihood() -> None:
    with pytest.raises(ComesError, match="flip_rate is for method"):
        classifier(flip_rate=0.1).fit(PIXELS, CANDIDATES)


@pytest.mark.parametrize("name", [n for n, f in METHODS.items() if "images" in f.uses])
def test_every_method_reads_what_it_can(name: str) -> None:
    family = METHODS[name]
    known = dict(family.settings_with_prior)
    clf = classifier(method=name, probe_epochs=2, **known).fit(PIXELS, CANDIDATES)
    width = "all" if family.has_view_head else "classes" if family.has_sparse_head else "pooled"
    assert clf.network_.head.in_features == WIDTHS[width]
    # A head on pooled features or views reads what is below the classifier.
    assert (clf.network_.backbone.classifier is None) == (width != "classes")


def test_the_paper_s_head_is_as_it_was() -> None:
    """COMES-HL trains its sparse head by plain steps on classes alone."""
    clf = classifier(method="comes-hl").fit(PIXELS, CANDIDATES)
    from comes.estimator import features_of, sparse_head
    from comes.estimator.features import as_pictures

    X = features_of(with_classes(), as_pictures(PIXELS), SIZE, torch.device("cpu"), cache=False)
    head = sparse_head(X, CANDIDATES, PRIOR, 2.0, epochs=30, random_state=0, device="cpu")
    head.fit(X, CANDIDATES)
    np.testing.assert_allclose(
        clf.decision_function(PIXELS), head.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_the_seed_decides_the_clusters() -> None:
    one, again, other = (
        classifier(features="clusters", random_state=seed).fit(PIXELS, CANDIDATES).network_
        for seed in (0, 0, 5)
    )
    assert torch.equal(one.head.weight, again.head.weight)  # type: ignore[arg-type]
    assert not torch.equal(one.views.clusters.centres, other.views.clusters.centres)  # type: ignore[union-attr, arg-type]


@pytest.mark.filterwarnings("ignore:The scores of label")
def test_the_hotter_the_more_classes_a_picture_has() -> None:
    cold, hot = (
        classifier(features="classes", temperature=t).fit(PIXELS, CANDIDATES).network_
        for t in (0.05, 5.0)
    )
    features = torch.randn(4, N_POOLED, generator=torch.Generator().manual_seed(0))
    assert cold.views is not None and hot.views is not None
    assert (cold.views(features).max(dim=1).values > hot.views(features).max(dim=1).values).all()


def test_a_backbone_is_still_one() -> None:
    assert isinstance(classifier().fit(PIXELS, CANDIDATES).network_.backbone, Backbone)
    came = make_backbone(tiny()).state_dict()
    found = classifier().fit(PIXELS, CANDIDATES).network_.backbone.state_dict()
    assert all(torch.equal(came[name], found[name]) for name in came)
