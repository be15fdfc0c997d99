"""How often a label is right, and when an estimate of it fails.

Methods for candidates need to know how often each label is relevant (its class prior), or how often
an irrelevant one is excluded. You will estimate both from candidates alone, read the bounds, break
the assumption behind the estimate, and find out that you did.
"""

# %%
# ## Candidates that keep the rule
#
# A label is excluded in a share p (1 - prior) of the rows: one number that is seen, two that are
# not. The features solve it. Rows that look surely irrelevant have a prior near 0, so they exclude
# the label at the rate p. The rule is that p is the same for all rows that lack the label.
import tempfile
from pathlib import Path

import numpy as np

from comes.datasets import make_scenes
from comes.generation import independent
from comes.priors import count_class_prior, estimate_class_prior, prior_table

folder = Path(tempfile.mkdtemp(prefix="comes-"))
scenes = make_scenes("train", n=2000)
candidates = independent(scenes.relevant, exclude_rate=0.3, seed=0)
estimate = estimate_class_prior(scenes.X, candidates)
true_prior = count_class_prior(scenes.relevant)
columns = ["label", "class_prior", "standard_error", "lower", "upper", "flag"]
print(prior_table(estimate, scenes.label_names)[columns].round(3).to_string(index=False))
print("exclude rate:", estimate.exclude_rate.round(2))

# %%
# There are two answers to "how sure?". `lower` and `upper` are bounds that need nothing but the
# constant rate, and are wide. The standard error is that of the estimate; all labels tend to err
# in the same direction, because they share the rate. The plot shows two standard errors on either
# side, and the truth.
import pandas as pd

from comes.report import plot_priors, save_plot


def plot_with_errors(found):
    """Draw priors with two standard errors on either side, and the truth."""
    prior, error = found.class_prior, found.standard_error
    ends = {"lower": np.maximum(prior - 2 * error, 0), "upper": prior + 2 * error}
    table = pd.DataFrame({"label": scenes.label_names, "class_prior": prior, **ends})
    inside = (ends["lower"] <= true_prior) & (true_prior <= ends["upper"])
    print(f"mean error {abs(prior - true_prior).mean():.3f}, {inside.sum()} of 10 inside")
    return plot_priors(table, true_prior)


save_plot(plot_with_errors(estimate), folder / "class-priors-that-hold.svg")

# %%
# ## Candidates that break it
#
# Now whoever crosses out is bolder on bright scenes than on dark ones: the same share is excluded
# in total, but the rate depends on the scene. The estimate takes the highest rate for that of all
# rows, and blames the rest on the label.
light = scenes.X.sum(axis=1)
bold = np.where(light > np.median(light), 0.5, 0.1)[:, None]
dependent = scenes.relevant | (np.random.default_rng(1).random(scenes.relevant.shape) >= bold)
wrong = estimate_class_prior(scenes.X, dependent)
save_plot(plot_with_errors(wrong), folder / "class-priors-that-fail.svg")

# %%
# ## Find out
#
# Candidates cannot tell a scene that is crossed out reluctantly from one that shows the digit, so
# no method that sees them alone can warn you. Some rows with true labels can: among those that
# surely lack the label, exclusion must not depend on the features. 500 scenes are checked here.
from comes.selection import check_constant_rate

clean = slice(0, 500)
for name, drawn in (("constant rate", candidates), ("by brightness", dependent)):
    check = check_constant_rate(scenes.X[clean], drawn[clean], ~scenes.relevant[clean])
    print(f"{name}: {check.conclusion}")

# %%
# ## What to do
#
# The checked rows also count the priors themselves, roughly, and without any assumption but that
# they were drawn at random. Give them to `fit` with `clean=`, or count them:
counted = count_class_prior(scenes.relevant[clean])
print(f"mean error of 500 checked rows: {abs(counted - true_prior).mean():.3f}")

# %%
# If exclusion depends on the item, priors that are known help most
# ([instance-rates.md](../explain/instance-rates.md)). It is better not to need them: draw at random
# which pairs people are asked about, and write down who was asked
# ([what a yes, a no and a maybe are worth](answers_and_candidates.md)).
