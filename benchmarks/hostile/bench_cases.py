"""Experiments: config files with words and numbers that are not what they should be."""

import re
from pathlib import Path

from hostile.casework import CASES, Case, Place, handled, refused, said

AREA = "experiments"
GOOD = {
    "head": 'name = "tiny"\nfolds = 3\n',
    "settings": "[settings]\nepochs = 1\nhidden = 4\ndevice = 'cpu'\n",
    "data": '[[data]]\nname = "scenes"\ncase = "b"\nrate = 0.5\nrows = 60\n',
    "methods": '[[methods]]\nmethod = "bce"\n',
}

# What is wrong, the parts of the file that are other, and words that the message must have.
CONFIGS: dict[str, tuple[dict[str, str], str]] = {
    "no name": ({"head": "folds = 3\n"}, r"name"),
    "no repeats": ({"head": 'name = "tiny"\n'}, r"folds or label_seeds"),
    "folds and seeds": (
        {"head": 'name = "t"\nfolds = 3\nlabel_seeds = 2\n'},
        r"folds or label_seeds",
    ),
    "one fold": ({"head": 'name = "t"\nfolds = 1\n'}, r"folds.*2"),
    "more folds than rows": ({"head": 'name = "t"\nfolds = 100\n'}, r"folds|rows"),
    "folds as a word": ({"head": 'name = "t"\nfolds = "three"\n'}, r"folds.*int"),
    "a key that does not exist": ({"head": 'name = "t"\nfolds = 3\nrepeats = 2\n'}, r"repeats"),
    "a key that is near one": ({"head": 'name = "t"\nfold = 3\n'}, r"folds"),
    "noise below zero": ({"head": 'name = "t"\nfolds = 3\nprior_noise = -1\n'}, r"prior_noise"),
    "no data": ({"data": ""}, r"data"),
    "no methods": ({"methods": ""}, r"methods"),
    "data without a name": ({"data": '[[data]]\ncase = "b"\n'}, r"data.*name"),
    "data that do not exist": ({"data": '[[data]]\nname = "senses"\ncase = "b"\n'}, r"senses"),
    "a file that is not there": (
        {"data": '[[data]]\nname = "no/d.csv"\ncase = "b"\n'},
        r"no/d\.csv",
    ),
    "a case that does not exist": ({"data": '[[data]]\nname = "scenes"\ncase = "q"\n'}, r"case"),
    "a rate above one": ({"data": '[[data]]\nname = "scenes"\ncase = "b"\nrate = 1.5\n'}, r"rate"),
    "a rate without a case": ({"data": '[[data]]\nname = "scenes"\nrate = 0.5\n'}, r"rate|case"),
    "data without candidates": (
        {"data": '[[data]]\nname = "scenes"\nrows = 60\n'},
        r"candidates|case",
    ),
    "a method that does not exist": (
        {"methods": '[[methods]]\nmethod = "comes-hh"\n'},
        r"comes-hl",
    ),
    "a method twice": ({"methods": '[[methods]]\nmethod = "bce"\n' * 2}, r"bce|label|twice|same"),
    "a risk in a file that is not there": (
        {"methods": '[[methods]]\nmethod = "risk.py:mine"\n'},
        r"risk\.py",
    ),
    "a setting that does not exist": ({"settings": "[settings]\nepoch = 1\n"}, r"epochs"),
    "a setting of another type": ({"settings": '[settings]\nepochs = "few"\n'}, r"epochs"),
    "a setting out of range": ({"settings": "[settings]\nepochs = 0\n"}, r"epochs"),
    "the method as a setting": ({"settings": '[settings]\nmethod = "bce"\n'}, r"method"),
    "a table in place of a list": ({"data": '[data]\nname = "scenes"\n'}, r"data.*list"),
    "answers and a case": (
        {"data": GOOD["data"] + "[data.answers]\nasked_rate = 0.5\n"},
        r"case or answers",
    ),
    "more people per pair than people": (
        {"data": '[[data]]\nname = "scenes"\n[data.answers]\npeople_per_pair = 3\n'},
        r"people",
    ),
    "a sweep of one value": (
        {"methods": GOOD["methods"] + "[sweep]\nkey = 'prior_noise'\nvalues = [0.1]\n"},
        r"sweep.*values",
    ),
    "a sweep of what cannot vary": (
        {"methods": GOOD["methods"] + "[sweep]\nkey = 'name'\nvalues = [1, 2]\n"},
        r"sweep.*key",
    ),
    "a search among nothing": (
        {"methods": GOOD["methods"] + "[search]\nlearning_rate = []\nepochs = [1]\n"},
        r"search.*learning_rate",
    ),
    "a search by epochs of none": (
        {"methods": GOOD["methods"] + "[search]\nlearning_rate = [0.1]\nepochs = [0]\n"},
        r"epochs",
    ),
    "a way to read that does not exist": (
        {"data": '[[data]]\nname = "wide.csv"\nread = {label = "has_*"}\n'},
        r"label",
    ),
    "a test set with folds": (
        {"data": '[[data]]\nname = "scenes"\ncase = "b"\ntest = "scenes"\n'},
        r"label_seeds",
    ),
    "a seed below zero": ({"head": 'name = "t"\nfolds = 3\nseed = -1\n'}, r"seed"),
    "more first folds than folds": (
        {"head": 'name = "t"\nfolds = 3\nfirst_folds = 9\n'},
        r"first_folds",
    ),
    "more rows to train on than there are": (
        {"head": 'name = "t"\nfolds = 3\ntrain_rows = 5000\n'},
        r"train_rows",
    ),
}


def _bench(place: Place, changes: dict[str, str]) -> str:
    place.write("e.toml", "".join((GOOD | changes).values()))
    return place.comes("bench e.toml --workers 1 -o runs")


for _name, (_changes, _words) in CONFIGS.items():
    CASES.append(Case(AREA, _name, lambda place, c=_changes: _bench(place, c), "refused", _words))


@refused(AREA, r"e\.toml.*TOML")
def _a_file_that_is_no_toml(place: Place) -> object:
    place.write("e.toml", "name: tiny\nfolds: 3\n")
    return place.comes("bench e.toml")


@refused(AREA, r"e\.toml")
def _a_config_that_is_not_there(place: Place) -> object:
    return place.comes("bench e.toml")


@refused(AREA, r"shard")
def _a_shard_beyond_the_last(place: Place) -> object:
    place.write("e.toml", "".join(GOOD.values()))
    return place.comes("bench e.toml --shard 9/8")


@refused(AREA, r"scheduler|dask|loky")
def _a_scheduler_without_a_cluster(place: Place) -> object:
    place.write("e.toml", "".join(GOOD.values()))
    return place.comes("bench e.toml --scheduler tcp://nowhere:1")


@said(AREA, r"result|damaged|json")
def _a_result_that_was_cut(place: Place) -> object:
    _bench(place, {})
    (path,) = Path("runs").glob("*/result.json")
    path.write_text(path.read_text()[:200])
    return place.comes("report runs -o report")


@handled(AREA)
def _a_second_run_does_nothing_again(place: Place) -> object:
    _bench(place, {})
    (path,) = Path("runs").glob("*/result.json")
    before = path.stat().st_mtime_ns
    _bench(place, {})
    return path.stat().st_mtime_ns == before


@refused(AREA, r"name")
def _a_name_that_leads_out_of_the_folder(place: Place) -> object:
    place.write("e.toml", "".join((GOOD | {"head": 'name = "../t"\nfolds = 3\n'}).values()))
    return place.comes("bench e.toml --workers 1")


@handled(AREA)
def _two_folds_are_too_few_for_significance(place: Place) -> object:
    two = {
        "head": 'name = "t"\nfolds = 2\n',
        "methods": GOOD["methods"] + '[[methods]]\nmethod = "ccmn"\n',
    }
    _bench(place, two)
    pages = [p.read_text() for p in Path("runs").rglob("*.md")] + [
        p.read_text() for p in Path("runs").rglob("*.html")
    ]
    return bool(pages) and not any(re.search(r"p = 0\b(?!\.)", page) for page in pages)
