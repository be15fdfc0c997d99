"""`ImageClassifier`: pictures in, labels out; what its head reads, what is refused and kept."""

import copy
import hashlib
import pickle
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from torch import nn

from comes import Answers, ImageClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError, ComesWarning
from comes.estimator.prepare import as_plain
from comes.flat_settings import from_flat, frozen_settings
from comes.generation import case_b, simulate_answers
from comes.images import Backbone, backbones, classifier, compute_features, features, make_backbone
from comes.images.backbones import get_strides, import_torchvision, set_strides
from comes.images.fine_tuning import FineTuning
from comes.images.heads import class_head, cross_score
from comes.images.network import Clusters, Views
from comes.methods import METHODS, Likelihood, find_method
from comes.priors import count_class_prior, estimate_class_prior
from comes.selection import choose_thresholds
from comes.training import loop
from comes.training.pixels import PixelRows
from pictures import LABELS, SIZE, pictures, small_classifier, tiny, write_pictures
from serving import Server

PIXELS, RELEVANT = pictures()
FRESH, TRUTH = pictures(seed=1)
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
FEW, FEW_CANDIDATES = PIXELS[:24], CANDIDATES[:24]
N_CLASSES, N_CLUSTERS, N_POOLED = 8, 12, 256
PAPER = Path(__file__).parents[1] / "experiments" / "images-paper.toml"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


def with_classes() -> Backbone:
    """Return the tiny network with a classifier of eight classes on top."""
    torch.manual_seed(1)
    return Backbone(tiny(), nn.Linear(N_POOLED, N_CLASSES))


def make(**settings: Any) -> ImageClassifier:
    """Return a classifier on the network with classes."""
    return small_classifier(**{"backbone": with_classes()} | settings)


@pytest.fixture(scope="module")
def fitted() -> ImageClassifier:
    """The default head of a frozen network with classes, which no test changes."""
    return make().fit(PIXELS, CANDIDATES)


def have_same_weights(one: ImageClassifier, other: ImageClassifier) -> bool:
    states = one.network_.state_dict(), other.network_.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


# What is learned


def test_a_probe_learns_and_leaves_the_network_as_it_came(fitted: ImageClassifier) -> None:
    assert fitted.is_frozen_ and fitted.score(FRESH, TRUTH) > 0.9
    came = make_backbone(tiny()).state_dict()
    assert all(torch.equal(came[k], v) for k, v in fitted.network_.backbone.state_dict().items())


def test_pictures_are_learned_from_answers_and_from_ticks(tmp_path: Path) -> None:
    asked = simulate_answers(RELEVANT, asked_rate=0.8, seed=1)
    ticked = RELEVANT & (np.random.default_rng(0).random(RELEVANT.shape) < 0.8)
    rates = {"no": 0.8, "yes": 0.8, "mistake": 0.01}
    cases: list[tuple[Answers, dict[str, Any]]] = [
        (Answers.from_positives(ticked), {"rates": {"yes": 0.8}, "threshold": "f1"}),
        (asked, {"class_prior": None, "rates": rates}),
    ]
    for answers, settings in cases:
        clf = make(**settings).fit(PIXELS, answers)
        assert clf.score(FRESH, TRUTH) > 0.85 and clf.network_.views is not None, answers.kind
        clf.save(tmp_path / "model")
        loaded = ImageClassifier.load(tmp_path / "model", backbone=with_classes())
        assert loaded.method_.name == "likelihood"
        assert loaded.rates_.mistake_rate == clf.rates_.mistake_rate
        np.testing.assert_array_equal(loaded.yes_rate_, [0.8] * 3)
        scores = clf.decision_function(PIXELS)
        np.testing.assert_array_equal(loaded.decision_function(PIXELS), scores)
    assert loaded.rates_.mistake_rate == 0.01


def test_what_is_unsure_counts_only_where_it_is_used() -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.8, no_rate=0.9, yes_rate=0.3, seed=1)
    with_it, without = (
        make(method=Likelihood(uses_maybe=uses), probe_epochs=10, rates={"no": 0.9, "yes": 0.3})
        .fit(PIXELS, answers)
        .decision_function(PIXELS)
        for uses in (True, False)
    )
    assert not np.allclose(with_it, without, atol=1e-3)


def test_complementary_labels_are_the_other_view() -> None:
    one = make(probe_epochs=2).fit(PIXELS, CANDIDATES)
    assert have_same_weights(one, clone(one).fit(PIXELS, complementary=~CANDIDATES))


def test_cross_validation_by_scikit_learn() -> None:
    found = cross_validate(
        make(probe_epochs=20),
        PIXELS,
        RELEVANT,
        params={"candidates": CANDIDATES},
        cv=2,
        error_score="raise",
    )
    assert (found["test_score"] > 0.5).all()


def test_label_names_come_from_columns() -> None:
    named = pd.DataFrame(CANDIDATES, columns=pd.Index(LABELS))
    clf = make(probe_epochs=2).fit(PIXELS, named)
    assert clf.label_names_ == list(clf.classes_) == LABELS
    truth = pd.DataFrame(RELEVANT, columns=pd.Index(LABELS))
    assert clf.score(PIXELS, truth[LABELS[::-1]]) == clf.score(PIXELS, RELEVANT)


def test_one_label_and_few_pictures() -> None:
    one = make(class_prior=PRIOR[:1], probe_epochs=2).fit(PIXELS, CANDIDATES[:, :1])
    assert one.decision_function(PIXELS).shape == (120, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        for n in (1, 2, 9):
            S = CANDIDATES[:n].copy()
            S[0] = False
            few = make(probe_epochs=5).fit(PIXELS[:n], S)
            assert np.isfinite(few.decision_function(PIXELS)).all()


def test_a_known_exclude_rate_gives_the_prior_of_a_head() -> None:
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.4).class_prior
    for method in ("comes-hl", "likelihood"):
        clf = make(method=method, class_prior=None, rates={"exclude": 0.4}, probe_epochs=5)
        clf.fit(PIXELS, CANDIDATES)
        assert clf.class_prior_ is not None
        np.testing.assert_allclose(clf.class_prior_, expected, err_msg=method)


# As published


@pytest.mark.parametrize("method", ["bce", "comes-hl", "comes-rl"])
def test_as_published_is_the_recipe_of_the_experiment(method: str) -> None:
    own = tomllib.loads(PAPER.read_text())["settings"] | {"method": method}
    stored = ImageClassifier(**from_flat(frozen_settings(method, None, True, own)))
    published = ImageClassifier.as_published(method, weights=stored.weights)
    for clf in (stored, published):
        assert not clf._uses_soft_targets
        clf.set_params(method=as_plain(find_method(clf.method)), soft_targets=None)
    assert published.get_params(deep=False) == stored.get_params(deep=False)


def test_as_published_trains_all_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    tunings: list[Any] = []
    real = FineTuning

    def spy(*args: Any) -> Any:
        tunings.append(real(*args))
        return tunings[-1]

    monkeypatch.setattr(classifier, "FineTuning", spy)
    changes = {"backbone": tiny(), "weights": None, "image_size": SIZE, "class_prior": PRIOR}
    clf = ImageClassifier.as_published("comes-hl", **changes, epochs=1, verbose=-1)
    network = clf.fit(FEW, FEW_CANDIDATES).network_
    assert not network.freezes_statistics and not tunings[0].training.options.cosine
    assert not network.power and network.scale is None and network.views is None
    make(probe_epochs=1, epochs=1).fit(FEW, FEW_CANDIDATES)
    assert tunings[1].training.options.cosine


# What the head reads


def test_by_default_the_likelihood_reads_everything_there_is(fitted: ImageClassifier) -> None:
    assert fitted.method_.name == "likelihood"
    without = make(backbone=tiny(), probe_epochs=2).fit(PIXELS, CANDIDATES)
    for clf, has_classes in ((fitted, True), (without, False)):
        views = clf.network_.views
        assert isinstance(views, Views) and views.pooled and isinstance(views.clusters, Clusters)
        assert (views.classifier is not None) == has_classes


@pytest.mark.parametrize("kind", ["all", "pooled"])
@pytest.mark.filterwarnings("ignore:The scores of label")
def test_every_kind_is_saved_pickled_and_cloned(kind: str, tmp_path: Path) -> None:
    clf = make(features=kind, probe_epochs=10).fit(PIXELS, CANDIDATES)
    width = N_POOLED + (N_CLASSES + N_CLUSTERS if kind == "all" else 0)
    assert clf.network_.head.in_features == width
    assert (clf.network_.views is None) == (kind == "pooled")
    scores = clf.decision_function(PIXELS)
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=with_classes())
    np.testing.assert_array_equal(loaded.predict(PIXELS), clf.predict(PIXELS))
    for other in (loaded, pickle.loads(pickle.dumps(clf)), clone(clf).fit(PIXELS, CANDIDATES)):
        np.testing.assert_array_equal(other.decision_function(PIXELS), scores)


def test_pooled_features_alone_are_enough_to_learn() -> None:
    assert make(features="pooled").fit(PIXELS, CANDIDATES).score(FRESH, TRUTH) > 0.9


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_and_reads_what_it_can(name: str) -> None:
    method = METHODS[name]
    clf = make(method=name, probe_epochs=2, epochs=1).fit(PIXELS[:20], CANDIDATES[:20])
    width = N_CLASSES if method.reads_classes else N_POOLED
    if method.reads_views:
        width = N_CLASSES + 2 + N_POOLED  # a cluster for every ten pictures
    assert clf.network_.head.in_features == width
    # A head on pooled features or views reads what is below the classifier.
    assert (clf.network_.backbone.classifier is None) == (width != N_CLASSES)
    assert np.isfinite(clf.decision_function(PIXELS[:4])).all()
    assert as_plain(clf.method_) == as_plain(method)  # what the head adds to it is not kept


def test_other_methods_and_reductions_read_pooled_features() -> None:
    for method in ("comes-hl-unbiased", Likelihood(reduction="mean")):
        clf = make(method=method, probe_epochs=2).fit(PIXELS, CANDIDATES)
        assert clf.network_.backbone.classifier is None and clf.network_.views is None


def test_the_head_of_comes_hl_is_that_of_its_class_probabilities() -> None:
    clf = make(method="comes-hl").fit(PIXELS, CANDIDATES)
    X = compute_features(make_backbone(with_classes(), size=SIZE), PIXELS, "cpu", cache=False)
    head = class_head(X, CANDIDATES, PRIOR, epochs=30, random_state=0, device="cpu")
    expected = head.fit(X, CANDIDATES).decision_function(X)
    np.testing.assert_allclose(clf.decision_function(PIXELS), expected, rtol=1e-4, atol=1e-4)


def test_the_seed_decides_the_clusters() -> None:
    one, again, other = (
        make(random_state=seed, probe_epochs=2).fit(PIXELS, CANDIDATES).network_
        for seed in (0, 0, 5)
    )
    assert torch.equal(one.head.weight, again.head.weight)  # type: ignore[arg-type]
    assert not torch.equal(one.views.clusters.centres, other.views.clusters.centres)  # type: ignore[union-attr, arg-type]


@pytest.mark.long
def test_fine_tuning_goes_on_from_a_head_of_views(fitted: ImageClassifier, tmp_path: Path) -> None:
    still = {"learning_rate": 0.0, "backbone_learning_rate": 0.0}
    unchanged = make(epochs=1, **still).fit(PIXELS, CANDIDATES)
    scores = fitted.decision_function(PIXELS)
    np.testing.assert_allclose(unchanged.decision_function(PIXELS), scores, atol=1e-4)
    settings: dict[str, Any] = {"epochs": 2, "augment": "none", "batch_size": 40}
    settings["soft_targets"] = False
    whole = make(**settings).fit(PIXELS, CANDIDATES)
    parts = make(**settings, part_size=16).fit(PIXELS, CANDIDATES)
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
    real = cross_score

    def spy(*args: Any) -> Any:
        asked.append(real(*args))
        return asked[-1]

    monkeypatch.setattr(classifier, "cross_score", spy)
    ways: tuple[Any, ...] = ("prior", "f1")
    for by in ways:
        clf = make(threshold=by, probe_epochs=10).fit(PIXELS, CANDIDATES)
        expected = choose_thresholds(asked[-1], Answers.from_candidates(CANDIDATES), PRIOR, by)
        np.testing.assert_allclose(clf.threshold_, expected, err_msg=by)
        assert 0 < clf.predict(PIXELS).mean() < 1
    make(probe_epochs=2).fit(PIXELS, CANDIDATES)
    stopped = make(threshold="f1", early_stopping=True).fit(PIXELS, CANDIDATES)
    assert len(asked) == len(ways)  # by default nothing is learned, or on what is held out
    assert stopped.threshold_.shape == (3,) and len(stopped.history_.validation) == 60


# What is refused, and what goes wrong


def test_a_wrong_setting_is_named() -> None:
    everything = {"features": "all", "epochs": 1}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"backbone": "resnet18"}, "backbone must be resnet50"),
        ({"features": "some"}, "features must be one of auto, all, pooled; got 'some'"),
        ({**everything, "method": "bce"}, "method 'bce' trains no such head. Take 'pooled'"),
        ({**everything, "method": Likelihood(reduction="mean")}, "not 'sum'. Take 'pooled'"),
        ({**everything, "probe_epochs": 0}, "probe_epochs is 0. Take 'pooled'"),
        ({"precision": "half"}, "precision must be"),
        ({"part_size": 0}, "part_size must be a whole number of at least 1"),
        ({"soft_targets": "yes"}, "soft_targets must be one of None, True, False; got 'yes'"),
        ({"augment": "mixup", "soft_targets": False}, "'mixup' must go with soft targets"),
        ({"augment": "mixup", "epochs": 1, "method": "bce"}, "'mixup' must go with soft targets"),
        (
            {"soft_targets": True, "epochs": 1, "probe_epochs": 0},
            "must go with method 'likelihood'",
        ),
        ({"method": "best"}, "method must be one of"),
        ({"rates": {"exclude": "instance"}}, "depend on the instance were removed"),
        ({"image_size": 4}, "image_size must be a whole number of at least 8"),
        ({"epochs": -1}, "epochs must be a whole number of at least 0"),
        ({"probe_epochs": 0}, "nothing would be learned"),
        ({"augment": "twist", "epochs": 1}, "augment must be one of"),
        ({"optimizer": "sgd"}, "optimizer of images must be None or a dict"),
        ({"optimizer": {"momentum": 0.5}}, "has cosine, freezes_statistics; got 'momentum'"),
        ({"learning_rate": "high"}, "learning_rate must be a finite number .* got 'high'"),
        ({"backbone_learning_rate": -1.0}, "backbone_learning_rate must be a finite number"),
        ({"early_stopping": 2.0}, "early_stopping must be True, False, or the share"),
        ({"weights": "nowhere.pth"}, "no file of weights at nowhere.pth"),
        ({"epochs": 1, "threshold": "f1", "weights": "nowhere"}, "set early_stopping=True"),
        ({"device": "gpu7"}, "cannot be used here"),
    ]
    for kind in ("both", "classes", "clusters"):
        refused.append(({"features": kind}, f"'{kind}' was removed after version 1.0.0"))
    for settings, message in refused:
        with pytest.raises(ComesError, match=message):
            pytest.fail(f"{make(**settings).fit(FEW, FEW_CANDIDATES)} was fitted")


def test_pictures_of_a_wrong_kind_are_named(tmp_path: Path) -> None:
    table = write_pictures(tmp_path, n=8)
    (tmp_path / "photos" / "007.png").write_bytes(b"no picture")
    dataset = open_dataset(table, labels=["has_*"], relevant=["is_*"], images=tmp_path / "photos")
    refused: list[tuple[Any, Any, str]] = [
        (PIXELS.astype(float), CANDIDATES, "picture 0 is float64 of shape"),
        ([], CANDIDATES, "at least one picture is needed; got none"),
        (PIXELS[:5], CANDIDATES, "same number of rows"),
        (dataset.X, dataset.known_candidates(), r"'007.png' cannot be read"),
    ]
    for images, candidates, message in refused:
        with pytest.raises(ComesError, match=message):
            make().fit(images, candidates)


def test_a_failed_fit_leaves_the_earlier_one(fitted: ImageClassifier) -> None:
    clf = copy.deepcopy(fitted)
    with pytest.raises(ComesError, match="same number of rows"):
        clf.fit(PIXELS[:5], CANDIDATES)
    np.testing.assert_array_equal(clf.decision_function(FEW), fitted.decision_function(FEW))


def test_an_interrupted_probe_is_not_fine_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(risk: float, epoch: int) -> float:
        if epoch == 1:
            raise KeyboardInterrupt
        return risk

    monkeypatch.setattr(loop, "check_finite", interrupt)
    with pytest.warns(ComesWarning, match="Interrupted after 1 of 5 epochs"):
        clf = make(probe_epochs=5, epochs=1).fit(PIXELS, CANDIDATES)
    assert clf.is_frozen_ and clf.history_.interrupted


def test_too_little_memory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(classifier, "compute_features", no_memory)
    message = f"memory for 256 pictures of {SIZE} x {SIZE} at once. Set part_size"
    with pytest.raises(ComesError, match=message):
        make().fit(PIXELS, CANDIDATES)
    with pytest.raises(ComesError, match="memory for 16 pictures"):
        make(part_size=16).fit(PIXELS, CANDIDATES)


# The network and its weights


def test_a_network_of_ones_own_is_copied(tmp_path: Path) -> None:
    own = with_classes()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    clf = make(backbone=own, epochs=1, backbone_learning_rate=1e-3)
    clf.fit(FEW, FEW_CANDIDATES).save(tmp_path / "model")
    ImageClassifier.load(tmp_path / "model", backbone=own)
    assert own.classifier is not None and all(p.requires_grad for p in own.parameters())
    assert all(torch.equal(own.state_dict()[name], before[name]) for name in before)
    assert clf.network_.views is not None
    assert all(parameter.grad is None for parameter in clf.network_.views.parameters())


@pytest.fixture
def small_resnets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ResNets have few layers."""
    models = import_torchvision("a test").models
    resnet = models.resnet

    def make_small(*_: Any, **__: Any) -> nn.Module:
        network: nn.Module = resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1])
        return network

    monkeypatch.setattr(models, "get_model", make_small)


@pytest.mark.usefixtures("small_resnets")
@pytest.mark.long
def test_strides_of_weights_are_found_and_saved(tmp_path: Path) -> None:
    trained = make_backbone("resnet50").train()
    set_strides(trained.network, "v1")
    for module in trained.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # remembers the variances of these pictures
    rows = PixelRows(list(PIXELS[:8]), 64, torch.device("cpu"))
    with torch.no_grad():
        trained(next(rows.batches([torch.arange(8)])))
    torch.save(trained.network.state_dict(), tmp_path / "v1.pth")
    clf = make(backbone="resnet50", weights=tmp_path / "v1.pth", image_size=64, probe_epochs=2)
    clf.fit(PIXELS[:8], CANDIDATES[:8]).save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model")
    assert get_strides(clf.network_.backbone.network) == "v1"
    assert get_strides(loaded.network_.backbone.network) == "v1"
    scores = clf.decision_function(FEW)
    np.testing.assert_allclose(loaded.decision_function(FEW), scores, atol=1e-4)


@pytest.mark.usefixtures("small_resnets")
def test_weights_by_name_come_from_the_net_and_are_checked(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = {"fc.weight": torch.randn(10, 2048), "fc.bias": torch.zeros(10)}
    state |= make_backbone("resnet50").network.state_dict()
    torch.save(state, tmp_path / "w.pth")
    server.content = (tmp_path / "w.pth").read_bytes()
    checksum = f"sha256:{hashlib.sha256(server.content).hexdigest()}"
    monkeypatch.setattr(backbones, "IMAGENET", {"resnet50": (server.address("w.pth"), checksum)})
    clf = make(backbone="resnet50", weights="imagenet", probe_epochs=1)
    for _ in range(2):
        clf.fit(PIXELS[:8], CANDIDATES[:8])
    assert clf.network_.views is not None and clf.network_.views.classifier is not None
    assert len(server.asked) == 1  # the second time it was there
    wrong = {"resnet50": (server.address("other.pth"), f"sha256:{'0' * 64}")}
    monkeypatch.setattr(backbones, "IMAGENET", wrong)
    with pytest.raises(ComesError, match="sha256"):
        clf.fit(PIXELS[:8], CANDIDATES[:8])
    with pytest.raises(ComesError, match="no address is known for weights of resnet101"):
        make(backbone="resnet101", weights="imagenet").fit(PIXELS, CANDIDATES)


# Features on disk


def test_features_are_computed_once() -> None:
    backbone = make_backbone(tiny(), size=SIZE)
    calls = []

    def count(_: nn.Module, inputs: Any, output: Any) -> None:
        calls.append(len(inputs[0]))

    backbone.register_forward_hook(count)
    first, again = (compute_features(backbone, FEW, "cpu") for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert calls.count(len(FEW)) == 1  # one more picture told the number of features
    with torch.no_grad():
        next(backbone.parameters()).add_(1)
    assert not np.array_equal(compute_features(backbone, FEW, "cpu"), first)
    assert calls.count(len(FEW)) == 2


def test_nothing_is_hashed_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> str:
        raise AssertionError("was hashed")

    monkeypatch.setattr(features, "weights_hash", refuse)
    monkeypatch.setattr(classifier, "weights_hash", refuse)
    monkeypatch.setattr(features.Pictures, "fingerprint", refuse)
    clf = make(probe_epochs=1, epochs=1).fit(FEW, FEW_CANDIDATES)
    clf.decision_function(PIXELS[:2])


def test_features_of_a_network_of_ones_own_are_not_taken_from_disk(tmp_path: Path) -> None:
    class Power(nn.Module):
        def __init__(self, power: int) -> None:
            super().__init__()
            self.network, self.power = tiny(), power

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.network(x)
            return found**self.power

    one, other = (
        make(backbone=Power(power), probe_epochs=3)
        .fit(PIXELS, CANDIDATES)
        .decision_function(PIXELS)
        for power in (1, 3)
    )
    assert not np.allclose(one, other)
    assert not (tmp_path / "cache").exists()


def test_damaged_features_on_disk_are_computed_again(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(make_backbone("timm:resnet10t").network.state_dict(), tmp_path / "w.pth")
    clf = make(backbone="timm:resnet10t", probe_epochs=2, weights=tmp_path / "w.pth")
    first = clone(clf).fit(FEW, FEW_CANDIDATES)
    (file,) = (tmp_path / "cache" / "features").iterdir()
    file.write_bytes(b"no features")
    assert have_same_weights(first, clf.fit(FEW, FEW_CANDIDATES))
    first.decision_function(PIXELS[:3])  # a prediction writes nothing
    assert list((tmp_path / "cache" / "features").iterdir()) == [file]
