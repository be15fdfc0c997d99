"""Data that do not fit what a model learned: predict, evaluate, export, split, report."""

import json
import re

import numpy as np
import pandas as pd

from hostile.casework import Place, RefusedError, handled, refused, refused_commands, said
from hostile.materials import (
    LABELS,
    ROWS,
    candidates,
    copy_model,
    features,
    fitted,
    frame,
    joined,
    relevant,
    text_of,
    wide,
)

AREA = "rows for a model"
PREDICT = "predict d.csv --model model -o p.csv"
TRUTH = "evaluate {} --relevant 'is_*' --model model"


def _predict(place: Place, table: pd.DataFrame | str, options: str = "") -> str:
    copy_model(place.folder)
    place.write("d.csv", table if isinstance(table, str) else text_of(table))
    return place.comes(f"{PREDICT} {options}")


def _is_right() -> bool:
    """Return whether the predictions are those of the good rows."""
    found = pd.read_csv("p.csv")[[f"probability:{name}" for name in LABELS]]
    return np.allclose(found, fitted().predict_proba(frame()), atol=1e-6)


@handled(AREA)
def _columns_in_another_order(place: Place) -> object:
    _predict(place, frame()[["blue", "red", "green"]])
    return _is_right()


@handled(AREA)
def _columns_that_training_did_not_see(place: Place) -> object:
    _predict(place, frame(town="Bonn", when="2024-01-01"))
    return _is_right()


@refused(AREA, r"green")
def _a_column_less(place: Place) -> object:
    return _predict(place, frame().drop(columns="green"))


@refused(AREA, r"green")
def _a_column_with_another_name(place: Place) -> object:
    return _predict(place, frame().rename(columns={"green": "Green"}))


@refused(AREA, r"twice|more than once|red|same name")
def _a_column_twice(place: Place) -> object:
    return _predict(place, text_of(frame()).replace("blue", "red", 1))


@refused(AREA, r"no rows")
def _no_rows(place: Place) -> object:
    return _predict(place, "red,green,blue\n")


@said(AREA, r"finite|missing|empty|fill")
def _a_value_missing_where_training_had_none(place: Place) -> object:
    table = frame()
    table.loc[3, "green"] = np.nan
    return _predict(place, table)


@refused(AREA, r"green|number|numeric")
def _words_where_training_had_numbers(place: Place) -> object:
    return _predict(place, frame(green="lots"))


@said(AREA, r"range|outside|far|large")
def _values_far_from_those_of_training(place: Place) -> object:
    return _predict(place, frame(green=1e30))


@said(AREA, r"items? .*(repeat|more than once)")
def _items_that_repeat(place: Place) -> object:
    return _predict(place, frame(photo="same"), "--item photo")


@refused(AREA, r"photo")
def _an_item_column_that_is_not_there(place: Place) -> object:
    return _predict(place, frame(), "--item photo")


@handled(AREA)
def _items_that_look_like_numbers(place: Place) -> object:
    _predict(place, frame(item=[f"{k:04}" for k in range(ROWS)]))
    return list(pd.read_csv("p.csv", dtype=str)["item"][:2]) == ["0000", "0001"]


@refused(AREA, r"top|4 labels|labels")
def _more_at_the_top_than_there_are_labels(place: Place) -> object:
    return _predict(place, frame(), "--top 9")


@refused(AREA, r"csv|jsonl|ending")
def _predictions_as_a_picture(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("predict new.csv --model model -o p.png")


@refused(AREA, r"item")
def _questions_about_rows_without_items(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("predict new.csv --model model -o p.csv --ask-next q.csv --asked long.csv")


@said(AREA, r"training saw|seen|held out")
def _evaluating_the_rows_of_training(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("evaluate wide.csv --labels 'has_*' --relevant 'is_*' --model model")


@refused(AREA, r"agree|plum|name")
def _truth_of_labels_that_partly_agree(place: Place) -> object:
    copy_model(place.folder)
    table = frame(**wide(relevant(), "")).rename(columns={"tree": "plum"})
    place.write("d.csv", text_of(table))
    return place.comes("evaluate d.csv --relevant sea,sky,sun,plum --model model")


@said(AREA, r"position")
def _truth_whose_names_do_not_agree(place: Place) -> object:
    copy_model(place.folder)
    table = frame(**{f"is_{name}": relevant()[:, j].astype(int) for j, name in enumerate("abcd")})
    place.write("d.csv", text_of(table))
    return place.comes(TRUTH.format("d.csv"))


@handled(AREA)
def _truth_whose_names_agree_but_for_what_they_begin_with(place: Place) -> object:
    copy_model(place.folder)
    table = frame(**wide(relevant(), "is_"))
    place.write("d.csv", text_of(table[[*table.columns[::-1]]]))
    shown = [place.comes(f"{TRUTH.format(name)} --json") for name in ("truth.csv", "d.csv")]
    first, second = (json.loads(text[text.find("{") :]) for text in shown)
    return bool(first["average_precision"] == second["average_precision"])


@refused(AREA, r"label|3|4")
def _truth_of_fewer_labels(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("evaluate truth.csv --relevant is_sea,is_sky,is_sun --model model")


@refused(AREA, r"relevant|labels|true")
def _rows_without_any_labels(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("evaluate new.csv --model model")


@said(AREA, r"cannot be estimated|no row|never|degenerate|one class|relevant")
def _truth_where_nothing_is_relevant(place: Place) -> object:
    copy_model(place.folder)
    place.write("d.csv", text_of(frame(**wide(np.zeros_like(relevant()), "is_"))))
    return place.comes(TRUTH.format("d.csv"))


@said(AREA, r"cannot be estimated|not known|few|one row")
def _one_row_to_evaluate(place: Place) -> object:
    copy_model(place.folder)
    place.write("d.csv", text_of(frame(**wide(candidates(), "has_"))[5:6]))
    return place.comes("evaluate d.csv --labels 'has_*' --model model")


@refused(AREA, r"plum|label|prior")
def _priors_of_other_labels(place: Place) -> object:
    copy_model(place.folder)
    place.write("p.csv", "label,class_prior\nsea,0.2\nsky,0.3\nsun,0.1\nplum,0.2\n")
    return place.comes("evaluate names.csv --labels maybe --model model --priors p.csv")


@refused(AREA, r"onnx")
def _onnx_with_another_ending(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("export model -o model.pb")


@said(AREA, r"copies|repeat|same features")
def _rows_that_repeat_are_split(place: Place) -> object:
    table = pd.concat([pd.read_csv("names.csv")] * 2)
    place.write("d.csv", text_of(table))
    return place.comes("split d.csv --labels maybe")


@said(AREA, r"patient.*empty in 1")
def _groups_with_empty_cells(place: Place) -> object:
    table = frame(maybe=joined(candidates()), patient=[str(k // 4) for k in range(ROWS)])
    table.loc[5, "patient"] = None
    place.write("d.csv", text_of(table))
    return place.comes("split d.csv --labels maybe --groups patient --ignore patient")


@refused(AREA, r"row")
def _a_single_row_to_split(place: Place) -> object:
    place.write("d.csv", text_of(frame(maybe=joined(candidates()))[:1]))
    return place.comes("split d.csv --labels maybe")


@handled(AREA)
def _one_row_to_predict(place: Place) -> object:
    _predict(place, frame()[:1])
    return len(pd.read_csv("p.csv")) == 1


@refused(AREA, r"features|3|2")
def _an_array_of_fewer_columns(place: Place) -> object:
    copy_model(place.folder)
    np.savez("d.npz", X=features()[:, :2])
    return place.comes("predict d.npz --model model -o p.csv")


@said(AREA, r"undertrained|few rows|rows|uncertain")
def _two_rows_to_learn_from(place: Place) -> object:
    place.write("d.csv", text_of(frame(**wide(candidates(), "has_"))[:2]))
    return place.comes("fit d.csv --labels 'has_*' --epochs 1 -o m")


@said(AREA, r"every feature is constant")
def _features_that_never_change(place: Place) -> object:
    place.write("d.csv", text_of(frame(red=1, green=2, blue=3, maybe=joined(candidates()))))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


refused_commands(
    AREA,
    {
        "a report of a folder that is not there": ("report nowhere", r"nowhere"),
        "a report of a table": ("report names.csv", r"names\.csv|result|folder"),
        "a report of a table with columns": ("report names.csv --labels maybe", r"--model"),
        "a report of a folder without results": ("report . -o r", r"result"),
        "answers in place of true labels": (
            "priors names.csv --check --labels maybe --clean new.csv",
            r"no column 'maybe'",
        ),
        "a check without any truth": ("priors names.csv --check --labels maybe", r"true|clean"),
    },
)


@handled(AREA)
def _an_error_of_predict_advises_no_option_that_predict_lacks(place: Place) -> object:
    try:
        _predict(place, frame(green="lots"))
    except RefusedError as error:
        return not {word for word in re.findall(r"--[a-z-]+", str(error))} & {
            "--ignore",
            "--labels",
        }
    return False
