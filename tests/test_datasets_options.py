import pickle
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest

from comes.datasets import ReadOptions, open_dataset
from comes.datasets.formats import FORMATS, SHARED_FIELDS
from comes.datasets.table import Table
from refusals import refused

PHOTOS = "photo,red,has_sky,has_sea\np,0.1,1,0\nq,0.7,1,1\n"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "photos.csv").write_text(PHOTOS)
    return tmp_path / "photos.csv"


def test_a_reading_and_its_fields_as_keywords_say_the_same(photos: Path) -> None:
    reading = ReadOptions(labels=["has_*"], item="photo")
    by_keyword = open_dataset(photos, labels=["has_*"], item="photo")
    assert by_keyword.items == open_dataset(photos, reading).items == ["p", "q"]
    assert by_keyword.label_names == ["has_sky", "has_sea"]


def test_not_given_is_none_and_nothing_else() -> None:
    assert ReadOptions().given == ()
    assert ReadOptions(labels=None, skip_broken=False, ignore=[], words={}) == ReadOptions()
    assert ReadOptions(ignore=["a"], n_features=3, skip_broken=True).given == (
        "ignore",
        "skip_broken",
        "n_features",
    )
    with refused("item must not be empty. Leave it out, or give None"):
        ReadOptions(item="")


def test_a_reading_is_a_value(tmp_path: Path) -> None:
    names = ["sky", "sea"]
    reading = ReadOptions(label_names=names, words={"0": "no"}, features=tmp_path)
    names.append("sun")
    assert reading.label_names == ("sky", "sea")
    assert reading == pickle.loads(pickle.dumps(reading)) == replace(reading)
    assert hash(reading) == hash(replace(reading))
    with pytest.raises(FrozenInstanceError):
        reading.item = "photo"  # type: ignore[misc]


def test_what_cannot_be_meant_is_refused_when_it_is_made() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"labels": "has_*"}, r"labels must be a list of names; got 'has_\*'. Write \['has_\*'\]"),
        ({"long": ["item", "label"]}, "long must name three columns.*got .'item', 'label'."),
        ({"words": {"0": "nein"}}, "'0' must mean 'no', 'yes', 'maybe' or 'not asked'; got 'nein'"),
        (
            {"labels_are": "truth"},
            "labels_are must be 'candidates', 'complementary' or 'positives'; got 'truth'",
        ),
        ({"difficult": "foo"}, "difficult must be 'irrelevant' or 'relevant'; got 'foo'"),
        ({"unannotated": "no"}, "unannotated must be 'drop' or 'keep'; got 'no'"),
        ({"features": "X.npz", "images": "photos"}, "features or images; got both"),
        ({"n_features": 0}, "n_features must be at least 1; got 0"),
    ]
    for values, message in cases:
        with refused(message):
            ReadOptions(**values)


def test_an_unknown_or_old_keyword_says_what_was_meant(photos: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"labls": ["a"]}, "'labls' is not a field of ReadOptions. Did you mean 'labels'"),
        ({"colour": 1}, "'colour' is not a field of ReadOptions. There are labels, relevant"),
        ({"complementary": True}, "'complementary' is not a field of ReadOptions. There are label"),
    ]
    for values, message in cases:
        with refused(message):
            open_dataset(str(photos), **values)


def test_one_of_the_two_ways_is_enough(photos: Path) -> None:
    with refused(r"got both \('item'\).*dataclasses.replace"):
        open_dataset(photos, ReadOptions(labels=["has_*"]), item="photo")
    with refused(r"must be ReadOptions, or left out; got \['has_\*'\]"):
        open_dataset(photos, ["has_*"])  # type: ignore[arg-type]


def test_a_cell_of_names_may_be_separated_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("x,maybe,truth\n1,a;b|c,c\n2,c,(none)\n")
    dataset = open_dataset(path, labels=["maybe"], relevant=["truth"], separator="|")
    assert dataset.label_names == ["a;b", "c"]
    dataset = open_dataset(path, labels=["maybe"], ignore=["truth"])
    assert dataset.label_names == ["a;b", "c"]  # c comes back
    dataset = open_dataset(path, labels=["maybe"], ignore=["truth"], separator=";")
    assert dataset.label_names == ["a", "b|c", "c"]


def test_formats_declare_fields_that_exist() -> None:
    known = {field.name for field in fields(ReadOptions)}
    assert set(SHARED_FIELDS) <= known
    for found in FORMATS.values():
        assert set(found.fields) <= known


def test_a_field_that_does_not_apply_to_a_format_is_refused(tmp_path: Path) -> None:
    for ending in (".npz", ".mat", ".svm", ".jsonl"):
        (tmp_path / f"data{ending}").write_text("1 1:2\n")
        with refused(f"'xml' does not apply to {ending} files. Leave it out"):
            open_dataset(tmp_path / f"data{ending}", xml="labels.xml")


def test_a_column_is_not_labels_and_truth_at_once(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("x,has_sky,has_sea,tags\n1,1,0,a\n2,0,1,b\n")
    for labels, truth in ((["has_*"], ["has_sea"]), (["tags"], ["tags"])):
        with refused("labels, the truth or .*; got more than one for '.*--relevant"):
            open_dataset(path, labels=labels, relevant=truth)


def test_digits_that_begin_with_0_are_codes_not_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip,n,mixed,gaps\n01,0,01,\n12,10,x\n,3,x,007\n")
    with Table(path) as table:
        assert table.codes == ["zip", "gaps"]
