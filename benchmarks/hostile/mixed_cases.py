"""Mixed tables: every kind of column, and rows to predict that differ from those of training."""

import atexit
import json
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from comes import load_model
from comes.datasets import ReadOptions
from comes.workflows.fit import fit_model
from hostile.casework import Place, handled, refused, refused_commands, said
from hostile.materials import ROWS, candidates, frame, joined, relevant, text_of

AREA = "mixed tables"
FIT = "fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m "
SHOW = "datasets d.csv --labels maybe "
K = np.arange(ROWS)
WORDS = ("boats", "birds", "trees", "rain and wind")


def _mixed(**columns: object) -> pd.DataFrame:
    """Return a table with every kind of column."""
    table = frame(
        town=np.array(["Bonn", "Lyon", "Oslo"])[K % 3],
        when=pd.date_range("2024-01-01", periods=ROWS).strftime("%Y-%m-%d"),
        open=np.where(K % 2, "yes", "no"),
        note=[f"a quiet place by the water number {k}, with {WORDS[k % 4]}" for k in K],
        maybe=joined(candidates()),
    )
    table.loc[3, "green"] = np.nan
    return table.assign(**columns)


@cache
def _model() -> Path:
    """Return a model of that table."""
    folder = Path(tempfile.mkdtemp(prefix="comes-mixed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _mixed().to_csv(folder / "d.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reading = ReadOptions(labels=["maybe"])
        settings = {"epochs": 1, "n_networks": 1, "class_prior": relevant().mean(axis=0)}
        fit_model(folder / "d.csv", settings, reading=reading, output=folder / "m")
    return folder / "m"


def _predict(place: Place, table: pd.DataFrame, options: str = "") -> str:
    shutil.copytree(_model(), place.folder / "m")
    place.write("new.csv", text_of(table))
    return place.comes(f"predict new.csv --model m -o p.csv {options}")


def _fit(place: Place, table: pd.DataFrame, options: str = "") -> str:
    place.write("d.csv", text_of(table))
    return place.comes(FIT + options)


def _show(place: Place, table: pd.DataFrame, options: str = "") -> str:
    place.write("d.csv", text_of(table))
    return place.comes(SHOW + options)


def _taken(place: Place, table: pd.DataFrame, name: str, options: str = "") -> tuple[str, int, str]:
    """Return what a column is taken for, how many of its cells are empty, and why."""
    printed = _show(place, table, f"{options} --json")
    shown, _ = json.JSONDecoder().raw_decode(printed)  # warnings may follow
    column = next(c for c in shown["columns"] if c["column"] == name)
    return column["taken_for"], column["missing"], column["why"]


@handled(AREA)
def _the_file_gives_what_the_frame_gives(place: Place) -> object:
    _predict(place, _mixed())
    expected = load_model("m").predict_proba(_mixed().drop(columns="maybe"))
    return np.allclose(pd.read_csv("p.csv").filter(like="probability:"), expected, atol=1e-5)


@handled(AREA)
def _columns_in_another_order(place: Place) -> object:
    _predict(place, _mixed()[_mixed().columns[::-1]])
    expected = load_model("m").predict_proba(_mixed().drop(columns="maybe"))
    return np.allclose(pd.read_csv("p.csv").filter(like="probability:"), expected, atol=1e-5)


@said(AREA, r"town.*(Rome|not seen|unseen|new)|Rome")
def _a_category_that_training_did_not_see(place: Place) -> object:
    return _predict(place, _mixed(town="Rome"))


@said(AREA, r"town")
def _a_category_column_that_is_missing(place: Place) -> object:
    return _predict(place, _mixed().drop(columns="town"))


@said(AREA, r"note")
def _a_text_column_that_is_missing(place: Place) -> object:
    return _predict(place, _mixed().drop(columns="note"))


@said(AREA, r"Town|town")
def _a_category_column_with_another_name(place: Place) -> object:
    return _predict(place, _mixed().rename(columns={"town": "Town"}))


@said(AREA, r"red")
def _words_in_a_column_of_numbers(place: Place) -> object:
    return _predict(place, _mixed(red="plenty"))


@said(AREA, r"when")
def _dates_in_another_form(place: Place) -> object:
    return _predict(place, _mixed(when="31/01/2024"))


@said(AREA, r"when")
def _words_in_a_column_of_dates(place: Place) -> object:
    return _predict(place, _mixed(when="yesterday"))


@said(AREA, r"open")
def _a_third_word_in_a_column_of_two(place: Place) -> object:
    return _predict(place, _mixed(open="maybe so"))


@said(AREA, r"note|text|empty|missing")
def _texts_that_are_all_empty(place: Place) -> object:
    return _predict(place, _mixed(note=""))


@said(AREA, r"note|word|text")
def _texts_of_words_that_training_did_not_see(place: Place) -> object:
    return _predict(place, _mixed(note="zzz qqq xxx"))


@said(AREA, r"town|empty|missing")
def _a_column_that_became_empty(place: Place) -> object:
    return _predict(place, _mixed(town=""))


@handled(AREA)
def _a_row_with_every_cell_missing(place: Place) -> object:
    table = _mixed()
    table.iloc[4, :-1] = None
    _predict(place, table)
    return bool(np.isfinite(pd.read_csv("p.csv").filter(like="probability:")).all(axis=None))


@said(AREA, r"red|inf|finite")
def _an_infinity_to_predict(place: Place) -> object:
    return _predict(place, _mixed(red=np.inf))


@said(AREA, r"left out: 'key'")
def _an_id_beside_the_features(place: Place) -> object:
    return _fit(place, _mixed(key=[f"x{k:05}" for k in K]))


@said(AREA, r"left out: 'nr'")
def _row_numbers_beside_the_features(place: Place) -> object:
    return _fit(place, _mixed(nr=K))


@said(AREA, r"left out: 'planet'")
def _a_column_that_never_changes(place: Place) -> object:
    return _fit(place, _mixed(planet="earth"))


@said(AREA, r"left out: 'void'")
def _a_column_without_a_value(place: Place) -> object:
    return _fit(place, _mixed(void=""))


@handled(AREA)
def _codes_that_begin_with_zero(place: Place) -> object:
    taken = _taken(place, _mixed(code=[f"00{k % 7}" for k in K]), "code")
    return taken[:2] == ("category", 0)


@handled(AREA)
def _postcodes_named_as_categories(place: Place) -> object:
    return _taken(place, _mixed(code=50000 + K % 4), "code", "--category code")[0] == "category"


@handled(AREA)
def _numbers_and_words_in_one_column(place: Place) -> object:
    taken = _taken(place, _mixed(mix=[str(k) if k % 2 else "none of these" for k in K]), "mix")
    return taken[0] in ("category", "text")


@handled(AREA)
def _days_and_months_that_may_be_either(place: Place) -> object:
    taken = _taken(place, _mixed(when=[f"{1 + k % 9:02}/{1 + k % 7:02}/2024" for k in K]), "when")
    return taken[0] == "date" and "the month first" in taken[2]


@handled(AREA)
def _dates_that_do_not_exist(place: Place) -> object:
    taken = _taken(
        place, _mixed(when=["2024-02-31" if k % 5 == 0 else "2024-02-01" for k in K]), "when"
    )
    return taken[:2] == ("date", 12) or taken[0] == "category"


@handled(AREA)
def _dates_with_times_and_zones(place: Place) -> object:
    taken = _taken(
        place, _mixed(when=[f"2024-03-{1 + k % 28:02}T10:00:00+0{k % 3}:00" for k in K]), "when"
    )
    return taken[0] == "date"


@handled(AREA)
def _booleans_in_four_spellings(place: Place) -> object:
    taken = _taken(place, _mixed(seen=np.array(["yes", "Yes", "no", "NO"])[K % 4]), "seen")
    return taken[0] == "boolean"


@said(AREA, r"case or blanks")
def _categories_that_differ_in_case_alone(place: Place) -> object:
    return _show(place, _mixed(town=np.array(["Bonn", "bonn ", "Lyon"])[K % 3]))


@handled(AREA)
def _words_for_nothing(place: Place) -> object:
    taken = _taken(place, _mixed(gap=np.array(["1.5", "N/A", "2.5", "-"])[K % 4]), "gap")
    return taken[:2] == ("number", 30)


@handled(AREA)
def _texts_in_scripts_without_blanks(place: Place) -> object:
    words = np.array(["静かな海のそばの場所です", "山の上の古い寺と森", "雨の日の駅と市場の人々"])
    _fit(place, _mixed(note=[f"{words[k % 3]}、{k}番目の写真の説明" for k in K]), "--text note")
    probabilities = load_model("m").predict_proba(_mixed(note=words[0]).drop(columns="maybe"))
    other = load_model("m").predict_proba(_mixed(note=words[1]).drop(columns="maybe"))
    return not np.allclose(probabilities, other)


@said(AREA, r"note")
def _texts_of_stop_words_and_signs(place: Place) -> object:
    return _fit(place, _mixed(note=np.array(["!!!", "...", "?"])[K % 3]), "--text note")


@handled(AREA)
def _cells_of_many_lines_and_quotes(place: Place) -> object:
    _fit(place, _mixed(note=[f'line one "quoted"\nline two, {WORDS[k % 4]}, of {k}' for k in K]))
    return load_model("m").predict(_mixed().drop(columns="maybe")).shape == (ROWS, 4)


@handled(AREA)
def _thousands_of_different_words(place: Place) -> object:
    taken = _taken(place, _mixed(blob=[f"w{k}x{k * 7919 % 1000}" for k in K]), "blob")
    return taken[0] == "id"


@refused(AREA, r"column|feature")
def _nothing_but_ids_and_constants(place: Place) -> object:
    table = pd.DataFrame({"id": K, "planet": "earth", "maybe": joined(candidates())})
    return _fit(place, table)


@refused(AREA, r"embedding|nowhere|know")
def _an_embedding_that_does_not_exist(place: Place) -> object:
    return _fit(place, _mixed(), "--text note --embedding nowhere")


@refused(AREA, r"changed|edited|damaged|column")
def _a_model_with_an_edited_column(place: Place) -> object:
    shutil.copytree(_model(), place.folder / "m")
    path = place.folder / "m" / "model.json"
    text = path.read_text()
    path.write_text(text.replace('"town"', '"city"'))
    return place.comes("predict new.csv --model m -o p.csv")


refused_commands(
    AREA,
    {
        "a text column that is not there": (
            FIT.replace("d.csv", "names.csv") + "--text body",
            r"body",
        ),
        "a category that is not there": (
            FIT.replace("d.csv", "names.csv") + "--category town",
            r"town",
        ),
        "a column as text and category": (
            FIT.replace("d.csv", "names.csv") + "--text red --category red",
            r"red",
        ),
        "the labels as a text": (FIT.replace("d.csv", "names.csv") + "--text maybe", r"maybe"),
        "a text column that is ignored": (
            FIT.replace("d.csv", "names.csv") + "--text red --ignore red",
            r"red",
        ),
        "columns of a file of arrays": (
            "fit answers.npz --category x0 --epochs 1 -o m",
            r"category|x0",
        ),
    },
)
