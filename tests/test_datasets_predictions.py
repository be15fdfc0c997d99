"""Predictions in files: what was written is read again, whatever labels and items are called."""

from pathlib import Path

import numpy as np
import pandas as pd

from comes import CandidateClassifier
from comes.datasets import open_dataset, read_predictions
from comes.datasets.predictions import prediction_table, write_prediction_table
from comes.jobs import predict_items
from refusals import refused

RNG = np.random.default_rng(0)
CHANCES = RNG.random((7, 3))
CHANCES[2] = 0.1  # nothing is predicted
PLAIN, ODD = ["sky", "the sea", "NA"], ["a;b", "[c]\u2028", " d"]
ENDINGS = ("csv", "tsv", "csv.gz", "parquet", "xlsx", "jsonl")


def test_files_of_predictions_are_read_as_they_were(tmp_path: Path) -> None:
    for names in (PLAIN, ODD):
        for ending in ENDINGS:
            names = [name.strip() for name in names] if ending == "xlsx" else names
            items = [f"00{k}" for k in range(7)]
            path = tmp_path / f"predictions.{ending}"
            table = prediction_table(CHANCES, CHANCES > 0.5, names, items, scores=CHANCES - 0.5)
            write_prediction_table(table, path)
            found = read_predictions(path)
            assert found.items == items and found.label_names == names
            np.testing.assert_array_equal(found.predictions, CHANCES > 0.5)
            np.testing.assert_allclose(found.probabilities, CHANCES, atol=1e-6)


def test_a_table_of_predictions_is_a_data_set_without_features(tmp_path: Path) -> None:
    for ending in ENDINGS[:-1]:
        path = tmp_path / f"predictions.{ending}"
        table = prediction_table(CHANCES, CHANCES > 0.5, PLAIN, scores=CHANCES)
        write_prediction_table(table, path)
        found = open_dataset(path, relevant=["predicted"], label_names=PLAIN)
        assert found.X is None and found.items == [str(k) for k in range(7)]
        np.testing.assert_array_equal(found.known_relevant(), CHANCES > 0.5)


def test_lines_of_json_that_are_no_predictions_say_so(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    with refused("predictions.jsonl cannot be read as jsonl: .*No such file"):
        read_predictions(path)
    for text, message in (
        ("no json", "cannot be read as jsonl: Expecting value"),
        ("[1, 2]", "cannot be read as jsonl: line 1 is not an object"),
        ('{"item": "a"}', "should have the columns item, predicted and .*; got item"),
        ("", "got none. Write it with 'comes predict'"),
        ('{"item": "", "predicted": [], "probability": {"sky": 0.1}}', "empty at row 1"),
    ):
        path.write_text(text)
        with refused(message):
            read_predictions(path)


def test_items_come_from_the_column_that_is_named(tmp_path: Path) -> None:
    table = pd.DataFrame({"red": RNG.normal(size=6), "blue": RNG.normal(size=6)})
    model = CandidateClassifier("bce", epochs=1, hidden=4).fit(table, table > 0)
    table["photo"] = [f"0{k}.jpg" for k in range(6)]
    table.to_csv(tmp_path / "new.csv", index=False)
    named = predict_items(model, tmp_path / "new.csv", item="photo")
    assert named["item"].tolist() == table["photo"].tolist()
    with refused(r"no column 'photos'.*Did you mean 'photo'"):
        predict_items(model, tmp_path / "new.csv", item="photos")
    np.savez(tmp_path / "new.npz", X=table[["red", "blue"]].to_numpy())
    with refused("names a column of a table"):
        predict_items(model, tmp_path / "new.npz", item="photo")
