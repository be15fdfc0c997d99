"""A table with ten kinds of columns and a text, on the command line and by hand.

    python benchmarks/mixed_table.py

writes ``benchmarks/results/mixed_table.json``. A CSV is drawn whose labels depend on its columns:
numbers, with missing ones, in text with a currency, and skewed; flags in two spellings; categories,
few and many, and codes that begin with 0; a date and a time with its zone; a text; and an id and a
constant, which say nothing. ``comes fit``, ``evaluate``, ``predict`` and ``report`` get the file,
and ``--labels`` where there are any. The other side is a scikit-learn pipeline, written by hand for
this table by someone who knows every column, before the same classifier.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from measuring import significant, write
from scipy.special import expit
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from comes.estimator import CandidateClassifier
from comes.generation import independent
from comes.metrics import average_precision
from comes.tables import ColumnEncoder

N_TRAIN, N_TEST, N_LABELS, RATE, SEEDS = 3000, 2000, 6, 0.5, 3
N_MANY = 100_000  # rows that are encoded for the clock
TOPICS = [
    ["engine", "brake", "gear", "wheel", "oil", "tank", "axle", "clutch"],
    ["piano", "violin", "choir", "opera", "drum", "chord", "tune", "solo"],
    ["salt", "pepper", "flour", "butter", "oven", "recipe", "dough", "yeast"],
]
FILLERS = re.findall(r"\w+", "the a with of for and this that it was is were please thanks again")
NAMES = [f"topic{k}" for k in range(N_LABELS)]


def draw_table(n: int, seed: int) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Return a table of n rows, and the labels that its columns make likely, (n, 6)."""
    rng = np.random.default_rng(seed)
    size, income = rng.normal(size=n), rng.lognormal(10, 0.7, size=n)
    stars, topic = rng.integers(1, 6, n), rng.integers(0, 3, n)
    colour, is_new = rng.integers(0, 4, n), rng.random(n) < 0.4
    street, area = rng.zipf(1.6, n) % 300, rng.integers(0, 12, n)
    day, hour, agrees = rng.integers(0, 1000, n), rng.integers(0, 24 * 300, n), rng.random(n) < 0.5
    missing = rng.random((n, 3)) < 0.15
    start = pd.Timestamp("2023-01-01")
    words = [
        " ".join(rng.permutation([*rng.choice(TOPICS[t], 4), *rng.choice(FILLERS, 14)]))
        for t in topic
    ]
    frame = pd.DataFrame(
        {
            "ticket_id": [f"T{number:06d}" for number in rng.permutation(n)],
            "size": np.where(missing[:, 0], np.nan, size.round(3)),
            "income": [f"{value:,.2f} €" for value in income],
            "stars": stars,
            "is_new": is_new,
            "agrees": np.where(missing[:, 1], "", np.where(agrees, "yes", "no")),
            "colour": np.where(
                missing[:, 2], "", np.array(["red", "green", "blue", "dark grey"])[colour]
            ),
            "street": [f"Street {number}" for number in street],
            "area": [f"{7 * number:04d}" for number in area],
            "opened": (start + pd.to_timedelta(day, unit="D")).strftime("%d.%m.%Y"),
            "seen": (start + pd.to_timedelta(hour, unit="h")).strftime("%Y-%m-%dT%H:%M:%S+0100"),
            "body": words,
            "currency": "EUR",
        }
    )
    effects = np.stack(
        [
            3.0 * (topic == 0) + 1.0 * size - 1.5,
            3.0 * (topic == 1) + 1.0 * (colour == 1) - 2.0,
            2.5 * (topic == 2) + 1.5 * agrees * ~missing[:, 1] - 2.0,
            2.5 * (colour == 0) + 1.0 * (np.log(income) - 10) + 0.5 * is_new - 1.5,
            3.0 * np.sin(2 * np.pi * day / 365.25) + 1.0 * (hour % 24 > 17) - 1.0,
            2.5 * (area % 4 == 0) + 2.0 * (street == 1) + 0.5 * (stars - 3) - 1.5,
        ],
        axis=1,
    )
    return frame, np.asarray(rng.random((n, N_LABELS)) < expit(1.5 * effects))


def make_by_hand() -> ColumnTransformer:
    """Return what someone who knows the columns would write."""
    categories = OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist")
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    money, date, moment = (
        make_pipeline(FunctionTransformer(read), StandardScaler())
        for read in (_read_money, _read_date, _read_time)
    )
    return ColumnTransformer(
        [
            ("size", filled, ["size"]),
            ("income", money, ["income"]),
            ("stars", StandardScaler(), ["stars"]),
            ("is_new", FunctionTransformer(lambda cells: cells.astype(float)), ["is_new"]),
            ("words", categories, ["agrees", "colour", "street", "area"]),
            ("opened", date, ["opened"]),
            ("seen", moment, ["seen"]),
            ("body", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2), "body"),
        ],
        sparse_threshold=1.0,
    )


def _read_money(cells: pd.DataFrame) -> pd.DataFrame:
    return cells.replace(r"[,€ ]", "", regex=True).astype(float)


def _read_date(cells: pd.DataFrame) -> npt.NDArray[np.float64]:
    dates = pd.to_datetime(cells.iloc[:, 0], format="%d.%m.%Y")
    turn = 2 * np.pi * dates.dt.day_of_year / 365.25
    elapsed = (dates - pd.Timestamp("2023-01-01")).dt.days
    return np.stack([elapsed, np.sin(turn), np.cos(turn), dates.dt.day_of_week], axis=1)


def _read_time(cells: pd.DataFrame) -> npt.NDArray[np.float64]:
    times = pd.to_datetime(cells.iloc[:, 0], utc=True)
    turn = 2 * np.pi * times.dt.hour / 24
    return np.stack([times.dt.day_of_year, np.sin(turn), np.cos(turn)], axis=1)


def name_sets(marked: npt.NDArray[np.bool_]) -> list[str]:
    """Return cells of label names."""
    return [";".join(np.array(NAMES)[row]) or "(none)" for row in marked]


def run(*arguments: str) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "comes", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_commands(
    folder: Path, train: pd.DataFrame, test: pd.DataFrame, truth: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """Return what the commands say of a table with the labels as their one option."""
    paths = {name: str(folder / f"{name}.csv") for name in ("train", "test", "new", "predicted")}
    train.to_csv(paths["train"], index=False)
    test.to_csv(paths["test"], index=False)
    test = test.drop(columns="maybe")
    test[test.columns[::-1]].to_csv(paths["new"], index=False)  # in another order
    model = str(folder / "model")
    started = time.perf_counter()
    fitted = json.loads(run("fit", paths["train"], "--labels", "maybe", "-o", model, "--json"))
    seconds = time.perf_counter() - started
    run("evaluate", paths["test"], "--labels", "maybe", "-m", model)
    run("predict", paths["new"], "-m", model, "-o", paths["predicted"])
    page = folder / "page"
    run("report", paths["test"], "--labels", "maybe", "-m", model, "-o", str(page))
    predicted = pd.read_csv(paths["predicted"])
    assert predicted["item"].tolist() == test["ticket_id"].tolist()
    scores = predicted[[f"probability:{name}" for name in NAMES]].to_numpy()
    return {
        "by_command": significant(average_precision(scores, truth), 4),
        "columns": fitted["columns"],
        "fit_seconds": significant(seconds),
    }


def compare(seed: int) -> dict[str, Any]:
    """Return the average precision of the commands and of the pipeline by hand, for one draw."""
    train, relevant = draw_table(N_TRAIN, seed)
    test, truth = draw_table(N_TEST, 1000 + seed)
    candidates = independent(relevant, exclude_rate=RATE, seed=seed)
    said = independent(truth, exclude_rate=RATE, seed=1000 + seed)
    labelled = train.assign(maybe=name_sets(candidates)), test.assign(maybe=name_sets(said))
    with tempfile.TemporaryDirectory() as folder:
        by_command = run_commands(Path(folder), *labelled, truth)
    by_hand = make_pipeline(make_by_hand(), CandidateClassifier(random_state=0, verbose=-1))
    by_hand.fit(train, candidates)
    score = average_precision(by_hand.decision_function(test), truth)
    return {"seed": seed, "by_hand": significant(score, 4), **by_command}


def time_encoding() -> dict[str, Any]:
    """Return what it costs to encode many rows: CPU seconds, and memory beside the table."""
    frame, _ = draw_table(N_MANY, 0)
    started = time.process_time()
    encoder = ColumnEncoder().fit(frame)
    learned = time.process_time() - started
    started = time.process_time()
    encoder.transform(frame)
    encoded = time.process_time() - started
    tracemalloc.start()  # which slows it down
    matrix = encoder.transform(frame)
    _, peak = tracemalloc.get_traced_memory()
    stored = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {
        "rows": N_MANY,
        "features": matrix.shape[1],
        "fit_seconds": significant(learned),
        "transform_seconds": significant(encoded),
        "matrix_mb": significant(stored / 2**20),
        "peak_mb": significant(peak / 2**20),
    }


def main() -> None:
    """Compare on several draws, and write all numbers."""
    rows = []
    for seed in range(SEEDS):
        rows.append(compare(seed))
        print(rows[-1], flush=True)
    gaps = [row["by_hand"] - row["by_command"] for row in rows]
    result = {
        "rows": [N_TRAIN, N_TEST],
        "labels": N_LABELS,
        "exclude_rate": RATE,
        "draws": rows,
        "by_hand_minus_command": significant(float(np.mean(gaps)), 2),
        "largest_difference": significant(float(np.abs(gaps).max()), 2),
        "encoding": time_encoding(),
    }
    print(result["by_hand_minus_command"], result["encoding"])
    write("mixed_table", result)


if __name__ == "__main__":
    main()
