"""Judge a model without a true label.

In practice nobody has true labels, not even for testing. You will estimate from held-out
candidates how good a model is, compare two models, look at its probabilities, and choose where to
cut them. The truth of drawn scenes is used at the end of each step to check the estimate, and for
nothing else.
"""

# %%
# ## A model, and rows that it has not seen
#
# Half of the digits that are not in a scene are excluded at random. The second half of the scenes
# is held out; all that is known of it is candidates, too.
import tempfile
from pathlib import Path

from comes import CandidateClassifier
from comes.datasets import make_scenes
from comes.generation import case_b

folder = Path(tempfile.mkdtemp(prefix="comes-"))
scenes = make_scenes("train", n=2400)
candidates = case_b(scenes.relevant, exclude_rate=0.5)
train, held_out = slice(0, 1200), slice(1200, 2400)
settings = {"n_networks": 1, "random_state": 0}
model = CandidateClassifier(**settings).fit(scenes.X[train], candidates[train])
scores = model.decision_function(scenes.X[held_out])
predicted = model.predict(scenes.X[held_out])

# %%
# ## Estimates with intervals
#
# Why this works: the rows that exclude a label are a sample of the rows it is irrelevant to, so
# they show how often it is predicted wrongly. How often it is predicted at all is seen on all rows,
# and the class prior says how often it should be. Recall, precision and AUC follow from these
# three. The intervals include the error of the prior, which was estimated as well.
from comes.label_metrics import measure_labels
from comes.selection import estimate_metrics

prior = {"class_prior": model.class_prior_, "class_prior_error": model.class_prior_error_}
found = estimate_metrics(scores, candidates[held_out], predictions=predicted, **prior)
truth = measure_labels(scores, scenes.relevant[held_out], predicted)
for metric in ("recall", "precision", "f1", "auc"):
    print(f"{metric:10} {found[f'macro_{metric}']}, by the truth {truth[metric].mean():.3f}")

# %%
# For every label, beside what only the truth can tell:
from comes.report import plot_calibration, plot_quality, save_plot

axes = plot_quality(
    {"from candidates": found, "from the truth": truth}, label_names=scenes.label_names
)
save_plot(axes, folder / "quality-by-digit.svg")

# %%
# ## Is it better than BCE?
#
# Differences on the same rows are surer than two intervals side by side: what both models get wrong
# cancels. BCE takes candidates for labels and would predict nearly all of them, so its scores are
# cut by the class priors (`threshold="prior"`). An interval that contains 0 means that these rows
# cannot tell the two apart; the truth here says that there is little to tell.
from comes.metrics import evaluate
from comes.selection import compare_metrics

bce = CandidateClassifier("bce", threshold="prior", **settings)
bce.fit(scenes.X[train], candidates[train])
others = bce.decision_function(scenes.X[held_out])
cuts = (predicted, bce.predict(scenes.X[held_out]))
gap = compare_metrics(scores, others, candidates[held_out], model.class_prior_, predictions=cuts)[
    "hamming_loss"
]
losses = [
    evaluate(values, scenes.relevant[held_out], cut)["hamming_loss"]
    for values, cut in zip((scores, others), cuts, strict=True)
]
print(f"Hamming loss, likelihood minus BCE: {gap}")
print(f"by the truth: {losses[0] - losses[1]:.3f}")

# %%
# ## Are the probabilities right?
#
# Among pairs with a probability near 0.8, eight of ten should be relevant. Exclusions tell: if half
# of the irrelevant pairs are excluded, and a tenth of these pairs is, then a fifth is irrelevant.
# This model is a little too sure of high probabilities; `model.calibrate` fits them to such rows.
from comes import Answers
from comes.selection import check_reliability

probabilities = model.predict_proba(scenes.X[held_out])
said = Answers.from_candidates(candidates[held_out])
reliability = check_reliability(probabilities, said, model.no_rate_, model.yes_rate_)
axes = plot_calibration({"from candidates": reliability})
save_plot(axes, folder / "calibration.svg")

# %%
# ## Where to cut
#
# Cut at a probability of one half, few labels are wrong. If finding the digits matters more than a
# clean list, cut where the estimated F1 is greatest. The cut is chosen on one half of the held-out
# rows and judged on the other, where it had no chance to fit the noise.
from comes.selection import choose_thresholds

first, second = slice(0, 600), slice(600, 1200)
known = candidates[held_out]
cut = choose_thresholds(scores[first], known[first], model.class_prior_, by="f1")
for name, cut_at in (("one half", 0.0), ("greatest F1", cut)):
    chosen = scores[second] > cut_at
    judged = estimate_metrics(scores[second], known[second], predictions=chosen, **prior)
    true = measure_labels(scores[second], scenes.relevant[held_out][second], chosen)
    print(f"{name:12} F1 {judged['macro_f1']}, by the truth {true['f1'].mean():.3f}")
