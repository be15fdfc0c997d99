"""Predictions in files: what was written is read again, whatever labels and items are called."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.datasets import open_dataset
from comes.datasets.predictions import prediction_table, write_prediction_table
from comes.datasets.table import read_table
from comes.workflows.predict import predict_items
from refusals import refused

RNG = np.random.default_rng(0)
CHANCES = RNG.random((7, 3))
CHANCES[2] = 0.1  # nothing is predicted
PLAIN, ODD = ["sky", "the sea", "NA"], ["a;b", "[c]\u2028", " d"]
ENDINGS = ("csv", "tsv", "csv.gz", "parquet", "xlsx")


def test_files_hold_predictions_whatever_labels_and_items_are_called(tmp_path: Path) -> None:
    items, numbers = [f"00{k}" for k in range(7)], np.hstack([CHANCES, CHANCES - 0.5])
    for names, split in ((PLAIN, split_names), (ODD, json.loads)):
        sets = [list(np.array(names)[row > 0.5]) for row in CHANCES]
        table = prediction_table(CHANCES, CHANCES > 0.5, names, items, scores=CHANCES - 0.5)
        for ending in ENDINGS:
            path = tmp_path / f"predictions.{ending}"
            write_prediction_table(table, path)
            found = read_table(path, ["item", "predicted"])
            assert found["item"].tolist() == items
            assert [split(cell) for cell in found["predicted"]] == sets
            np.testing.assert_allclose(found.iloc[:, 2:], numbers, atol=1e-6)
            assert ending == "xlsx" or list(found.columns) == list(table.columns)
        write_prediction_table(table, tmp_path / "predictions.jsonl")
        lines = (tmp_path / "predictions.jsonl").read_text(encoding="utf-8").strip().split("\n")
        rows = zip(lines, items, sets, numbers.round(6).tolist(), strict=True)
        for line, item, labels, values in rows:
            assert json.loads(line) == {
                "item": item,
                "predicted": labels,
                "probability": dict(zip(names, values[:3], strict=True)),
                "score": pytest.approx(dict(zip(names, values[3:], strict=True)), abs=1e-6),
            }


def split_names(cell: str) -> list[str]:
    return [] if cell == "(none)" else cell.split(";")


def test_a_table_of_predictions_is_a_data_set_without_features(tmp_path: Path) -> None:
    for ending in ENDINGS:
        path = tmp_path / f"predictions.{ending}"
        table = prediction_table(CHANCES, CHANCES > 0.5, PLAIN, scores=CHANCES)
        write_prediction_table(table, path)
        found = open_dataset(path, relevant=["predicted"], label_names=PLAIN)
        assert found.X is None and found.items == [str(k) for k in range(7)]
        np.testing.assert_array_equal(found.known_relevant(), CHANCES > 0.5)


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
    with refused(r"none.csv does not exist"):
        predict_items(model, tmp_path / "none.csv", item="photo")
