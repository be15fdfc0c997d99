"""Your own PyTorch loop.

You have a network and a training loop, and want the loss alone. You will train with COMES-HL and
the likelihood, and see why COMES must not be averaged over micro-batches, and what to do instead.
"""

# %%
# ## A loop as you have it
#
# Scenes of digits, half of the absent digits excluded, and a small network. COMES-HL needs the
# class prior; here it is counted, otherwise estimate it ([class priors](class_priors.md)).
import tempfile
from pathlib import Path

import torch

from comes.datasets import make_scenes
from comes.generation import case_b, simulate_answers
from comes.metrics import average_precision, hamming_loss
from comes.risks import BceRisk, HammingRisk, LikelihoodRisk
from comes.training import History, split_risk

folder = Path(tempfile.mkdtemp(prefix="comes-"))
train, test = make_scenes("train", n=3000), make_scenes("test", n=1000)
X = torch.tensor(train.X)
candidates = torch.tensor(case_b(train.relevant, exclude_rate=0.5))
class_prior = torch.tensor(train.relevant.mean(axis=0), dtype=torch.float32)


def make_network():
    """Return the same network every time."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(X.shape[1], 200), torch.nn.ReLU(), torch.nn.Linear(200, 10)
    return torch.nn.Sequential(*layers)


def train_network(risk, known):
    """Train by a risk of scores and what is known, and return the network and its history."""
    model, history = make_network(), History()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(15):
        total = 0.0
        for rows in torch.randperm(len(X)).split(250):
            optimizer.zero_grad()
            loss = risk(model(X[rows]), known[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(X)
        history.risk.append(total)
    return model, history


def judge(model):
    """Return what a network is worth on new scenes."""
    with torch.no_grad():
        scores = model(torch.tensor(test.X)).numpy()
    precision, loss = (
        average_precision(scores, test.relevant),
        hamming_loss(scores > 0, test.relevant),
    )
    return f"average precision {precision:.3f}, Hamming loss {loss:.3f}"


# %%
# ## Three losses
#
# `HammingRisk` and `LikelihoodRisk` are modules: `risk(scores, what is known)` is a number with a
# gradient. For the likelihood of candidates, `no_rate` is how often an absent digit is excluded.
# BCE takes every candidate for a digit that is there.
risks = {
    "bce": BceRisk(),
    "comes-hl": HammingRisk(class_prior),
    "likelihood": LikelihoodRisk(no_rate=torch.full((10,), 0.5), yes_rate=torch.zeros(10)),
}
trained = {name: train_network(risk, candidates) for name, risk in risks.items()}
for name, (model, _) in trained.items():
    print(f"{name:12} {judge(model)}")

# %%
# By the order of labels within a scene BCE is the best of the three here: with half of the absent
# digits excluded, an order needs no more. But its scores are those of *being a candidate*, and cut
# at 0 they are wrong for half of all pairs. The scores of the other two are those of digits.
#
# Risks of different methods have different scales, so the curves are divided by their first value.
from comes.report import plot_risks, save_plot

axes = plot_risks({name: history for name, (_, history) in trained.items()}, relative=True)
save_plot(axes, folder / "risks-while-training.svg")

# %%
# ## Answers in the place of candidates
#
# The same loop, with states: 0 not asked, 1 no, 2 yes, 3 maybe.
drawn = simulate_answers(train.relevant, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=0)
rate = torch.full((10,), 0.8)
model, _ = train_network(LikelihoodRisk(no_rate=rate, yes_rate=rate), torch.tensor(drawn.codes))
print(f"half of the pairs asked: {judge(model)}")

# %%
# ## Micro-batches
#
# A batch that does not fit into memory is usually split, and the gradients are averaged. COMES-HL
# takes an absolute value of sums over rows, and an absolute value of a part is not a part of the
# absolute value. `split_risk` gives every micro-batch a loss whose gradients add up to that of the
# whole batch, for any risk, after a first pass without gradients.
risk, x, known = risks["comes-hl"], X[:1000].split(20), candidates[:1000].split(20)
parts = split_risk(make_network(), x, known, risk)
whole, exact, mean = make_network(), make_network(), make_network()
risk(whole(X[:1000]), candidates[:1000]).backward()
for rows, own, part in zip(x, known, parts, strict=True):
    part.loss(exact(rows)).backward()
    (risk(mean(rows), own) / len(x)).backward()
right = whole[0].weight.grad
for name, model in (("split_risk", exact), ("mean of micro-batches", mean)):
    print(f"{name:22} off by {float((model[0].weight.grad - right).norm() / right.norm()):.1%}")

# %%
# With several processes the same holds: `comes.training.of_all_processes(risk)` makes the averaged
# gradient that of one process ([own-loop.md](../guide/own-loop.md)). The likelihood and BCE are
# sums over rows, and need neither.
