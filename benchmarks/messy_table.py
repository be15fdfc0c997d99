"""A table as people write it, against a person who cleans it and takes logistic regression.

    python benchmarks/messy_table.py

writes ``benchmarks/results/messy_table.json``. Listings of flats have dates such as 12-Oct-25,
areas with a unit, prices with a currency, incomes in thousands, a misspelt category, gaps and a
text. Of seven labels, two rare, four depend nearly linearly on phrases and columns; one on the
season, one on the price per area in each district, one on both of two things. A third of the pairs
was asked about, or half of the irrelevant labels was excluded.

``CandidateClassifier()`` gets the table as it is. The other side is six lines of cleaning, a
`ColumnTransformer` and a logistic regression for every label, with the best of five C, chosen on
the *test* rows for every metric; it is told the true exclude rate. A third row gives the regression
the features that comes makes.
"""

import time
import warnings
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from measuring import write
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from comes.answers import Answers
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.generation import independent, simulate_answers
from comes.metrics import average_precision, mean_average_precision
from comes.tables import ColumnEncoder

N_TRAIN, N_TEST, SEEDS = 1500, 2000, 3
ASKED, NO, YES, MISTAKES, EXCLUDED = 1 / 3, 0.8, 0.7, 0.02, 0.5
SHARPNESS = 1.6  # of all effects
CS = (0.1, 0.3, 1, 3, 10)
SHARES = {
    **{"needs_work": 0.25, "family": 0.3, "quiet": 0.25, "pets": 0.05},
    **{"holiday": 0.15, "overpriced": 0.15, "luxury": 0.04},
}
PHRASES = {
    "needs_work": ("needs modernisation", "original kitchen", "sold as seen", "old wiring"),
    "family": ("near a good school", "large play room", "three bedrooms", "bunk beds included"),
    "quiet": ("quiet side street", "no through traffic", "facing the courtyard", "peaceful block"),
    "pets": ("pets welcome", "fenced yard", "dog park next door"),
    "holiday": ("steps from the beach", "sea view", "surf school nearby"),
    "luxury": ("marble bathroom", "private lift", "concierge on site"),
    "": ("no sea view", "pets by agreement", "school of music", "old town", "private parking"),
}
NOISE = (
    "flat apartment home rooms bright sunny balcony kitchen bathroom floor building street close "
    "tram station shops parking cellar heating window view new renovated large small available "
    "now contact viewing please call agent owner rent sale lovely central well kept storage lift"
)
DISTRICTS = np.array(
    ["harbour", "oldtown", "hillside", "riverside", "northend", "southpark", "eastgate", "beach"]
)
LEVELS = np.array([5.2, 5.8, 6.0, 5.5, 4.4, 4.9, 4.7, 6.2])  # thousands for a square metre
HEATINGS = np.array(["gas", "oil", "district heating", "heat pump"])


def draw_listings(n: int, seed: int) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Return n listings as people wrote them, and the labels that they make likely, (n, 7)."""
    rng = np.random.default_rng(seed)
    day = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 730, n), "D"))
    district, heating = rng.integers(0, 8, n), rng.integers(0, 4, n)
    area, floor = rng.gamma(6, 12, n).round() + 15, rng.integers(0, 7, n)
    level = LEVELS[district] * rng.lognormal(0, 0.25, n)
    price, income = (1000 * level * area).round(-2), rng.lognormal(3.9, 0.4, n).round()
    built = (2020 - rng.gamma(2, 25, n)).round()
    says = {name: rng.random(n) < 0.22 for name in PHRASES}
    effects = {
        "needs_work": 3.0 * says["needs_work"] + 0.03 * (1970 - built) + 0.5 * (heating == 1),
        "family": 2.5 * says["family"] + 0.05 * area - 0.2 * floor,
        "quiet": 3.0 * says["quiet"] + 1.5 * np.isin(district, (2, 4)) + 0.15 * floor,
        "pets": 4.0 * says["pets"] - 0.3 * floor,
        "holiday": 2.0 * says["holiday"]
        + 3.0 * np.cos(2 * np.pi * (day.dt.day_of_year - 200) / 365.25)
        + 2.0 * np.isin(district, (0, 7)),
        "overpriced": 12.0 * (np.log(level / LEVELS[district])) - 0.02 * (income - 50),
        "luxury": 5.0 * (says["luxury"] & (level > 5.5)) + 1.0 * says["luxury"],
    }
    relevant = [_draw_share(rng, np.asarray(effects[name]), SHARES[name]) for name in SHARES]
    frame = pd.DataFrame(
        {
            "listing_id": [f"L{number:05d}" for number in rng.permutation(n)],
            "listed": day.dt.strftime("%d-%b-%y"),
            "area": [f"{value:.0f}{rng.choice([' m2', 'm2', ' m²'])}" for value in area],
            "price": [f"EUR {value:,.0f}" for value in price],
            "median_income": [f"{value:.0f}k" for value in income],
            "built": built,
            "floor": floor,
            "district": [_misspell(rng, name) for name in DISTRICTS[district]],
            "heating": [_misspell(rng, name) for name in HEATINGS[heating]],
            "description": [
                _describe(rng, {name: says[name][row] for name in says}) for row in range(n)
            ],
        }
    )
    for name, share in {"area": 0.05, "median_income": 0.1, "built": 0.15, "heating": 0.1}.items():
        frame[name] = frame[name].mask(rng.random(n) < share)
    return frame, np.stack(relevant, axis=1)


def _draw_share(
    rng: np.random.Generator, effect: npt.NDArray[np.float64], share: float
) -> npt.NDArray[np.bool_]:
    effect = SHARPNESS * effect
    shift = brentq(lambda at: expit(effect + at).mean() - share, -200, 200)
    return np.asarray(rng.random(len(effect)) < expit(effect + shift))


def _misspell(rng: np.random.Generator, word: str) -> str:
    """Return a word as it is, in another case, or, one time in twenty, without a letter."""
    if rng.random() < 0.05:
        place = rng.integers(1, len(word))
        word = word[:place] + word[place + 1 :]
    return str(rng.choice([word, word, word.title(), word.upper(), word + " "]))


def _describe(rng: np.random.Generator, says: dict[str, bool]) -> str:
    spoken = [str(rng.choice(PHRASES[name])) for name, is_said in says.items() if is_said]
    filler = [str(word) for word in rng.choice(NOISE.split(), rng.integers(5, 14))]
    return " ".join(rng.permutation(spoken + filler).tolist())


def clean(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table after six lines of cleaning."""
    numbers = table[["area", "price", "median_income"]].replace(r"m[2²]|[^\d.]", "", regex=True)
    numbers = pd.concat([numbers.apply(pd.to_numeric), table[["built", "floor"]]], axis=1)
    words = table[["district", "heating"]].apply(lambda cells: cells.str.strip().str.lower())
    day = pd.to_datetime(table["listed"], format="%d-%b-%y")
    dates = pd.DataFrame({"day": day.map(pd.Timestamp.toordinal), "month": day.dt.month_name()})
    parts = [numbers.fillna(numbers.median()), words.fillna("none"), dates, table["description"]]
    return cast("pd.DataFrame", pd.concat(parts, axis=1))


def make_by_hand() -> ColumnTransformer:
    """Return the features of the clean table."""
    return ColumnTransformer(
        [
            (
                "numbers",
                StandardScaler(),
                ["area", "price", "median_income", "built", "floor", "day"],
            ),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["district", "heating", "month"]),
            ("text", TfidfVectorizer(), "description"),
        ]
    )


def regress(X: Any, X_test: Any, answers: Answers, c: float) -> npt.NDArray[np.float64]:
    """Return probabilities of the test rows: a logistic regression per label on sure answers.

    Of candidates, it learns what is excluded, and divides by the rate, which it knows.
    """
    found = []
    for label in range(answers.shape[1]):
        model = LogisticRegression(C=c, max_iter=2000)
        if answers.kind == "answers":
            sure = answers.excluded[:, label] | answers.confirmed[:, label]
            model.fit(X[sure], answers.confirmed[sure, label])
            found.append(model.predict_proba(X_test)[:, 1])
        else:
            model.fit(X, answers.excluded[:, label])
            found.append(1 - model.predict_proba(X_test)[:, 1] / EXCLUDED)
    return np.stack(found, axis=1)


def judge(
    probability: npt.NDArray[np.float64],
    truth: npt.NDArray[np.bool_],
    share: npt.NDArray[np.float64],
) -> dict[str, float]:
    """Return how well labels are ranked, and found at two cuts: a half, and a share of the rows."""
    cuts = [np.quantile(p, 1 - s) for p, s in zip(probability.T, np.clip(share, 0, 1), strict=True)]
    f1, f1_at_share = (
        float(f1_score(truth, probability > cut, average="macro", zero_division=0))
        for cut in (0.5, cuts)
    )
    return {
        "mean_average_precision": mean_average_precision(probability, truth),
        "average_precision": average_precision(probability, truth),
        "macro_f1": f1,
        "macro_f1_at_share": f1_at_share,
    }


def choose_c(
    X: Any, X_test: Any, answers: Answers, truth: npt.NDArray[np.bool_]
) -> dict[str, float]:
    """Return the best of five C by each metric on the test rows, and what one training costs.

    The share is how often the sure answers say yes, or what exclusions and their rate leave.
    """
    found, started = [], time.process_time()
    no, yes = answers.excluded.sum(axis=0), answers.confirmed.sum(axis=0)
    share = yes / (yes + no) if answers.kind == "answers" else 1 - no / len(answers) / EXCLUDED
    for c in CS:
        probability = regress(X, X_test, answers, c)
        found.append(judge(probability, truth, share))
    seconds = (time.process_time() - started) / len(CS)
    return {name: max(one[name] for one in found) for name in found[0]} | {"seconds": seconds}


def fit_default(
    table: Any, test: Any, answers: Answers, truth: npt.NDArray[np.bool_]
) -> dict[str, float]:
    """Return what the default of comes makes of rows, and its cost."""
    started = time.process_time()
    model = CandidateClassifier(random_state=0, verbose=-1).fit(table, answers=answers)
    seconds = time.process_time() - started
    probability, predicted = model.predict_proba(test), model.predict(test)
    found = judge(probability, truth, model.class_prior_)
    found["macro_f1"] = float(f1_score(truth, predicted, average="macro", zero_division=0))
    return found | {"seconds": seconds}


def compare(seed: int) -> list[dict[str, Any]]:
    """Return what both sides make of one table, from answers and from candidates."""
    table, truth = draw_listings(N_TRAIN + N_TEST, seed)
    train, test = table[:N_TRAIN], table[N_TRAIN:].reset_index(drop=True)
    known, hidden = truth[:N_TRAIN], truth[N_TRAIN:]
    rates: dict[str, Any] = {"no_rate": NO, "yes_rate": YES, "mistake_rate": MISTAKES}
    candidates = independent(known, exclude_rate=EXCLUDED, seed=seed)
    encoder, by_hand = ColumnEncoder(), make_by_hand()
    encoded = encoder.fit_transform(train), encoder.transform(test)
    cleaned = by_hand.fit_transform(clean(train)), by_hand.transform(clean(test))
    cleaned = sparse.csr_array(cleaned[0]), sparse.csr_array(cleaned[1])
    rows = []
    for labels, answers in (
        ("answers", simulate_answers(known, asked_rate=ASKED, **rates, seed=seed)),
        ("candidates", Answers.from_candidates(candidates)),
    ):
        for learner, features, scores in (
            ("comes", "its own", fit_default(train, test, answers, hidden)),
            ("regression", "by hand", choose_c(*cleaned, answers, hidden)),
            ("regression", "of comes", choose_c(*encoded, answers, hidden)),
        ):
            rows.append({"labels": labels, "learner": learner, "features": features} | scores)
    return rows


def main() -> None:
    """Compare on several draws, and write the means and every draw."""
    warnings.simplefilter("ignore", ComesWarning)
    draws = pd.concat([pd.DataFrame(compare(seed)).assign(seed=seed) for seed in range(SEEDS)])
    draws = draws.round(4)
    means = draws.groupby(["labels", "learner", "features"], sort=False).mean().drop(columns="seed")
    print(means.to_string())
    write(
        "messy_table",
        {
            "rows": [N_TRAIN, N_TEST],
            "seeds": SEEDS,
            "means": means.round(4).reset_index().to_dict("records"),
            "draws": draws.to_dict("records"),
        },
    )


if __name__ == "__main__":
    main()
