"""Your own PyTorch loop.

You have a network and a training loop, and want the loss alone. You will train with COMES-HL on
candidates and with the likelihood on answers, see why the mean of the losses of micro-batches is
wrong for COMES, and compute it exactly.
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
from comes.metrics import average_precision
from comes.risks import HammingRisk, LikelihoodRisk
from comes.training import History

folder = Path(tempfile.mkdtemp(prefix="comes-"))
train, test = make_scenes("train", n=3000), make_scenes("test", n=1000)
X = torch.tensor(train.X)
candidates = torch.tensor(case_b(train.relevant, exclude_rate=0.5))
class_prior = torch.tensor(train.relevant.mean(axis=0), dtype=torch.float32)


def make_network():
    """Return the same network every time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], 200), torch.nn.ReLU(), torch.nn.Linear(200, 10)
    )


def train_network(risk, known, epochs=15):
    """Train by a risk of scores and what is known, and return the network and its history."""
    model = make_network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = History()
    for _ in range(epochs):
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
    """Return the average precision on new scenes."""
    with torch.no_grad():
        return average_precision(model(torch.tensor(test.X)).numpy(), test.relevant)


# %%
# ## Three losses
#
# `HammingRisk` and `LikelihoodRisk` are modules: `risk(scores, what is known)` is a number with a
# gradient. For the likelihood of candidates, `no_rate` is how often an absent digit is excluded.
# BCE takes every candidate for a digit that is there.
from comes.risks import BceRisk

risks = {
    "bce": BceRisk(),
    "comes-hl": HammingRisk(class_prior),
    "likelihood": LikelihoodRisk(no_rate=torch.full((10,), 0.5), yes_rate=torch.zeros(10)),
}
trained = {name: train_network(risk, candidates) for name, risk in risks.items()}
for name, (model, _) in trained.items():
    print(f"{name:12} {judge(model):.3f}")

# %%
# Risks of different methods have different scales, so the curves are divided by their first value.
from comes.plots import plot_risks, save_plot

axes = plot_risks({name: history for name, (_, history) in trained.items()}, relative=True)
save_plot(axes, folder / "risks-while-training.svg")

# %%
# ## Answers in the place of candidates
#
# The same loop, with states: 0 not asked, 1 no, 2 yes, 3 maybe.
drawn = simulate_answers(train.relevant, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=0)
rate = torch.full((10,), 0.8)
model, _ = train_network(LikelihoodRisk(no_rate=rate, yes_rate=rate), torch.tensor(drawn.codes))
print(f"half of the pairs asked: {judge(model):.3f}")

# %%
# ## Micro-batches
#
# A batch that does not fit into memory is usually split, and the gradients are averaged. COMES-HL
# takes an absolute value of sums over rows, and an absolute value of a part is not a part of the
# absolute value. `split_risk` gives every micro-batch a loss whose gradients add up to that of the
# whole batch, for any risk, after a first pass without gradients.
from comes.training import split_risk

risk = HammingRisk(class_prior)
batch = slice(0, 1000)
x, known = X[batch].split(100), candidates[batch].split(100)
model = make_network()


def gradient_of(step):
    """Return the gradient of the first layer that a step leaves."""
    model.zero_grad()
    step()
    return model[0].weight.grad.clone()


def add_exact_parts():
    """Backpropagate through every micro-batch, each with its part of the risk."""
    for rows, part in zip(x, split_risk(model, x, known, risk), strict=True):
        part.loss(model(rows)).backward()


whole = gradient_of(lambda: risk(model(X[batch]), candidates[batch]).backward())
exact = gradient_of(add_exact_parts)
mean = gradient_of(
    lambda: sum(risk(model(rows), own) / len(x) for rows, own in zip(x, known)).backward()
)
for name, found in (("split_risk", exact), ("mean of micro-batches", mean)):
    print(f"{name:22} off by {float((found - whole).norm() / whole.norm()):.1%}")

# %%
# With several processes the same holds: `comes.training.of_all_processes(risk)` makes the averaged
# gradient that of one process ([own-loop.md](../guide/own-loop.md)). The likelihood and BCE are
# sums over rows, and need neither.
