"""The flat settings of version 1.0.0: where each belongs now, and the values that it had."""

from typing import Any

import numpy as np
import torch

from comes import CandidateClassifier
from comes.estimator.prepare import choose_settings
from comes.flat_settings import ONLY_VARIANTS, flat_names, from_flat, frozen_settings
from comes.generation import case_b
from comes.methods import CCMN, COMESHL, COMESRL, METHODS, Likelihood, find_method
from comes.risks import bce_risk
from refusals import refused

# Version 1.0.0: CandidateClassifier.as_published, and the defaults of all parameters.
PUBLISHED = {
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "epochs": 200,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "model": "mlp",
    "hidden": 500,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "cosine": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "scale": "dense",
    "threshold": "half",  # its name there was auto
    "early_stopping": False,
    "validation_share": 0.2,
}
BY_DEFAULT = PUBLISHED | {
    "flood_level": "auto",
    "scale": "columns",  # its name there was auto
    "mistake_rate": 0.0,
    "uses_maybe": True,
}
MEASURED = {
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
}
MEASURED_1_1 = MEASURED | {"model": "wide_and_deep", "scale": "rows"}
IMAGES = {
    "backbone": "resnet50",
    "weights": "imagenet",
    "features": "auto",
    "epochs": 0,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "backbone_learning_rate": 1e-5,
    "weight_decay": 0.0,
    "cosine": True,
    "augment": "flip",
    "freezes_statistics": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "threshold": "half",  # its name there was auto
    "early_stopping": False,
    "validation_share": 0.2,
    "precision": "auto",
}
DEFAULTS = {  # of 1.0.0, where they are not None and have another place now
    "mistake_rate": 0.0,
    "uses_maybe": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": "auto",
    "momentum": 0.9,
    "cosine": True,
    "validation_share": 0.2,
    "output": "default",
}
# And those that were None.
WITHOUT_DEFAULT = (
    *("variant", "exclude_rate", "no_rate", "yes_rate", "prior_weight", "flip_rate"),
    *("starts_at_prior", "progress"),
)


PLACES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"method": "likelihood"}),
    ({"method": None}, {"method": "likelihood"}),
    ({"method": "comes-rl", "flood_level": 2.0}, {"method": COMESRL(flood_level=2.0)}),
    ({"method": "comes-hl", "normaliser": "batch"}, {"method": COMESHL(normaliser="batch")}),
    ({"method": "comes-hl", "reduction": "mean"}, {"method": COMESHL(reduction="mean")}),
    ({"method": "ccmn", "variant": "ranking"}, {"method": CCMN(variant="ranking")}),
    ({"method": "ccmn", "flip_rate": [0.1, 0.2]}, {"method": CCMN(flip_rate=[0.1, 0.2])}),
    ({"uses_maybe": False}, {"method": Likelihood(uses_maybe=False)}),
    ({"prior_weight": 0.5}, {"method": Likelihood(prior_weight=0.5)}),
    ({"exclude_rate": 0.4}, {"method": "likelihood", "rates": {"exclude": 0.4}}),
    (
        {"no_rate": 0.8, "yes_rate": [0.6], "mistake_rate": 0.01},
        {"method": "likelihood", "rates": {"no": 0.8, "yes": [0.6], "mistake": 0.01}},
    ),
    ({"momentum": 0.5}, {"method": "likelihood", "optimizer": {"momentum": 0.5}}),
    (
        {"optimizer": "sgd", "cosine": False, "starts_at_prior": True},
        {
            "optimizer": {"name": "sgd", "cosine": False, "starts_at_prior": True},
            "method": "likelihood",
        },
    ),
    (
        {"optimizer": torch.optim.Adam, "cosine": False},
        {"optimizer": {"name": torch.optim.Adam, "cosine": False}, "method": "likelihood"},
    ),
    (
        {"freezes_statistics": False},
        {"method": "likelihood", "optimizer": {"freezes_statistics": False}},
    ),
    (
        {"early_stopping": True, "validation_share": 0.3},
        {"early_stopping": 0.3, "method": "likelihood"},
    ),
    ({"validation_share": 0.3}, {"method": "likelihood"}),  # nothing is held out
    ({"progress": False}, {"method": "likelihood", "verbose": -1}),
    ({"progress": True}, {"method": "likelihood"}),
    ({"hidden": 7, "patience": 3}, {"hidden": 7, "patience": 3, "method": "likelihood"}),
]


def test_every_flat_name_has_its_place() -> None:
    for flat, expected in PLACES:
        assert repr(from_flat(flat)) == repr(expected), flat
    parameters = CandidateClassifier().get_params(deep=False)
    named = {name for flat, _ in PLACES for name in flat} - {"freezes_statistics"}
    assert set(DEFAULTS) | set(WITHOUT_DEFAULT) <= named | {"output"}
    assert flat_names(parameters) == set(parameters) | set(DEFAULTS) | set(WITHOUT_DEFAULT)
    pictures = flat_names({"backbone": None})
    assert {"freezes_statistics", "centre_crop", "standard_errors", "temperature"} <= pictures
    assert not {"momentum", "starts_at_prior", "output"} & pictures


def test_values_that_change_nothing_change_nothing() -> None:
    for name, method in METHODS.items():
        neutral = {"method": name} | DEFAULTS | dict.fromkeys(WITHOUT_DEFAULT)
        assert from_flat(neutral) == {"method": name}, name
        for variant in (*method.variants[:1], ONLY_VARIANTS.get(name)):
            assert from_flat({"method": name, "variant": variant}) == {"method": name}, variant
    assert set(ONLY_VARIANTS) == {name for name, method in METHODS.items() if not method.variants}
    own = from_flat({"method": bce_risk, **DEFAULTS, **dict.fromkeys(WITHOUT_DEFAULT)})
    assert own == {"method": bce_risk}
    # An experiment may set these for all of its methods; those that have none leave them out.
    assert from_flat({"method": "bce", "flood_level": 2.0, "normaliser": "batch"}) == {
        "method": "bce"
    }


def test_settings_of_another_method_and_settings_that_are_gone_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        (
            {"method": "comes-hl", "flip_rate": 0.5},
            "flip_rate is for method 'ccmn'; leave it out of 'comes-hl'.",
        ),
        ({"method": "bce", "variant": "all"}, "variant is for method 'ccmn' or 'gdf' or .* 'bce'"),
        ({"method": "bce", "variant": "flooded"}, "variant is for method"),
        ({"method": "ccmn", "variant": "all"}, "variant of ccmn must be hamming or ranking"),
        ({"method": "bce", "uses_maybe": False}, "uses_maybe is for method 'likelihood'"),
        ({"method": bce_risk, "reduction": "sum"}, "reduction is for method .* of 'custom'"),
        ({"method": bce_risk, "variant": "all"}, "variant is for method .* of 'custom'"),
        ({"method": "b"}, "method must be one of .*; got 'b'"),
        ({"reduction": "max"}, "auto or sum or mean or per_label; got 'max'"),
        ({"output": "pandas"}, r"removed after version 1.0.0: call set_output\(transform='pandas'"),
        ({"centre_crop": True}, "centre_crop was removed .*: cut the pictures before"),
        ({"temperature": 1.0}, "temperature was removed"),
        ({"standard_errors": 1.0}, "standard_errors was removed"),
    ]
    for flat, message in wrong:
        with refused(message):
            from_flat(flat)
    assert from_flat({"temperature": 2.0, "centre_crop": False, "standard_errors": 2.0}) == {
        "method": "likelihood"
    }


def test_what_a_spec_of_1_0_0_leaves_out_keeps_its_value() -> None:
    """These numbers belong to stored results, so they are spelled out here, and never change."""
    for method in METHODS:
        assert frozen_settings(method, None, None, {}) == PUBLISHED, method
        measured = MEASURED if method in ("likelihood", "bce") else {}
        assert frozen_settings(method, "default", None, {}) == BY_DEFAULT | measured, method
        newer = BY_DEFAULT | {"threshold": "auto"} | (MEASURED_1_1 if measured else {})
        assert frozen_settings(method, "1.1", None, {}) == newer, method
        assert frozen_settings(method, None, {"any": 1}, {}) == IMAGES, method
    of_paper = {name: PUBLISHED[name] for name in ("learning_rate", "epochs", "batch_size")}
    for own in ({"optimizer": "sgd"}, {"model": "linear"}, {"model": "linear", "optimizer": None}):
        for method in ("likelihood", "bce"):
            found = frozen_settings(method, "default", None, own)
            assert found == BY_DEFAULT | MEASURED | of_paper | {"optimizer": "sgd"} | own, own
    other = {"optimizer": "adamw", "epochs": 3, "model": "low_rank"}
    assert frozen_settings("bce", "default", None, other) == BY_DEFAULT | MEASURED | other
    assert frozen_settings("bce", None, None, other) == PUBLISHED | other
    for training, images in ((None, None), ("default", None), (None, {"any": 1})):
        for given, meant in (("auto", "half"), ("f1", "f1"), ("zero", "zero")):
            found = frozen_settings("bce", training, images, {"threshold": given})
            assert found["threshold"] == meant, given
    newest = frozen_settings("bce", "1.1", None, {"threshold": "auto", "scale": "auto"})
    assert (newest["threshold"], newest["scale"]) == ("auto", "auto")


def test_frozen_settings_train_as_1_0_0_did() -> None:
    """Whatever the defaults of methods and estimators become."""
    for method in METHODS:
        for training, expected in ((None, PUBLISHED), ("default", BY_DEFAULT)):
            frozen = frozen_settings(method, training, None, {})
            classifier = CandidateClassifier(**from_flat({"method": method, **frozen}))
            found = choose_settings(classifier, find_method(classifier.method))
            if training == "default" and method in ("likelihood", "bce"):
                expected = expected | MEASURED
            assert found == {name: expected[name] for name in found}, method
            assert found.keys() == MEASURED.keys() | {"momentum", "cosine", "model", "scale"}
        newest = CandidateClassifier(**from_flat(frozen_settings(method, "1.1", None, {})))
        of_today = CandidateClassifier(method, threshold="auto")
        assert choose_settings(newest.set_params(method=method), METHODS[method]) == (
            choose_settings(of_today, METHODS[method])
        )


def test_as_published_is_the_spec_of_1_0_0_that_sums_over_pairs() -> None:
    published = CandidateClassifier.as_published("comes-rl", random_state=0)
    assert repr(published.method) == "COMESRL(flood_level=0.0, reduction='sum')"
    X = np.random.default_rng(0).normal(size=(90, 4))
    candidates = case_b(X[:, :3] > 0, exclude_rate=0.5)
    frozen = frozen_settings("comes-rl", None, None, {"reduction": "sum", "epochs": 3})
    flat = CandidateClassifier(**from_flat({"method": "comes-rl", **frozen}), random_state=0)
    weights = [
        model.set_params(epochs=3, class_prior=[0.5] * 3).fit(X, candidates).module_.state_dict()
        for model in (published, flat)
    ]
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=0)
