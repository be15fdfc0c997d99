"""The demo: support tickets with answers, to try commands on or to train on at once.

Every ticket has a few topics. Its text mentions most of them, and others that mislead. Of the pairs
of ticket and topic, people were asked about one in four.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import simulate_answers

ASKED_RATE = 0.25
N_TICKETS = 3000
SENTENCES = {
    "billing": [
        "The invoice shows an amount I do not recognise.",
        "My card was charged twice this month.",
        "Please send the receipt to our accounting.",
        "The price on the invoice is not the one we agreed on.",
    ],
    "refund": [
        "I would like my money back.",
        "Please refund the last payment.",
        "How long does it take until the amount is returned?",
        "I returned the device and still wait for the money.",
    ],
    "login": [
        "I cannot sign in any more.",
        "The password reset mail never arrives.",
        "It says that my account is locked.",
        "The code from my phone is not accepted.",
    ],
    "crash": [
        "The app closes as soon as I open it.",
        "It stops with an error and I lose my work.",
        "Since the update it freezes on the first page.",
        "A white screen appears and nothing helps.",
    ],
    "slow": [
        "Loading the list takes minutes.",
        "Everything is sluggish since last week.",
        "Search needs forever to answer.",
        "Uploading a small file takes half an hour.",
    ],
    "shipping": [
        "The parcel has not arrived.",
        "Tracking has not changed for a week.",
        "The box was damaged when it came.",
        "Can you send it to another address?",
    ],
}
SMALL_TALK = [
    "Hello, I hope you can help.",
    "I am a customer since the first version.",
    "Thanks in advance!",
    "This is urgent for us.",
    "I wrote last week and got no answer.",
    "The app, the account and the order are all in my name.",
    "Otherwise I am happy with the product.",
]
SHARES = (0.30, 0.18, 0.25, 0.28, 0.22, 0.20)  # how often a ticket has each topic
UNSAID = 0.1  # how often a ticket does not mention one of its topics
MISLEADING = 0.1  # how often it mentions a topic that it does not have


def make_tickets(n: int = N_TICKETS, seed: int = 0) -> tuple[pd.DataFrame, BoolMatrix]:
    """Return a table of n tickets with answers (columns ``is_...``), and the true topics."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, len(SENTENCES))) < SHARES
    relevant[np.arange(n), rng.integers(len(SENTENCES), size=n)] |= ~relevant.any(axis=1)
    topics = {topic: relevant[:, place] for place, topic in enumerate(SENTENCES)}
    about_app = topics["login"] | topics["crash"] | topics["slow"]
    in_app = rng.random(n) < np.where(about_app, 0.8, 0.3)
    amount = rng.lognormal(3 + topics["refund"] + topics["billing"], 0.8).round(2)
    columns = {
        "ticket_id": [f"T-{1000 + row}" for row in range(n)],
        "opened": pd.Timestamp("2026-01-05")
        + pd.to_timedelta(np.sort(rng.integers(0, 300, n)), "D"),
        "product": np.where(in_app, "app", rng.choice(["phone", "watch"], n)),
        "amount": np.where(rng.random(n) < 0.15, np.nan, amount),
        "body": [_write_body(row, rng) for row in relevant],
    }
    drawn = simulate_answers(relevant, asked_rate=ASKED_RATE, seed=seed)
    words = np.select(
        [drawn.excluded, drawn.confirmed, drawn.doubtful], ["no", "yes", "maybe"], default=""
    )
    answers = {f"is_{topic}": words[:, place] for place, topic in enumerate(SENTENCES)}
    return pd.DataFrame(columns | answers), relevant


def write_tickets(path: str | Path, n: int = N_TICKETS, seed: int = 0) -> dict[str, Any]:
    """Write the table of `make_tickets` as .csv, and return what it holds."""
    table, _ = make_tickets(n, seed)
    topics = table.filter(like="is_")
    with replacing_file(Path(path)) as file:
        table.to_csv(file, index=False)
    asked = int((topics != "").to_numpy().sum())
    return {
        "file": str(path),
        "tickets": n,
        "topics": ", ".join(topics.columns),
        "answers": f"{asked} of {topics.size} pairs of ticket and topic: yes, no or maybe",
    }


def _write_body(relevant: BoolMatrix, rng: np.random.Generator) -> str:
    """Return sentences about the topics of a ticket, others, and small talk, in any order."""
    spoken = rng.random(len(relevant)) < np.where(relevant, 1 - UNSAID, MISLEADING)
    about = [
        str(rng.choice(of)) for of, said in zip(SENTENCES.values(), spoken, strict=True) if said
    ]
    sentences = [*about, *rng.choice(SMALL_TALK, rng.integers(1, 4), replace=False).tolist()]
    return " ".join(rng.permutation(sentences).tolist())


def run_demo(n: int = N_TICKETS, seed: int = 0) -> list[dict[str, Any]]:
    """Train on answers, and on the candidates that are left of them; return metrics of each.

    A third of the tickets is held out. A topic is predicted if its probability is above a half.
    """
    from comes.estimator import CandidateClassifier
    from comes.metrics import evaluate

    table, relevant = make_tickets(n, seed)
    words = table.filter(like="is_").to_numpy()
    answers = Answers(no=words == "no", yes=words == "yes", maybe=words == "maybe")
    X, is_test = table.filter(regex="^(?!is_)"), np.arange(n) % 3 == 0
    rows = []
    for title, method, labels in (
        ("answers, likelihood", "likelihood", answers[~is_test]),
        ("candidates, likelihood", "likelihood", answers.candidates[~is_test]),
        ("candidates, BCE", "bce", answers.candidates[~is_test]),
    ):
        classifier = CandidateClassifier(method, n_networks=1, epochs=30, random_state=seed)
        with warnings.catch_warnings():  # BCE predicts nearly all: the table shows it
            warnings.filterwarnings("ignore", ".* are predicted as relevant", ComesWarning)
            classifier.fit(X[~is_test], labels)
        if classifier.history_.interrupted:
            raise KeyboardInterrupt  # a half-trained model would mislead
        metrics = evaluate(classifier.decision_function(X[is_test]), relevant[is_test])
        rows.append({"title": title, "metrics": metrics})
    return rows
