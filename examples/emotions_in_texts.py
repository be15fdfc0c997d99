"""Emotions in comments: texts as they are.

You have short texts and many labels, most of them rare. You will train on texts without preparing
them, with half of the pairs of text and label asked about, read which words speak for a label, and
learn which labels have too few answers.
"""

# %%
# ## GoEmotions
#
# 28 emotions in comments from Reddit. The file is read from `$COMES_DATA`; `comes datasets` says
# where it is published. To keep this page quick, it takes the ten most frequent emotions and 3000
# comments. Which are frequent is the only thing that it takes from the true labels.
import sys
import tempfile
from pathlib import Path

import numpy as np

from comes import Answers, CandidateClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.generation import simulate_answers

folder = Path(tempfile.mkdtemp(prefix="comes-"))
try:
    train, test = open_dataset("GoEmotions:train"), open_dataset("GoEmotions:test")
except ComesError as missing:
    sys.exit(f"This example needs GoEmotions; set COMES_DATA to the folder that has it: {missing}")
frequent = np.sort(np.argsort(-train.relevant.mean(axis=0))[:10])
emotions = [train.label_names[k] for k in frequent]
train, test = train.take(range(3000)), test.take(range(1500))
relevant, truth = train.relevant[:, frequent], test.relevant[:, frequent]
print(*emotions, sep=", ")
print(f"{relevant.sum(axis=1).mean():.2f} of them in a comment")

# %%
# ## Answers
#
# Simulated people are asked about half of the pairs, and are sure four times in five.
drawn = simulate_answers(relevant, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=0)
answers = Answers(
    no=drawn.excluded, yes=drawn.confirmed, maybe=drawn.doubtful, label_names=emotions
)
print(answers)

# %%
# ## Train
#
# A column of texts becomes TF-IDF of words and pairs of words, 2000 at most, and stays sparse. With
# `ColumnEncoder(text="wordllama")` it becomes an embedding ([texts.md](../guide/texts.md)). A
# linear model is quick and can be read. The rates are known here, as from a pilot in which the
# truth was known; otherwise they are estimated, which takes longer than the training. Most comments
# have one emotion or none, so probabilities seldom reach one half: labels are cut to be predicted
# as often as their class prior says.
from comes.metrics import average_precision
from comes.tables import ColumnEncoder

model = CandidateClassifier(
    model="linear",
    encoder=ColumnEncoder(kinds={"text": "text"}),
    optimizer="adam",
    learning_rate=0.01,
    weight_decay=0.0,
    epochs=15,
    rates={"no": 0.8, "yes": 0.8},
    threshold="prior",
    random_state=0,
)
model.fit(train.X, answers)
by_frequency = np.tile(model.class_prior_, (len(truth), 1))
print(f"average precision: {model.score(test.X, truth):.3f}")
print(f"by frequency only: {average_precision(by_frequency, truth):.3f}")

# %%
# ## What it learned
#
# The words with the largest weights. Where they are not about the emotion, the label has too few
# answers to learn from.
terms = model.encoder_.get_feature_names_out()
weights = model.module_.weight.detach().numpy()
for k in np.argsort(-model.class_prior_):
    most = [terms[term].removeprefix("text: ") for term in np.argsort(-weights[:, k])[:4]]
    print(f"{emotions[k]:15} {int(answers.confirmed[:, k].sum()):4} yes   {', '.join(most)}")

# %%
# ## Which labels it can be trusted with
#
# Answers about the test comments, drawn as for training, judge the model. The AUC of a label is
# counted among rows with a "yes" and rows with a "no", so it needs no class prior. Labels with few
# "yes" have wide intervals or none: ask more about those.
from comes.report import plot_quality, save_plot
from comes.selection import estimate_metrics

again = simulate_answers(truth, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=1)
said = Answers(no=again.excluded, yes=again.confirmed, maybe=again.doubtful, label_names=emotions)
scores = model.decision_function(test.X)
found = estimate_metrics(
    scores, said, model.class_prior_, class_prior_error=model.class_prior_error_
)
axes = plot_quality(found, metric="auc", label_names=emotions)
save_plot(axes, folder / "auc-of-every-emotion.svg")
print("macro AUC:", found["macro_auc"])

# %%
# ## Predict
#
# New texts come as they are, in a table with the same column. `predict_top` gives the k surest
# labels of each, also where there are 100,000 labels and a matrix of all would not fit.
import pandas as pd

new = pd.DataFrame({"text": ["Thank you so much, this helped!", "lol, that is hilarious", "Why?"]})
top = model.predict_top(new, k=2)
for text, labels, how_sure in zip(new["text"], top.labels, top.probabilities, strict=True):
    best = [f"{emotions[k]} {p:.2f}" for k, p in zip(labels, how_sure, strict=True)]
    print(f"{text} {', '.join(best)}")
