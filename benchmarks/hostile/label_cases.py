"""Label columns as they come: separators, spellings, what was said of nothing or of everything."""

import json

import numpy as np
import pandas as pd

from comes.datasets import open_dataset
from hostile.casework import Place, handled, refused, said
from hostile.materials import LABELS, ROWS, candidates, frame, joined, relevant, text_of, wide

AREA = "labels"
FIT = "fit d.csv --labels maybe --epochs 1 -o m"
SHOW = "datasets d.csv --labels maybe"


def _write(place: Place, cells: object, **columns: object) -> None:
    place.write("d.csv", text_of(frame(maybe=cells, **columns)))


def _is_read(labels: list[str] | None = None) -> bool:
    read = open_dataset("d.csv", labels=labels or ["maybe"])
    return read.label_names == LABELS and np.array_equal(read.known_candidates(), candidates())


@handled(AREA)
def _names_with_commas_between(place: Place) -> object:
    _write(place, joined(candidates(), ","))
    return _is_read()


@handled(AREA)
def _names_with_bars_between(place: Place) -> object:
    _write(place, joined(candidates(), " | "))
    return _is_read()


@handled(AREA)
def _names_with_blanks_between(place: Place) -> object:
    _write(place, joined(candidates(), " "))
    return _is_read()


@handled(AREA)
def _lists_as_python_prints_them(place: Place) -> object:
    _write(place, [str(row.split(";")) for row in joined(candidates())])
    return _is_read()


@handled(AREA)
def _lists_as_json(place: Place) -> object:
    _write(place, [json.dumps(row.split(";")) for row in joined(candidates())])
    return _is_read()


@handled(AREA)
def _a_separator_at_the_end(place: Place) -> object:
    _write(place, [f"{row};" for row in joined(candidates())])
    return _is_read()


@handled(AREA)
def _blanks_around_names(place: Place) -> object:
    _write(place, joined(candidates(), " ; "))
    return _is_read()


@handled(AREA)
def _a_name_twice_in_a_cell(place: Place) -> object:
    _write(place, [f"{row};{row.split(';')[0]}" for row in joined(candidates())])
    return _is_read()


@refused(AREA, r"separator")
def _two_separators_in_one_column(place: Place) -> object:
    cells = joined(candidates())
    _write(place, [c.replace(";", "|") if k % 2 else c for k, c in enumerate(cells)])
    return place.comes(FIT)


@refused(AREA, r"separator|single|own|one candidate")
def _a_name_of_its_own_in_every_row(place: Place) -> object:
    _write(place, [f"photo {k}" for k in range(ROWS)])
    return place.comes(FIT)


@handled(AREA)
def _names_that_have_commas(place: Place) -> object:
    towns = ["Rome, Italy", "Bonn, Germany", "Lyon, France"] * 20
    _write(place, [f"{town}; Oslo, Norway" if k % 2 else town for k, town in enumerate(towns)])
    names = open_dataset("d.csv", labels=["maybe"]).label_names
    return names == ["Bonn, Germany", "Lyon, France", "Oslo, Norway", "Rome, Italy"]


@handled(AREA)
def _a_column_named_twice(_: Place) -> object:
    return open_dataset("wide.csv", labels=["has_sea", "has_*", "has_sea"]).label_names == [
        f"has_{name}" for name in LABELS
    ]


@said(AREA, r"case|blank|similar|differ")
def _spellings_that_differ_in_case(place: Place) -> object:
    cells = joined(candidates())
    _write(place, [c.replace("sea", "Sea") if k % 3 else c for k, c in enumerate(cells)])
    return place.comes(SHOW)


@said(AREA, r"similar|accent|differ|letter|same")
def _spellings_that_differ_in_unicode_alone(place: Place) -> object:
    cells = [
        c.replace("sea", "ma\u0308r" if k % 2 else "m\u00e4r")
        for k, c in enumerate(joined(candidates()))
    ]
    _write(place, cells)
    return place.comes(SHOW)


@refused(AREA, r"empty")
def _empty_cells_of_candidates(place: Place) -> object:
    cells = joined(candidates())
    _write(place, ["" if k == 7 else c for k, c in enumerate(cells)])
    return place.comes(FIT)


@refused(AREA, r"empty|no label|nothing")
def _nothing_but_empty_cells(place: Place) -> object:
    _write(place, [""] * ROWS)
    return place.comes(FIT)


@said(AREA, r"no row excludes")
def _everything_is_a_candidate_everywhere(place: Place) -> object:
    _write(place, [";".join(LABELS)] * ROWS)
    return place.comes(FIT)


@said(AREA, r"candidate|exclude|every")
def _no_row_has_a_candidate(place: Place) -> object:
    place.write("d.csv", text_of(frame(**wide(np.zeros_like(candidates()), "has_"))))
    return place.comes("fit d.csv --labels 'has_*' --epochs 1 -o m")


@said(AREA, r"one label|single|every row|nothing exclude|exclude")
def _one_label_in_every_row(place: Place) -> object:
    _write(place, ["sea"] * ROWS)
    return place.comes(FIT)


@said(AREA, r"sun")
def _a_label_that_nothing_excludes(place: Place) -> object:
    said_of = candidates().copy()
    said_of[:, 2] = True
    place.write("d.csv", text_of(frame(**wide(said_of, "has_"))))
    return place.comes("fit d.csv --labels 'has_*' --epochs 1 -o m")


@said(AREA, r"sun")
def _a_label_that_every_row_excludes(place: Place) -> object:
    said_of = candidates().copy()
    said_of[:, 2] = False
    place.write("d.csv", text_of(frame(**wide(said_of, "has_"))))
    return place.comes("fit d.csv --labels 'has_*' --epochs 1 -o m")


@refused(AREA, r"0 or 1|2|state|word|--answers")
def _a_count_where_0_or_1_is_wanted(place: Place) -> object:
    table = pd.read_csv("wide.csv")
    table.loc[3, "has_sky"] = 2
    place.write("d.csv", text_of(table))
    return place.comes("fit d.csv --labels 'has_*' --ignore 'is_*' --epochs 1 -o m")


@refused(AREA, r"0\.5|0 or 1|word")
def _shares_in_label_columns(place: Place) -> object:
    table = pd.read_csv("wide.csv").astype({"has_sky": float})
    table.loc[3, "has_sky"] = 0.5
    place.write("d.csv", text_of(table))
    return place.comes("fit d.csv --labels 'has_*' --ignore 'is_*' --epochs 1 -o m")


@refused(AREA, r"rarely|--answers|word")
def _a_word_that_no_state_has(place: Place) -> object:
    words = np.where(candidates(), "rarely", "no")
    place.write("d.csv", text_of(frame(**{f"has_{n}": words[:, j] for j, n in enumerate(LABELS)})))
    return place.comes("fit d.csv --labels 'has_*' --epochs 1 -o m")


@handled(AREA)
def _words_in_capitals_with_blanks(place: Place) -> object:
    words = np.where(candidates(), " Maybe", "NO ")
    place.write("d.csv", text_of(frame(**{f"has_{n}": words[:, j] for j, n in enumerate(LABELS)})))
    read = open_dataset("d.csv", labels=["has_*"])
    return np.array_equal(read.known_answers().excluded, ~candidates())


@refused(AREA, r"sea.*twice|twice|both|contradict|no and yes|yes and no")
def _yes_and_no_by_one_person(place: Place) -> object:
    place.write("a.csv", "item,label,answer,person\np1,sea,yes,Ann\np1,sea,no,Ann\np2,sea,no,Ann\n")
    return place.comes("datasets a.csv --features features.csv")


@said(AREA, r"disagree|differ|people")
def _yes_and_no_by_two_people(place: Place) -> object:
    place.write("a.csv", "item,label,answer,person\np1,sea,yes,Ann\np1,sea,no,Bob\np2,sea,no,Ann\n")
    return place.comes("datasets a.csv --features features.csv")


@refused(AREA, r"p99")
def _answers_about_an_unknown_item(place: Place) -> object:
    place.write("a.csv", "item,label,answer\np1,sea,yes\np99,sea,no\n")
    return place.comes("datasets a.csv --features features.csv")


@refused(AREA, r"item|p1|twice|once")
def _an_item_twice_among_the_features(place: Place) -> object:
    table = pd.read_csv("features.csv")
    table.loc[2, "item"] = "p1"
    place.write("f.csv", text_of(table))
    return place.comes("datasets long.csv --features f.csv")


@refused(AREA, r"label|empty|row")
def _a_label_without_a_name(place: Place) -> object:
    place.write("a.csv", "item,label,answer\np1,sea,yes\np2,,no\n")
    return place.comes("datasets a.csv --features features.csv")


@refused(AREA, r"inside|candidate|relevant")
def _a_relevant_label_that_is_excluded(place: Place) -> object:
    table = frame(**wide(candidates(), "has_") | wide(relevant(), "is_"))
    table.loc[0, "has_sea"], table.loc[0, "is_sea"] = 0, 1
    place.write("d.csv", text_of(table))
    return place.comes("datasets d.csv --labels 'has_*' --relevant 'is_*'")


@said(AREA, r"label names|not.*label|unknown|plum")
def _a_name_beyond_those_listed(place: Place) -> object:
    return place.comes("datasets names.csv --labels maybe --label-names sea,sky,plum")


@said(AREA, r"plum|never|nothing")
def _a_listed_name_that_never_occurs(place: Place) -> object:
    return place.comes("datasets names.csv --labels maybe --label-names sea,sky,sun,tree,plum")


@handled(AREA)
def _labels_called_na_and_none(place: Place) -> object:
    cells = [c.replace("sea", "NA").replace("sky", "None") for c in joined(candidates())]
    _write(place, cells)
    return sorted(open_dataset("d.csv", labels=["maybe"]).label_names) == [
        "NA",
        "None",
        "sun",
        "tree",
    ]


@handled(AREA)
def _labels_that_are_numbers(place: Place) -> object:
    cells = joined(candidates())
    for number, name in enumerate(LABELS):
        cells = [c.replace(name, str(number)) for c in cells]
    _write(place, cells)
    read = open_dataset("d.csv", labels=["maybe"])
    return read.label_names == list("0123") and np.array_equal(
        read.known_candidates(), candidates()
    )


@said(AREA, r"identical|same|copy|truth|equal")
def _candidates_that_equal_the_truth(place: Place) -> object:
    place.write("d.csv", text_of(frame(**wide(relevant(), "has_") | wide(relevant(), "is_"))))
    return place.comes("datasets d.csv --labels 'has_*' --relevant 'is_*'")


@refused(AREA, r"red")
def _a_feature_named_as_a_label(place: Place) -> object:
    return place.comes("fit wide.csv --labels red,has_sea --ignore 'is_*' --epochs 1 -o m")
