"""Annotation projects: items, classes, cards and answers that do not fit."""

import json
import sqlite3
from pathlib import Path

from hostile.casework import CASES, Case, Place, handled, refused, said

AREA = "annotation"
INIT = "annotate init project --items items.csv --classes classes.txt "
ITEMS = "item,text\n" + "".join(f"t{k},a text about {k}\n" for k in range(12))
CLASSES = "sky\nsea\n"

# What is wrong, the items, the classes, more options, and words that the message must have.
PROJECTS: dict[str, tuple[str, str, str, str]] = {
    "no items": ("item,text\n", CLASSES, "", r"no items|item|row"),
    "items without a text": ("item,words\na,b\n", CLASSES, "", r"text"),
    "items that repeat": ("item,text\na,x\na,y\n", CLASSES, "", r"'a'|differ|twice"),
    "items without a name": ("item,text\na,x\n,y\n", CLASSES, "", r"item|empty|name"),
    "texts that are empty": ("item,text\na,x\nb,\n", CLASSES, "", r"text|empty|b"),
    "no classes": (ITEMS, "", "", r"class"),
    "classes of blanks": (ITEMS, "  \n\n", "", r"class"),
    "a class twice": (ITEMS, "sky\nsky\n", "", r"sky"),
    "classes that differ in case alone": (ITEMS, "sky\nSky\n", "", r"[Ss]ky"),
    "a rate above one": (ITEMS, CLASSES, "--rate 2", r"rate"),
    "a rate of nothing": (ITEMS, CLASSES, "--rate 0", r"rate"),
    "a rate that asks nobody": (ITEMS, CLASSES, "--rate 0.001", r"rate|card|question"),
    "an overlap above one": (ITEMS, CLASSES, "--overlap 1.5", r"overlap"),
    "a way to draw that does not exist": (ITEMS, CLASSES, "--by chance", r"--by"),
    "a database that is none": (ITEMS, CLASSES, "--database mysql://x/y", r"postgresql"),
    "a database that nobody reaches": (
        ITEMS,
        CLASSES,
        "--database postgresql://nobody@127.0.0.1:1/none",
        r"database|connect|127",
    ),
    "pictures of texts": (ITEMS, CLASSES, "--images .", r"image|t0"),
}


def _init(
    place: Place, items: str = ITEMS, classes: str = CLASSES, options: str = "--rate 1"
) -> str:
    place.write("items.csv", items)
    place.write("classes.txt", classes)
    return place.comes(INIT + options)


for _name, (_items, _classes, _options, _words) in PROJECTS.items():
    CASES.append(
        Case(
            AREA,
            _name,
            lambda place, i=_items, c=_classes, o=_options: _init(place, i, c, o),
            "said" if "differ in case" in _name else "refused",
            _words,
        )
    )


def _import(place: Place, name: str, content: str, options: str = "") -> str:
    _init(place)
    place.write(name, content)
    return place.comes(f"annotate import project {name} {options}")


@refused(AREA, r"project|exists")
def _a_project_over_a_project(place: Place) -> object:
    _init(place)
    return place.comes(INIT)


@refused(AREA, r"project")
def _a_folder_that_is_no_project(place: Place) -> object:
    return place.comes("annotate export . -o a.csv")


@refused(AREA, r"database|damaged|project|sqlite")
def _a_database_that_was_cut(place: Place) -> object:
    _init(place)
    (path,) = [p for p in Path("project").iterdir() if p.suffix in (".db", ".sqlite", ".sqlite3")]
    path.write_bytes(b"not a database, by far" * 50)
    return place.comes("annotate report project")


@refused(AREA, r"version|database|table|project|comes")
def _a_database_of_something_else(place: Place) -> object:
    _init(place)
    (path,) = [p for p in Path("project").iterdir() if p.suffix in (".db", ".sqlite", ".sqlite3")]
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("create table cats (name text)")
    other.commit()
    other.close()
    return place.comes("annotate report project")


@refused(AREA, r"answer|nobody|nothing")
def _an_export_without_answers(place: Place) -> object:
    _init(place)
    return place.comes("annotate export project -o a.csv")


@refused(AREA, r"\.parquet|\.csv|ending")
def _an_export_as_a_picture(place: Place) -> object:
    _import(place, "a.csv", "item,label,answer\nt1,sky,no\n")
    return place.comes("annotate export project -o a.png")


@refused(AREA, r"zebra")
def _cards_of_a_class_that_does_not_exist(place: Place) -> object:
    _init(place)
    return place.comes("annotate add project --classes zebra")


@refused(AREA, r"zz")
def _cards_about_an_item_that_does_not_exist(place: Place) -> object:
    _init(place)
    place.write("cards.csv", "item,label\nzz,sky\n")
    return place.comes("annotate add project --cards cards.csv")


@refused(AREA, r"item|label|column")
def _cards_without_their_columns(place: Place) -> object:
    _init(place)
    place.write("cards.csv", "photo,class\nt1,sky\n")
    return place.comes("annotate add project --cards cards.csv")


@refused(AREA, r"cards|skipped|one")
def _cards_and_skipped_at_once(place: Place) -> object:
    _init(place)
    place.write("cards.csv", "item,label\nt1,sky\n")
    return place.comes("annotate add project --cards cards.csv --skipped")


@said(AREA, r"\b0\b|nothing|no card|all")
def _more_cards_where_all_are_asked(place: Place) -> object:
    _init(place)
    return place.comes("annotate add project --classes sky --rate 0.5")


@refused(AREA, r"zz|item")
def _answers_about_an_item_that_does_not_exist(place: Place) -> object:
    return _import(place, "a.csv", "item,label,answer\nzz,sky,no\n")


@refused(AREA, r"zebra")
def _answers_about_a_class_that_does_not_exist(place: Place) -> object:
    return _import(place, "a.csv", "item,label,answer\nt1,zebra,no\n")


@refused(AREA, r"rarely")
def _answers_of_a_word_that_no_state_has(place: Place) -> object:
    return _import(place, "a.csv", "item,label,answer\nt1,sky,rarely\n")


@refused(AREA, r"yes.*no|no.*yes|contradict|twice|both")
def _answers_that_contradict(place: Place) -> object:
    return _import(place, "a.csv", "item,label,answer\nt1,sky,no\nt1,sky,yes\n")


@refused(AREA, r"column|item|label|answer")
def _answers_without_their_columns(place: Place) -> object:
    return _import(place, "a.csv", "a,b,c\nt1,sky,no\n")


@refused(AREA, r"json|label studio|coco")
def _answers_of_somebody_elses_json(place: Place) -> object:
    return _import(place, "a.json", json.dumps({"hello": "world"}))


@refused(AREA, r"line 1|json")
def _answers_of_broken_lines(place: Place) -> object:
    return _import(place, "a.jsonl", "{'text': 't1'}\n")


@refused(AREA, r"a\.csv")
def _answers_that_are_not_there(place: Place) -> object:
    _init(place)
    return place.comes("annotate import project a.csv")


@said(AREA, r"already|known|again|\b0\b")
def _answers_imported_twice(place: Place) -> object:
    _import(place, "a.csv", "item,label,answer\nt1,sky,no\nt2,sky,yes\n")
    return place.comes("annotate import project a.csv")


@handled(AREA)
def _answers_come_back_as_they_went(place: Place) -> object:
    _import(place, "a.csv", "item,label,answer\nt1,sky,no\nt2,sea,yes\nt3,sky,maybe\n")
    place.comes("annotate export project -o b.csv")
    lines = Path("b.csv").read_text().splitlines()
    kept = [line.split(",")[:3] for line in lines if "not asked" not in line][1:]
    return sorted(kept) == [["t1", "sky", "no"], ["t2", "sea", "yes"], ["t3", "sky", "maybe"]]


@refused(AREA, r"port|use|address")
def _a_port_that_is_taken(place: Place) -> object:
    import socket

    _init(place)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return place.comes(f"annotate serve project --port {taken.getsockname()[1]}")


@refused(AREA, r"port")
def _a_port_beyond_the_last(place: Place) -> object:
    return place.comes("annotate serve project --port 99999")


@refused(AREA, r"host|address|nowhere")
def _an_address_that_is_not_ours(place: Place) -> object:
    _init(place)
    return place.comes("annotate serve project --host 192.0.2.1 --port 0")


@refused(AREA, r"item|feature|t0")
def _a_report_with_features_of_other_items(place: Place) -> object:
    _import(place, "a.csv", "item,label,answer\nt1,sky,no\n")
    return place.comes("annotate report project --features features.csv")


@refused(AREA, r"\.html")
def _a_report_that_is_no_page(place: Place) -> object:
    _init(place)
    return place.comes("annotate report project -o r.pdf")
