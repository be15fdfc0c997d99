"""Toxic or not tested: the assays of Tox21.

Real data with three states: an assay found a molecule active, found it inactive, or was never run
on it. You will see why "not tested" must not become "no" or "maybe", train on what was tested, and
judge every assay by its own tests.
"""

# %%
# ## The molecules
#
# Tox21 is read from `$COMES_DATA`, and every molecule becomes a Morgan fingerprint of 1024 bits,
# which needs rdkit (`pip install 'comes[chem]'`). "Yes" is active, "no" is inactive.
import sys
import tempfile
import warnings
from pathlib import Path

from sklearn.model_selection import train_test_split

from comes import Answers, CandidateClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError, ComesWarning
from comes.report import plot_answers, plot_quality, save_plot

folder = Path(tempfile.mkdtemp(prefix="comes-"))
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)  # of 8 molecules that rdkit cannot read
        tox21 = open_dataset("Tox21")
except ComesError as missing:
    sys.exit(f"This example needs rdkit, and Tox21 in the folder that COMES_DATA names: {missing}")
print(tox21)

# %%
# A sixth of the pairs was not tested, and active ones are rare: about one in fourteen tests.
axes = plot_answers(tox21.answers)
save_plot(axes, folder / "what-was-tested.svg")

# %%
# ## Three readings of a gap
#
# A table of labels has to say something where nothing was measured. Filling gaps with 0 claims that
# the molecule is harmless; keeping only the "no" makes candidates of actives and gaps alike.
# `Answers` keep the three apart. All three train the same linear model by the same loss, BCE.
rows, test = train_test_split(range(len(tox21)), test_size=0.3, random_state=0)
train = tox21.answers[rows]
readings = {
    "gaps are no": Answers(no=~train.confirmed, yes=train.confirmed),
    "gaps are candidates": Answers.from_candidates(train.candidates),
    "gaps are not asked": train,
}
settings = {"model": "linear", "optimizer": "adam", "learning_rate": 5e-3, "random_state": 0}
models = {
    name: CandidateClassifier("bce", epochs=10, **settings).fit(tox21.X[rows], answers)
    for name, answers in readings.items()
}

# %%
# ## Judged by tests
#
# On molecules that training has not seen, only tested pairs count. Nothing is assumed there: every
# test says what is true of its pair.
import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

said = tox21.answers[test]
for name, model in models.items():
    scores = model.decision_function(tox21.X[test])
    tested = [(said.confirmed[asked, j], scores[asked, j]) for j, asked in enumerate(said.asked.T)]
    auc, precision = (
        np.mean([measure(active, score) for active, score in tested])
        for measure in (roc_auc_score, average_precision_score)
    )
    print(f"{name:20} AUC {auc:.3f}   average precision {precision:.3f}")

# %%
# By AUC the three are level. By average precision, which is about the few molecules at the top,
# candidates lose: an active molecule and an untested one look the same to them. Gaps as "no" cost
# little here, because few pairs are gaps and untested molecules are mostly inactive; where only a
# tenth of the molecules was tested, that is another matter.
#
# ## Every assay with its interval
#
# `estimate_metrics` does the same from answers, with intervals. An assay with few active molecules
# in the test has a wide one.
from comes.selection import estimate_metrics

model = models["gaps are not asked"]
scores = model.decision_function(tox21.X[test])
prior = train.confirmed.sum(axis=0) / train.asked.sum(axis=0)
found = estimate_metrics(scores, said, prior, predictions=model.cut_scores(scores))
axes = plot_quality(found, metric="auc", label_names=tox21.label_names)
save_plot(axes, folder / "auc-of-every-assay.svg")
print("macro AUC:", found["macro_auc"])

# %%
# These estimates are about molecules as they were tested. If an assay was run where somebody
# expected a result, they say nothing about molecules that nobody suspects.
# [answers.md](../guide/answers.md) says what answers gain on six data sets.
