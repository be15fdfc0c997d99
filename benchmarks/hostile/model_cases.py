"""Models on disk: edited, rotten, cut short, somebody else's, of another version."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.numpy import load_file, save_file

from comes import CandidateClassifier, load_model
from hostile.casework import Place, handled, refused, refused_commands
from hostile.materials import (
    LABELS,
    candidates,
    copy_model,
    features,
    fitted,
    frame,
    small,
    text_of,
)

AREA = "models"
PREDICT = "predict new.csv --model model -o p.csv"


def _edit(place: Place, change: Callable[[dict[str, Any]], object]) -> str:
    """Change the json of a model, and predict with it."""
    path = copy_model(place.folder) / "model.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    return place.comes(PREDICT)


def _spoil(place: Place, change: Callable[[bytes], bytes]) -> str:
    """Change the weights of a model, and predict with it."""
    path = copy_model(place.folder) / "model.safetensors"
    path.write_bytes(change(path.read_bytes()))
    return place.comes(PREDICT)


def _find(values: Any, key: str) -> list[dict[str, Any]]:
    """Return the parts of json that have a key."""
    parts = (
        values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    )
    found = [part for child in parts for part in _find(child, key)]
    return [*found, values] if isinstance(values, dict) and key in values else found


def _set(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        parts = _find(values, key)
        assert parts, f"model.json has no {key}"
        for part in parts:
            part[key] = value(part[key]) if callable(value) else value

    return change


@refused(AREA, r"checksum|changed|damaged|bit")
def _a_bit_that_flipped_in_the_weights(place: Place) -> object:
    return _spoil(place, lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:])


@refused(AREA, r"cut|damaged|safetensors|checksum|read")
def _weights_that_were_cut(place: Place) -> object:
    return _spoil(place, lambda b: b[: len(b) // 2])


@refused(AREA, r"empty|safetensors|checksum|read")
def _empty_weights(place: Place) -> object:
    return _spoil(place, lambda b: b"")


@refused(AREA, r"safetensors|checksum|read")
def _weights_of_a_page_of_html(place: Place) -> object:
    return _spoil(place, lambda b: b"<!doctype html><title>404</title>")


@refused(AREA, r"model\.safetensors|weights")
def _no_weights(place: Place) -> object:
    (copy_model(place.folder) / "model.safetensors").unlink()
    return place.comes(PREDICT)


@refused(AREA, r"model\.json")
def _no_json(place: Place) -> object:
    (copy_model(place.folder) / "model.json").unlink()
    return place.comes(PREDICT)


@refused(AREA, r"model\.json.*json|json")
def _json_that_was_cut(place: Place) -> object:
    path = copy_model(place.folder) / "model.json"
    path.write_text(path.read_text()[:100])
    return place.comes(PREDICT)


@refused(AREA, r"model\.json|not a model")
def _json_of_something_else(place: Place) -> object:
    (copy_model(place.folder) / "model.json").write_text('["a", "list"]')
    return place.comes(PREDICT)


@refused(AREA, r"order|changed|edited|checksum")
def _features_in_another_order(place: Place) -> object:
    return _edit(place, _set("feature_names", lambda names: names[::-1]))


@refused(AREA, r"changed|edited|label|checksum")
def _a_label_less(place: Place) -> object:
    return _edit(place, _set("label_names", lambda names: names[:-1]))


@refused(AREA, r"changed|edited|checksum")
def _labels_that_changed_places(place: Place) -> object:
    return _edit(place, _set("label_names", lambda names: names[::-1]))


@refused(AREA, r"version|later|newer|update|format")
def _a_version_of_the_future(place: Place) -> object:
    path = copy_model(place.folder) / "model.json"
    found = json.loads(path.read_text())
    key = next(k for k in ("format", "format_version", "version", "comes") if k in found)
    now = found[key]
    found[key] = now + 1000 if isinstance(now, int) else "999.0"
    path.write_text(json.dumps(found))
    return place.comes(PREDICT)


@refused(AREA, r"method|comes-xl|changed")
def _a_method_that_does_not_exist(place: Place) -> object:
    return _edit(place, _set("method", "comes-xl"))


@refused(AREA, r"hidden|changed|shape|weights|fit")
def _another_number_of_hidden_units(place: Place) -> object:
    return _edit(place, _set("hidden", 9))


@refused(AREA, r"setting|parameter|colour|changed|unknown")
def _a_setting_that_nobody_knows(place: Place) -> object:
    return _edit(place, lambda values: _find(values, "hidden")[0].update(colour="red"))


@refused(AREA, r"weights|shape|features|labels|checksum|fit")
def _weights_of_another_model(place: Place) -> object:
    path = copy_model(place.folder)
    other = small(random_state=1).fit(features()[:, :2], np.arange(120).reshape(60, 2) % 3 > 0)
    other.save("other")
    shutil.copy("other/model.safetensors", path / "model.safetensors")
    return place.comes(PREDICT)


@refused(AREA, r"finite|nan|damaged")
def _weights_that_are_no_numbers(place: Place) -> object:
    path = copy_model(place.folder) / "model.safetensors"
    weights = load_file(path)
    save_file({k: np.full_like(v, np.nan) for k, v in weights.items()}, path)
    return place.comes(PREDICT)


@refused(AREA, r"model\.json|not a model|comes")
def _a_folder_of_another_library(place: Place) -> object:
    place.write("model/config.json", '{"architectures": ["BertModel"]}')
    save_file({"w": np.zeros(3)}, "model/model.safetensors")
    return place.comes(PREDICT)


@refused(AREA, r"folder|model")
def _a_pickle_of_torch(place: Place) -> object:
    torch.save({"w": torch.zeros(3)}, "model.pt")
    return place.comes("predict new.csv --model model.pt -o p.csv")


@handled(AREA)
def _a_model_that_was_moved(place: Place) -> object:
    copy_model(place.folder, "neues Modell 🌊")
    found = CandidateClassifier.load("neues Modell 🌊").predict_proba(frame())
    return np.array_equal(found, fitted().predict_proba(frame()))


@refused(AREA, r"model=|own")
def _a_network_of_ones_own_without_it(_: Place) -> object:
    own = small(
        model=lambda d, q: torch.nn.Linear(d, q), n_networks=None, hidden=500, random_state=0
    )
    own.fit(features(), np.arange(240).reshape(60, 4) % 3 > 0).save("model")
    return load_model("model")


@refused(AREA, r"not fitted|fit")
def _a_model_that_was_never_fitted(_: Place) -> object:
    return small().save("model")


@handled(AREA)
def _a_rest_of_an_interrupted_write(place: Place) -> object:
    # A folder that a killed writer left beside a model does no harm.
    copy_model(place.folder)
    (Path(place.folder) / ".model.tmp").mkdir()
    place.comes(PREDICT)
    return bool(re.match(r"item|,?predicted", Path("p.csv").read_text()))


refused_commands(
    AREA,
    {
        "a model that is not there": ("predict new.csv --model nowhere -o p.csv", r"nowhere"),
        "a file in place of a model": (
            "predict new.csv --model new.csv -o p.csv",
            r"new\.csv|folder",
        ),
        "a model that is the working folder": (
            "predict new.csv --model . -o p.csv",
            r"model\.json|model",
        ),
    },
)


@handled(AREA)
def _warnings_about_labels_name_them(place: Place) -> object:
    everywhere = pd.DataFrame(candidates(), columns=LABELS).assign(sun=True)
    small(method="bce", random_state=0).fit(frame(), everywhere).save("model")
    place.write("d.csv", text_of(frame(**{f"has_{n}": everywhere[n].astype(int) for n in LABELS})))
    shown = place.comes("evaluate d.csv --labels 'has_*' --model model")
    return "sun" in shown and not re.search(r"label '?\d", shown)
