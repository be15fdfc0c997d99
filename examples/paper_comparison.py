"""A comparison for a paper.

You have a few methods and data sets, and want a table that holds: the same folds for all, repeats,
tests, and a file that anybody can run again. You will write that file, run it, and get the table in
LaTeX, the ranks, and the plot of critical differences.
"""

# %%
# ## The experiment is a file
#
# Data sets with true labels get candidates: half of the irrelevant labels are excluded (case b).
# Every method sees the same candidates and folds, and knows the class priors of the training rows,
# as in the COMES paper; `class_prior = "estimated"` is what a user would have. 400 rows to train on
# and 20 epochs keep this page quick; the paper has all rows and 200 epochs. The first three data
# sets are read from `$COMES_DATA`.
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp(prefix="comes-"))
config = folder / "comparison.toml"
text = """
name = "comparison"
folds = 5
class_prior = "true"
train_rows = 400
settings = { epochs = 20 }
data = [
    { name = "emotions", case = "b", rate = 0.5, label = "emotions" },
    { name = "scene:train", case = "b", rate = 0.5, label = "scene" },
    { name = "yeast", case = "b", rate = 0.5, label = "yeast" },
    { name = "scenes", rows = 600, case = "b", rate = 0.5, label = "digits" },
]
methods = [
    { method = "bce" },
    { method = "ccmn" },
    { method = "comes-hl" },
    { method = "likelihood" },
]
"""
config.write_text(text)

# %%
# ## Run it
#
# Each task, a method on a data set, leaves a `result.json` with every metric of every fold. What
# has a result is not run again, so a run can be stopped and continued, and shards of it can run on
# several machines. `comes bench comparison.toml` does the same.
from comes.workflows import run_experiment

run = run_experiment(config, folder / "runs", workers=1)
if run.missing:
    sys.exit("This example needs emotions, scene and yeast of Mulan in the folder COMES_DATA.")
print(run.summary())

# %%
# ## Look at it
#
# Means over five folds. By the order of labels (average precision) BCE is near the others; by what
# is predicted (Hamming loss) it is far off, because it takes candidates for labels. So decide which
# metric the paper is about before you see this table. The likelihood is last on three sets here:
# all methods have the paper's settings (SGD), which are not its own. `training = "default"` in a
# method trains as `CandidateClassifier()` does; [training.md](../guide/training.md) compares them.
import pandas as pd

means = pd.DataFrame(run.means())
for metric in ("average_precision", "hamming_loss"):
    print(metric)
    print(means.pivot(index="method", columns="data", values=metric).round(3).to_string())

# %%
# ## Is it more than chance?
#
# On one data set, folds share training rows, so the plain paired t-test is overconfident; the
# report has the corrected one beside it. Over data sets, mean ranks are compared: methods that a
# bar joins cannot be told apart (Nemenyi, 0.05). With four data sets and four methods the critical
# difference is large. A claim needs more data sets, and the plot says so before a reviewer does.
from comes.report import plot_ranks, save_plot

scores = means.pivot(index="data", columns="method", values="average_precision")
save_plot(plot_ranks(scores), folder / "critical-difference.svg")

# %%
# ## Into the paper
#
# The report is one page with every fold, curve and test; beside it are the tables for LaTeX and
# all plots as .pdf. A bullet marks what is significantly worse than the best by the paired t-test,
# a dagger by the corrected test, a double dagger with Holm's method, too.
report = run.page.parent
print(*sorted(path.name for path in report.iterdir()))
tables = (report / "tables.tex").read_text(encoding="utf-8")
print("\n".join(tables[tables.index("\\begin{tabular}") :].splitlines()[:12]))
