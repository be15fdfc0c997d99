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
from pathlib import Path

from sklearn.model_selection import train_test_split

from comes import Answers, CandidateClassifier
from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.plots import plot_answers, plot_label_quality, save_plot

folder = Path(tempfile.mkdtemp(prefix="comes-"))
try:
    tox21 = open_dataset("Tox21")
except ComesError as missing:
    sys.exit(f"This example needs rdkit, and Tox21 in the folder COMES_DATA: {missing}")
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
settings = {"model": "linear", "epochs": 10, "random_state": 0}
models = {
    name: CandidateClassifier("bce", **settings).fit(tox21.X[rows], answers)
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
    by_assay = [
        (roc_auc_score(said.confirmed[tested, j], scores[tested, j]),
         average_precision_score(said.confirmed[tested, j], scores[tested, j]))
        for j, tested in enumerate(said.asked.T)
    ]
    print("{:20} AUC {:.3f}  average precision {:.3f}".format(name, *np.mean(by_assay, axis=0)))
