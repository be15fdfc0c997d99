"""A first model from a table of your own.

You have a CSV with numbers, categories, dates and texts, and a column that says which labels are
still possible for each row. You will train a model on it, predict new rows, and save the model.

The table here is a help desk's. Whoever opens a ticket crosses out the topics that it is surely not
about, as far as a glance at it tells; what is left are the *candidates*. All true topics are among
them, and wrong ones too.
"""

# %%
# ## The table
#
# Yours comes from a file. This one is drawn, so that the true topics are known in the end: every
# topic has its words, and a glance crosses out half of the topics that do not apply.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp(prefix="comes-"))
rng = np.random.default_rng(0)
words = {
    "account": ["password", "login", "email", "locked", "profile"],
    "billing": ["invoice", "charged", "twice", "refund", "card"],
    "damage": ["broken", "scratched", "cracked", "screen", "dented"],
    "delivery": ["parcel", "courier", "late", "tracking", "address"],
    "returns": ["return", "refund", "label", "exchange", "size"],
}
small_talk = ["hello", "please", "help", "today", "again", "since", "thanks", "my", "it"]
topics, n = list(words), 1000
relevant = rng.random((n, 5)) < [0.15, 0.3, 0.2, 0.35, 0.25]


def write_ticket(about):
    """Return a text with two words of each topic, among others."""
    said = [word for topic in about for word in rng.choice(words[topic], 2)]
    return " ".join(rng.permutation([*said, *rng.choice(small_talk, 8)]))


about = [np.array(topics)[row] for row in relevant]
possible = relevant | (rng.random(relevant.shape) < 0.5)
tickets = pd.DataFrame(
    {
        "ticket_id": [f"T{number:04}" for number in range(n)],
        "opened": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
        "product": np.where(relevant[:, 2], rng.choice(["phone", "lamp"], n), "book"),
        "value": rng.gamma(2, 30, n).round(2),
        "message": [write_ticket(topics_of_row) for topics_of_row in about],
        "possible": [";".join(np.array(topics)[row]) or "(none)" for row in possible],
    }
)
tickets[:800].to_csv(folder / "tickets.csv", index=False)
print(tickets[["product", "value", "message", "possible"]].head(3).to_string(max_colwidth=38))

# %%
# ## What `comes` makes of it
#
# `labels=` names the column with the candidates; every other column is a feature. Nothing has to be
# scaled, encoded or filled in: `comes` looks at each column and says what it takes it for. An id is
# left out, because it would be learned by heart.
from comes.datasets import open_dataset
from comes.tables import describe_columns

data = open_dataset(folder / "tickets.csv", labels=["possible"])
print(data)
for column in describe_columns(data.X):
    print(f"{column.name}: {column.kind}; {column.becomes}")

# %%
# ## Train
#
# The default method is the likelihood of what was said. It knows that a candidate is only *still
# possible*: it estimates how often a wrong topic is crossed out, and from that how often each topic
# is right. Nobody has to tell it. 800 rows are few, so it may take more epochs than by default; a
# fit that stops too early warns of it.
from comes import CandidateClassifier

model = CandidateClassifier(epochs=60, n_networks=1, random_state=0)
model.set_output(transform="pandas").fit(data.X, data.answers)
print("crossed out, if wrong:", model.no_rate_.round(2))

# %%
# Hatched is what was crossed out. The diamond is the estimate of how often the topic is right: all
# that is open to the right of it are candidates that are wrong.
from comes.report import plot_answers, save_plot

axes = plot_answers(data.answers, model)
save_plot(axes, folder / "what-was-said-and-estimated.svg")

# %%
# ## Predict
#
# New tickets have no candidates. Columns are found by name, and an extra one is ignored.
new = tickets[800:].drop(columns="possible")
probabilities = model.predict_proba(new)
print(*new["message"].head(3), sep="\n")
print(probabilities.head(3).round(2).to_string())

# %%
# This table was drawn, so the truth is at hand. `score` is the average precision: 1 if every ticket
# has its true topics before all others. An order by the estimated frequencies alone, the same for
# every ticket, shows how much of that is learned from the tickets.
from comes.metrics import average_precision

truth = relevant[800:]
by_frequency = np.tile(model.class_prior_, (len(truth), 1))
print(f"average precision: {model.score(new, truth):.3f}")
print(f"by frequency only: {average_precision(by_frequency, truth):.3f}")

# %%
# ## Keep it
#
# A saved model is a folder of json and safetensors, with the encoding of the columns. The commands
# `comes fit tickets.csv --labels possible -o model` and `comes predict new.csv --model model -o
# predictions.csv` do all of this from a terminal.
model.save(folder / "model")
again = CandidateClassifier.load(folder / "model")
print("same predictions:", again.predict(new).equals(model.predict(new)))
