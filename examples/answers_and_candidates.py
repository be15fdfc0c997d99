"""What a yes, a no and a maybe are worth.

You can ask people about pairs of item and label, and you decide what to write down: only what is
excluded, who was asked, or also what was confirmed. You will train on each of these and see what
the model gains, before you design your own questions.
"""

# %%
# ## Ask about one pair in five
#
# The scenes show handwritten digits, and the labels are which digits are there. Simulated people
# are asked about a fifth of the pairs of scene and digit, drawn at random. Four times in five they
# are sure and right; otherwise they say "maybe".
import tempfile
from pathlib import Path

from comes import Answers, CandidateClassifier
from comes.datasets import make_scenes
from comes.generation import simulate_answers

folder = Path(tempfile.mkdtemp(prefix="comes-"))
train, test = make_scenes("train", n=1500), make_scenes("test", n=1000)
drawn = simulate_answers(train.relevant, asked_rate=0.2, no_rate=0.8, yes_rate=0.8, seed=0)
everything = Answers(no=drawn.excluded, yes=drawn.confirmed, maybe=drawn.doubtful)
print(everything)

# %%
# Most pairs were never asked about. Diamonds are the true class priors, which are known for drawn
# scenes: digits are in about a quarter of them, so most sure answers are "no".
from comes.report import plot_answers, plot_quality, save_plot

axes = plot_answers(everything, train.relevant.mean(axis=0))
save_plot(axes, folder / "what-was-asked.svg")

# %%
# ## Forget a part of it
#
# The same answers, written down in three ways. *Candidates* keep the "no" alone: whoever reads them
# cannot tell a "maybe" from a pair that nobody asked about. The truth, about every pair, is the
# limit.
known = {
    "candidates": Answers(no=drawn.excluded),
    "no and maybe": Answers(no=drawn.excluded, maybe=drawn.doubtful | drawn.confirmed),
    "no, yes and maybe": everything,
    "all true labels": Answers(no=~train.relevant, yes=train.relevant),
}

# %%
# ## Train on each
#
# One network of 200 units instead of four of 500 saves time; everything else is the default. Rates
# and class priors are estimated from the answers. BCE, the usual loss, takes candidates for
# relevant and has no other choice; the warning says what comes of it.
from comes.label_metrics import measure_labels

fits = {"candidates, BCE": ("bce", known["candidates"])}
fits |= {f"{name}, likelihood": ("likelihood", answers) for name, answers in known.items()}
quality = {}
for name, (method, answers) in fits.items():
    model = CandidateClassifier(method, n_networks=1, hidden=200, random_state=0)
    model.fit(train.X, answers)
    quality[name] = measure_labels(model.decision_function(test.X), test.relevant)
    print(f"{name:30} {model.score(test.X, test.relevant):.3f}")

# %%
# The numbers are average precisions on new scenes. From candidates alone, with one pair in eight
# excluded, the likelihood loses to BCE by this measure: an order of labels within a scene does not
# need to know what a candidate means, and to estimate that from few exclusions adds noise. Writing
# down *who was asked* costs nothing and gains much: a "no" then counts against the pairs that were
# asked about, and not against all. "Yes" gains most, though it is the rarest sure answer. The same
# for each digit, as the area under the precision-recall curve with its interval:
shown = ["candidates, likelihood", "no, yes and maybe, likelihood"]
axes = plot_quality(
    {name.removesuffix(", likelihood"): quality[name] for name in shown},
    metric="average_precision",
    label_names=train.label_names,
)
save_plot(axes, folder / "quality-by-what-is-known.svg")

# %%
# ## What follows for your questions
#
# - Store every answer with the pair it is about, even "maybe": then "not asked" is known, too.
# - Let people say yes where they can. It is not required, but worth the most.
# - Draw the pairs at random. A model may choose *additional* questions, but rates and priors need
#   random ones ([annotate-growing.md](../guide/annotate-growing.md)).
#
# [answers.md](../guide/answers.md) repeats this on six data sets.
