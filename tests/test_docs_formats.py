"""The page of formats: what is read and written is on it, as it really is."""

import json
from pathlib import Path

import numpy as np

from comes import CandidateClassifier
from comes.datasets.formats import FORMATS
from comes.datasets.predictions import prediction_table, top_table
from comes.experiment import config
from comes.priors import ClassPriorEstimate, prior_table
from format_tables import MODEL_KEYS, TABLES, experiment_table, files_table, result_table

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "formats.md"
TEXT = PAGE.read_text(encoding="utf-8")
NOT_IN_THIS_MODEL = {"images", "columns"}  # of networks for images, and of other columns


def holds(command: str) -> str:
    """Return what the table says that a command writes."""
    (row,) = (row for row in files_table() if row[0] == f"`{command}`")
    return row[2]


def test_every_format_is_on_the_page_and_says_what_it_holds() -> None:
    for ending in FORMATS:
        found = FORMATS[ending]
        assert found.about and found.labels
        (row,) = (
            line for line in TEXT.splitlines() if f"`{ending}`" in line and found.about in line
        )
        assert row.endswith("| no |") == (not found.writers)
        assert all(f"`{name}`" in row for name in found.fields)


def test_every_writer_has_a_column() -> None:
    for ending in (name for name, found in FORMATS.items() if found.writers):
        heads = next(line for line in TEXT.splitlines() if line.startswith("| part |"))
        writers = FORMATS[ending].writers
        shown = next(name for name, found in FORMATS.items() if found is FORMATS[ending])
        for form in writers:
            assert f"`{shown} {form}`" in heads or (len(writers) == 1 and f"`{shown}`" in heads)


def test_every_table_of_formats_is_used() -> None:
    assert all(f"<!-- table: {name}" in TEXT for name in TABLES)


def test_the_keys_of_a_model_are_those_that_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(40, 3)), rng.random((40, 2)) < 0.6
    model = CandidateClassifier("bce", epochs=1, hidden=4, n_networks=1, random_state=0)
    model.fit(X, candidates).save(tmp_path / "m")
    written = json.loads((tmp_path / "m" / "model.json").read_text())
    assert set(written) == set(MODEL_KEYS) - NOT_IN_THIS_MODEL


def test_the_columns_of_tables_are_those_that_are_written() -> None:
    one = np.array([0.5])
    estimate = ClassPriorEstimate(one, one, one, one, one, ("ok",))
    for column in ("label", "class_prior", "lower", "upper"):
        assert f"`{column}`" in holds("comes priors -o FILE")
        assert column in prior_table(estimate, ["sky"])
    for name in prediction_table([[0.8]], [[1]], ["NAME"], scores=[[1.0]]):
        assert f"`{name}`" in holds("comes predict -o FILE")
    names = np.array(["sky"], dtype=object)
    for name in top_table(np.array([[0]]), [[0.8]], names, ["a"]):
        assert f"`{name}`" in holds("comes predict --top K")


def test_every_key_of_an_experiment_says_what_it_means() -> None:
    cases: list[str] = ["Experiment", *(part.__name__ for part in config.PARTS.values())]
    for name in cases:
        heads, *rows = experiment_table(name)
        assert f"<!-- table: experiment-keys {name} -->" in TEXT
        assert [row[0] for row in rows] == [
            f"`{key}`" for key in getattr(config, name).__pydantic_fields__
        ]
        assert all(row[1] and row[-1] for row in rows), heads


def test_every_key_of_a_result_says_what_it_means() -> None:
    for name in ("Result", "RepeatResult"):
        assert all(row[-1] for row in result_table(name))
