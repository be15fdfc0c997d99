"""What options say, where commands hand it on."""

import inspect
from typing import Any

import pytest

from comes.cli.options import parse_numbers, parse_pairs, split_names
from comes.cli.reading_options import reading_options
from comes.cli.training_options import training_options
from comes.datasets import Reading
from comes.errors import ComesError


def test_every_reading_option_is_in_the_reading() -> None:
    assert reading_options() == Reading()
    options: dict[str, Any] = {
        "labels": "has_*, has no",
        "relevant": "is_*",
        "ignore": "id",
        "text": "body,title",
        "category": "zip",
        "item": "photo",
        "long": "who,what,said",
        "answers": "0=no,1 = maybe",
        "images": "photos/",
        "skip_broken": True,
        "complementary": True,
        "separator": "|",
        "label_names": "sky,sea",
        "difficult": "relevant",
        "unannotated": "keep",
    }
    assert reading_options(**options) == Reading(
        labels=["has_*", "has no"],
        relevant=["is_*"],
        ignore=["id"],
        text=["body", "title"],
        category=["zip"],
        item="photo",
        long=["who", "what", "said"],
        words={"0": "no", "1": "maybe"},
        images="photos/",
        skip_broken=True,
        labels_are="complementary",
        separator="|",
        label_names=["sky", "sea"],
        difficult="relevant",
        unannotated="keep",
    )
    assert reading_options(features="X.npz", candidates=True) == Reading(
        features="X.npz", labels_are="candidates"
    )
    assert reading_options(positives=True) == Reading(labels_are="positives")
    seen = {*options, "features", "candidates", "positives"}
    assert seen == set(inspect.signature(reading_options).parameters)


def test_every_training_option_is_a_setting() -> None:
    renamed = {"image_features": "features", "seed": "random_state"}
    names = set(inspect.signature(training_options).parameters) - {"without_maybe", "as_published"}
    given: dict[str, Any] = {name: f"the {name}" for name in names}
    rates = [name for name in names if name.endswith("_rate") and "learning" not in name]
    numbers = dict.fromkeys(set(rates) - {"mistake_rate"}, "0.1,0.2")
    numbers |= {"flood_level": "1.5", "method": "comes-rl"}  # which floods
    expected = given | {name: [0.1, 0.2] for name in rates} | {"mistake_rate": "the mistake_rate"}
    expected |= {"flood_level": 1.5, "method": "comes-rl"}
    assert training_options(**given | numbers, without_maybe=True) == {
        renamed.get(name, name): value for name, value in expected.items()
    } | {"uses_maybe": False}
    assert training_options(flip_rate="class_prior")["flip_rate"] == "class_prior"
    assert training_options(method="comes-rl", flood_level="auto")["flood_level"] == "auto"
    with pytest.raises(ComesError, match="--flood-level should be auto or a number; got 'high'"):
        training_options(method="comes-rl", flood_level="high")
    assert training_options(exclude_rate="instance")["exclude_rate"] == "instance"
    published = training_options(as_published=True, epochs=3)
    assert published["optimizer"] == "sgd" and published["epochs"] == 3
    assert published["flood_level"] == 0


def test_settings_that_were_not_given_are_left_to_the_classifier() -> None:
    assert training_options() == {
        "reduction": "auto",
        "threshold": "auto",
        "early_stopping": False,
        "device": "auto",
        "random_state": 0,
    }


def test_lists_of_names_and_numbers() -> None:
    assert split_names(None) is None
    assert split_names(" sky,, sea ") == ["sky", "sea"]
    assert parse_numbers(None, "--rate") is None
    assert parse_numbers("0.5", "--rate") == 0.5
    for wrong in ("", ",", "half"):
        with pytest.raises(ComesError, match="--rate should be a number, or one per label; got"):
            parse_numbers(wrong, "--rate")


def test_a_word_of_answers_means_one_thing() -> None:
    assert parse_pairs("1=yes, 0=no", "--answers") == {"1": "yes", "0": "no"}
    with pytest.raises(ComesError, match="--answers should say once what '1' means; got '1=yes"):
        parse_pairs("1=yes,1=no", "--answers")
