"""A table as people write it, and the same table cleaned by hand.

    python benchmarks/messy_table.py

writes ``benchmarks/results/messy_table.json``. Flats are listed with dates in several forms, areas
with a unit, prices with a currency and thousands, incomes with k and M, shares with a decimal
comma, categories that differ in case and blanks, and a text; labels depend on what is meant. The
classifier gets the table as it is, the table that a person cleaned with pandas, and the features of
a pipeline that this person wrote for the clean one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from measuring import significant, write
from scipy.special import expit
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from comes.estimator import CandidateClassifier
from comes.generation import independent
from comes.metrics import average_precision

N_TRAIN, N_TEST, RATE, SEEDS = 3000, 2000, 0.5, 3
HEATINGS = np.array(["gas", "oil", "wood", "heat pump"])
CITIES = np.array(
    [
        f"{end} {start}"
        for start in ("Hill", "Bay", "Field")
        for end in ("North", "South", "New", "Old")
    ]
)
NOTES = "quiet sunny lift garden noisy dark cellar balcony train school park shop"
WORDS = np.array(NOTES.split())


def draw_flats(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, npt.NDArray[np.bool_]]:
    """Return the table as people wrote it, as it is meant, and the labels it makes likely."""
    rng = np.random.default_rng(seed)
    day = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"))
    moment = day + pd.to_timedelta(rng.integers(0, 24 * 60, n), unit="min")
    area, price = rng.gamma(6, 12, n).round(1), rng.lognormal(12, 0.5, n).round()
    income, share = rng.lognormal(11, 0.8, n).round(-3), rng.uniform(0, 12, n).round(1)
    heating, city = rng.integers(0, 4, n), rng.integers(0, len(CITIES), n)
    is_new, words = rng.random(n) < 0.4, rng.integers(0, len(WORDS), (n, 5))
    clean = pd.DataFrame(
        {
            "listed": day,
            "seen": moment.dt.floor("min"),
            "area": area,
            "price": price,
            "income": income,
            "share": share,
            "heating": HEATINGS[heating],
            "city": CITIES[city],
            "is_new": is_new,
            "note": [" ".join(WORDS[row]) for row in words],
        }
    )
    messy = clean.assign(
        listed=_mix(rng, [day.dt.strftime("%d-%b-%y")] * 3 + [day.dt.strftime("%Y-%m-%d")]),
        seen=moment.dt.strftime("%m/%d/%Y %I:%M %p"),
        area=_mix(rng, [clean["area"].map(f"{{}}{unit}".format) for unit in (" m2", " m²", "m2")]),
        price=clean["price"].map("EUR {:,.0f}".format),
        income=clean["income"].map(_write_short),
        share=clean["share"].map(lambda value: f"{value} %".replace(".", ",")),
        heating=_misspell(rng, clean["heating"]),
        city=_misspell(rng, clean["city"]),
        is_new=_misspell(rng, clean["is_new"].map({True: "yes", False: "no"})),
    )
    effects = np.stack(
        [
            3.0 * np.sin(2 * np.pi * day.dt.day_of_year / 365.25) - 0.5,
            1.5 * (area - 70) / 30 + 1.5 * (heating == 0) - 1.0,
            2.0 * (np.log(price) - 12) / 0.5 + 1.0 * is_new - 0.5,
            1.5 * (np.log(income) - 11) + 2.5 * (heating == 3) - 1.5,
            0.6 * (share - 6) + 1.5 * (city % 4 == 0) - 0.5,
            3.0 * (words < 2).any(axis=1) + 1.0 * (moment.dt.hour > 17) - 2.0,
        ],
        axis=1,
    )
    return messy, clean, np.asarray(rng.random(effects.shape) < expit(1.5 * effects))


def _mix(rng: np.random.Generator, spelled: list[Any]) -> npt.NDArray[Any]:
    """Return for every row one of several spellings."""
    return np.choose(
        rng.integers(0, len(spelled), len(spelled[0])), [np.array(s, object) for s in spelled]
    )


def _misspell(rng: np.random.Generator, words: Any) -> npt.NDArray[Any]:
    return _mix(
        rng,
        [words, words, words.str.upper(), words.str.title() + " ", words.str.replace(" ", "  ")],
    )


def _write_short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 2e3 else f"{value:g}"


def make_by_hand() -> ColumnTransformer:
    """Return what someone who knows the clean table would write."""
    logs = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
    days = make_pipeline(FunctionTransformer(_read_days), StandardScaler())
    return ColumnTransformer(
        [
            ("days", days, ["listed", "seen"]),
            ("logs", logs, ["price", "income"]),
            ("numbers", StandardScaler(), ["area", "share"]),
            ("flags", FunctionTransformer(lambda cells: cells.astype(float)), ["is_new"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["heating", "city"]),
            ("note", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2), "note"),
        ],
        sparse_threshold=1.0,
    )


def _read_days(cells: pd.DataFrame) -> npt.NDArray[np.float64]:
    found = []
    for name in cells.columns:
        of = cells[name].dt
        for turn in (of.day_of_year / 365.25, of.hour / 24):
            found += [np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)]
        found.append((cells[name] - pd.Timestamp("2024-01-01")).dt.days)
    return np.stack(found, axis=1)


def compare(seed: int) -> dict[str, Any]:
    """Return the average precision of each of the three, for one draw."""
    messy, clean, relevant = draw_flats(N_TRAIN, seed)
    messy_test, clean_test, truth = draw_flats(N_TEST, 1000 + seed)
    candidates = independent(relevant, exclude_rate=RATE, seed=seed)
    result: dict[str, Any] = {"seed": seed}
    for name, train, test in (
        ("as_written", messy, messy_test),
        ("cleaned", clean, clean_test),
        ("by_hand", clean, clean_test),
    ):
        model: Any = CandidateClassifier(random_state=0, verbose=-1)
        if name == "by_hand":
            model = make_pipeline(make_by_hand(), model)
        model.fit(train, candidates)
        result[name] = significant(average_precision(model.decision_function(test), truth), 4)
        if name == "as_written":
            result["columns"] = {c.name: c.kind for c in model.encoder_.columns_}
    return result


def main() -> None:
    """Compare on several draws, and write all numbers."""
    rows = []
    for seed in range(SEEDS):
        rows.append(compare(seed))
        print(rows[-1], flush=True)
    names = ("as_written", "cleaned", "by_hand")
    means = {name: significant(float(np.mean([row[name] for row in rows])), 4) for name in names}
    write("messy_table", {"rows": [N_TRAIN, N_TEST], "exclude_rate": RATE, "draws": rows, **means})


if __name__ == "__main__":
    main()
