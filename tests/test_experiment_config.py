"""Experiments: read from TOML; every mistake is found before anything is run."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from comes.errors import ComesError
from comes.experiment.config import read_experiment
from comes.experiment.tasks import tasks_of
from small_experiments import DATA, small_experiment

MISTAKES = (
    ("fold = 3", "fold is not a key of an experiment. Did you mean 'folds'?"),
    ("[[data]]\nnam = 'scenes'", "data.0.nam is not a key .* mean 'name'"),
    ("zzz = 1", "zzz is not a key of an experiment. Known are folds, first_folds"),
    ("folds = 1", "folds: Input should be greater than or equal to 2"),
    ("folds = 3\nlabel_seeds = 3", "give either folds or label_seeds"),
    ("label_seeds = 3", "label_seeds need a case for every data set"),
    ("folds = ", "is not TOML"),
    ("folds = 3\n[[methods]]\nmethod = 'comes-hi'", "no 'comes-hi'. Did you mean 'comes-hl'"),
    ("folds = 3\n[[methods]]\nmethod = 'bce'\nlabel = ''", "label: .* at least 1 character"),
    ("folds = 3\n[sweep]\nkey = 'prior_noise'\nvalues = [0, -1]", "greater than or equal to 0"),
    ("folds = 3\n[sweep]\nkey = 'train_rows'\nvalues = [0, 9]", "greater than or equal to 1"),
    ("folds = 3\n[sweep]\nkey = 'seed'\nvalues = [1, 2]", "sweep.key: Input should be"),
    ("folds = 3\n[sweep]\nky = 'flood'", "sweep.ky is not a key .* mean 'key'"),
)


def test_a_mistake_in_a_file_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    rest = "[[data]]\nname = 'scenes'\n[[methods]]\nmethod = 'bce'\n"
    for text, message in MISTAKES:
        path.write_text(f"name = 'wrong'\n{text}\n" + ("" if "[[data" in text else rest))
        with pytest.raises(ComesError, match=f"wrong.toml.*{message}"):
            read_experiment(path)
    path.write_text(f"name = 'wrong'\nfolds = 3\n[settings]\nepoch = 3\n{rest}")
    with pytest.raises(ComesError, match="settings has no 'epoch'. Did you mean 'epochs'"):
        tasks_of(read_experiment(path))


def test_a_mistake_in_how_a_file_is_read_is_found_before_it_is_read() -> None:
    for read, message in (
        ({"labls": ["maybe"]}, "'labls' is not a field of ReadOptions. Did you mean 'labels'"),
        ({"complementary": True}, "'complementary' is not a field of ReadOptions"),
        (
            {"labels_are": "wrong"},
            "labels_are must be 'candidates', 'complementary' or 'positives'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            small_experiment(data=[{"name": "mine.csv", "read": read}])


def test_a_test_set_of_its_own_needs_label_seeds() -> None:
    with pytest.raises(ValidationError, match="needs label_seeds"):
        small_experiment(data=[DATA[0] | {"test": "test.csv"}], folds=2)


def test_images_have_settings_of_their_own_and_label_seeds() -> None:
    images = {"images": True, "folds": None, "label_seeds": 2, "settings": {"image_size": 32}}
    small_experiment(**images)
    for key, value, message in (
        ("settings", {"hidden": 5}, "settings has no 'hidden'"),
        ("label_seeds", None, "images are repeated over label_seeds|either folds or label_seeds"),
    ):
        with pytest.raises((ComesError, ValidationError), match=message):
            tasks_of(small_experiment(**images | {key: value}))


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="cannot be read: No such file"):
        read_experiment(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes("name = 'größe'".encode("latin-1"))
    with pytest.raises(ComesError, match="latin.toml is not TOML"):
        read_experiment(tmp_path / "latin.toml")
