"""Outputs over inputs, over other people's folders, and where nothing can be written."""

import os

from hostile.casework import Place, refused, refused_commands
from hostile.materials import copy_model

AREA = "outputs"

refused_commands(
    AREA,
    {
        "a converted file over itself": (
            "datasets convert wide.csv -o wide.csv --labels 'has_*' --relevant 'is_*'",
            r"wide\.csv",
        ),
        "a converted file over itself by another path": (
            "datasets convert wide.csv -o ./x/../wide.csv --labels 'has_*' --relevant 'is_*'",
            r"wide\.csv",
        ),
        "candidates over the truth": (
            "datasets convert truth.csv --simulate b --relevant 'is_*' -o truth.csv",
            r"truth\.csv",
        ),
        "priors over the data": ("priors names.csv --labels maybe -o names.csv", r"names\.csv"),
        "parts into a folder that is not there": (
            "split names.csv --labels maybe -o no/such/",
            r"no/such|folder",
        ),
        "a model over a table": (
            "fit names.csv --labels maybe --epochs 1 -o names.csv",
            r"names\.csv|folder",
        ),
        "a model into the folder of the data": (
            "fit names.csv --labels maybe --epochs 1 -o .",
            r"folder|model|empty",
        ),
        "a converted file without an ending": (
            "datasets convert names.csv -o out --labels maybe",
            r"\.csv|ending",
        ),
        "a converted file of another kind": (
            "datasets convert names.csv -o out.docx --labels maybe",
            r"\.docx|ending",
        ),
        "a file in a folder that is not there": (
            "datasets convert names.csv -o no/such/out.csv --labels maybe",
            r"no/such|folder",
        ),
        "a name of 300 letters": (
            f"fit names.csv --labels maybe --epochs 1 -o {'m' * 300}",
            r"name|long",
        ),
        "a report over a file": ("report runs -o names.csv", r"runs|names\.csv"),
        "priors as a picture": ("priors names.csv --labels maybe -o p.png", r"\.csv"),
        "features over the pictures' table": (
            "datasets convert names.csv --backbone resnet50 -o names.csv",
            r"\.npz|names\.csv",
        ),
        "an annotation project over a file": (
            "annotate init names.csv --items new.csv --classes priors.csv",
            r"names\.csv|text|folder",
        ),
    },
)


@refused(AREA, r"new\.csv")
def _predictions_over_the_rows(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("predict new.csv --model model -o new.csv")


@refused(AREA, r"model")
def _predictions_over_the_model(place: Place) -> object:
    copy_model(place.folder)
    place.keep("model/model.json")
    return place.comes("predict new.csv --model model -o model/model.json")


@refused(AREA, r"new\.csv|link|same")
def _predictions_over_the_rows_by_a_link(place: Place) -> object:
    copy_model(place.folder)
    os.symlink("new.csv", "link.csv")
    return place.comes("predict new.csv --model model -o link.csv")


@refused(AREA, r"new\.csv|link|same")
def _predictions_over_the_rows_by_a_hard_link(place: Place) -> object:
    copy_model(place.folder)
    os.link("new.csv", "link.csv")
    return place.comes("predict new.csv --model model -o link.csv")


@refused(AREA, r"onnx|model")
def _onnx_over_the_weights(place: Place) -> object:
    copy_model(place.folder)
    place.keep("model/model.safetensors")
    return place.comes("export model -o model/model.safetensors")


@refused(AREA, r"photos|not a model|empty|else")
def _a_model_over_other_peoples_files(place: Place) -> object:
    place.write("photos/diary.txt", "dear diary")
    return place.comes("fit names.csv --labels maybe --epochs 1 -o photos")


@refused(AREA, r"permission|cannot be written|not a folder")
def _a_model_where_nobody_may_write(place: Place) -> object:
    locked = place.folder / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    try:
        if os.access(locked, os.W_OK):  # root may write anywhere: a file in the way does as well
            place.write("locked/sub", "")
        return place.comes("fit names.csv --labels maybe --epochs 1 -o locked/sub/m")
    finally:
        locked.chmod(0o700)


@refused(AREA, r"names\.csv|priors")
def _questions_over_the_rows(place: Place) -> object:
    copy_model(place.folder)
    return place.comes(
        "predict new.csv --model model -o p.csv --ask-next priors.csv --asked priors.csv"
    )


@refused(AREA, r"p\.csv|same|differ")
def _predictions_and_questions_in_one_file(place: Place) -> object:
    copy_model(place.folder)
    return place.comes("predict new.csv --model model -o p.csv --ask-next p.csv")


@refused(AREA, r"priors\.csv")
def _a_model_over_its_priors(place: Place) -> object:
    return place.comes("fit names.csv --labels maybe --priors priors.csv --epochs 1 -o priors.csv")
