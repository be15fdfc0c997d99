"""Exclude rates that depend on the instance: p_j(x) learned beside the probability eta_j(x).

    python experiments/instance_rates.py

writes ``experiments/results/instance_rates.json``, a row per (draw, set, seed, learner). All
learners maximise the likelihood of candidates, excluded with probability p_j(x) (1 - eta_j(x)), by
the same network and training; they differ in p_j(x) and in what they know. Generated candidates are
drawn anew, and rows split 80/20, with every seed; mirflickr5000 comes with candidates of its own,
and a seed is one of ten folds. "p(x) known" has the rates that candidates were drawn with; on
mirflickr5000, where nobody knows them, a logistic p(x) fitted on true labels. ``held_out`` is minus
the mean log-likelihood of the candidates of test rows, which sees no truth. What the result holds
already is not run again. ``CHECKED`` are sets on which nothing was chosen.
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional as F

from comes.answers.convert import BoolMatrix
from comes.datasets import make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import independent, instance_dependent, project_rows, tilted_probability
from comes.metrics import average_precision, mean_average_precision
from comes.models import mlp
from comes.priors import count_class_prior, estimate_class_prior

FloatArray = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "instance_rates.json"
SETS = ("yeast", "scene", "emotions", "mirflickr5000")
CHECKED = ("scenes", "enron")  # nothing was chosen on them; they see the learners of CHECKS alone
DRAWS = {  # exclude rate and strength; 0 is a constant rate
    "independent 0.1": (0.1, 0.0),
    "independent 0.5": (0.5, 0.0),
    "instance-dependent 0.5, strength 1": (0.5, 1.0),
    "instance-dependent 0.5, strength 2": (0.5, 2.0),
    "instance-dependent 0.1, strength 2": (0.1, 2.0),
    "its own": None,
}
EPOCHS, BATCH_SIZE, LEARNING_RATE, WEIGHT_DECAY = 40, 256, 5e-4, 1e-4
RATE_STEP = 5e-3  # learning rate of what p(x) is made of
N_CLEAN = 200  # rows whose truth some learners know
LARGEST_LOGIT = 8.0
UPPER = 0.9  # the quantile that is taken for the upper envelope
METRICS = ("average_precision", "mean_average_precision", "held_out", "prior_error")


class Learner(NamedTuple):
    """What a learner takes p_j(x) for, and what it knows."""

    form: str = "constant"
    knows: str = "nothing"  # "priors", "clean rows" or "truth"
    n_components: int | None = None  # of the features that p(x) is linear in; None for all of them
    ridge: float = 1.0
    starts_low: bool = False  # p at the root of the share of excluding rows


LEARNERS = {
    "constant": Learner(),
    "constant, learned": Learner("level"),
    "shared by labels, 5 components": Learner("shared", n_components=5),
    "by label, 3 components": Learner("by label", n_components=3),
    "by label, 3 components, EM": Learner("em", n_components=3),
    "by label, all features": Learner("by label", ridge=100.0),
    "by label, all features, from a low rate": Learner("by label", ridge=100.0, starts_low=True),
    "other exclusions of the row": Learner("activity"),
    "upper envelope, 3 components": Learner("envelope", n_components=3),
    "constant, true priors": Learner(knows="priors"),
    "by label, 3 components, true priors": Learner("by label", "priors", 3),
    "by label, 10 components, true priors": Learner("by label", "priors", 10, 10.0),
    "by label, all features, true priors": Learner("by label", "priors", None, 100.0),
    "constant, then shifted to true priors": Learner("shift", "priors"),
    "constant, then bent to true priors": Learner("bend", "priors"),
    "constant, true priors, then bent": Learner("bend after priors", "priors"),
    "constant, 200 clean rows": Learner(knows="clean rows"),
    "constant, 200 clean rows, then bent": Learner("bend after priors", "clean rows"),
    "p(x) known, true priors": Learner("truth", "truth"),
}
CHECKS = ("constant, true priors", "constant, true priors, then bent")


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows to train on and rows to judge by, with candidates and truth; X is standardised."""

    seed: int
    logit_rates: tuple[Tensor, Tensor] | None  # that candidates were drawn with, if known
    X: Tensor
    candidates: BoolMatrix
    relevant: BoolMatrix
    unseen: Tensor
    test_candidates: BoolMatrix
    test_relevant: BoolMatrix


class Fit(NamedTuple):
    """Scores of training and test rows, and minus the mean log-likelihood of test rows."""

    scores: FloatArray
    test_scores: FloatArray
    held_out: float


def draw(name: str, kind: str, seed: int) -> Draw:
    """Return one draw of candidates and one split of the rows."""
    dataset = make_scenes("train", 3000) if name == "scenes" else open_dataset(name)
    features = dataset.known_features()
    X = np.asarray(features.toarray() if sparse.issparse(features) else features, float)
    relevant, rows = dataset.known_relevant(), len(dataset)
    settings, known = DRAWS[kind], None
    if settings is None:
        assert dataset.candidates is not None
        candidates = dataset.candidates
        seen, unseen = list(KFold(10, shuffle=True, random_state=0).split(X))[seed]
    else:
        rate, strength = settings
        candidates = independent(relevant, rate, seed=seed)
        if strength:
            candidates = instance_dependent(relevant, X, rate, strength, seed=seed)
        z = project_rows(X, relevant.shape[1], np.random.default_rng(seed))  # as it was drawn
        p = tilted_probability(strength * z, ~relevant, np.full(relevant.shape[1], rate))
        logit = torch.logit(torch.tensor(p), eps=1e-4).float()
        seen, unseen = train_test_split(np.arange(rows), test_size=0.2, random_state=seed)
        known = logit[seen], logit[unseen]
    scaling = StandardScaler().fit(X[seen])
    parts: list[Any] = []
    for part in (seen, unseen):
        scaled = torch.as_tensor(scaling.transform(X[part]), dtype=torch.float32)
        parts += [scaled, candidates[part], relevant[part]]
    return Draw(seed, known, *parts)


class Rates(nn.Module):
    """logit p_j(x) = c_j + w_j' z(x) + v t_j(x); z and t are given, c, w and v learned."""

    def __init__(self, start: FloatArray, n_inputs: int, *, shared: bool) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.logit(torch.as_tensor(start).float(), eps=0.02))
        self.slope = nn.Parameter(torch.zeros(n_inputs, 1 if shared else len(start)))
        self.of_pair = nn.Parameter(torch.zeros(1))

    def forward(self, z: Tensor, t: Tensor) -> Tensor:
        """Return the logit of the rate of every pair, (n, q)."""
        logit: Tensor = self.level + z @ self.slope + self.of_pair * t
        return logit.clamp(-LARGEST_LOGIT, LARGEST_LOGIT)


def lose(scores: Tensor, candidates: Tensor, logit_rate: Tensor) -> Tensor:
    """Return minus the log-likelihood of every pair, (n, q)."""
    excluded = logit_rate.sigmoid() * torch.sigmoid(-scores)
    possible = -torch.log1p(-excluded.clamp(max=1 - 1e-6))
    return torch.where(candidates, possible, F.softplus(scores) + F.softplus(-logit_rate))


def diverge(mean: Tensor, prior: Tensor) -> Tensor:
    """Return how far mean probabilities are from class priors, as `LikelihoodRisk` counts it."""
    mean = mean.clamp(1e-6, 1 - 1e-6)
    rest = torch.special.xlogy(1 - prior, (1 - prior) / (1 - mean))
    away: Tensor = torch.special.xlogy(prior, prior / mean) + rest
    return away.sum()


def find_inputs(data: Draw, learner: Learner) -> list[tuple[Tensor, Tensor]]:
    """Return z and t of training and of test rows."""
    z = [data.X, data.unseen]
    if learner.n_components is not None:
        components = PCA(learner.n_components, whiten=True, random_state=0).fit(data.X.numpy())
        z = [torch.as_tensor(components.transform(x.numpy())).float().clamp(-3, 3) for x in z]
    t = []
    for candidates in (data.candidates, data.test_candidates):
        others = (~candidates).sum(axis=1, keepdims=True) - ~candidates
        t.append(torch.as_tensor(others / (candidates.shape[1] - 1)).float())
    mean, spread = t[0].mean(dim=0), t[0].std(dim=0) + 1e-6
    return [(own, (other - mean) / spread) for own, other in zip(z, t, strict=True)]


def train(
    data: Draw,
    learner: Learner,
    prior: FloatArray,
    rate: FloatArray,
    *,
    prior_weight: float,
    fixed: tuple[Tensor, Tensor] | None = None,
) -> Fit:
    """Train eta, and p(x) as the learner has it; ``fixed`` holds logits of p(x) in its place."""
    torch.manual_seed(data.seed)
    (z, t), (test_z, test_t) = find_inputs(data, learner)
    n, q = data.candidates.shape
    network = mlp(data.X.shape[1], q)
    rates = Rates(rate, z.shape[1], shared=learner.form == "shared")
    candidates, class_prior = torch.as_tensor(data.candidates), torch.as_tensor(prior).float()
    with torch.no_grad():
        network[-1].bias.copy_(torch.logit(class_prior, eps=1e-3))  # type: ignore[index]
    varying = {"level": [], "activity": [rates.of_pair]}
    varying |= {"shared": [rates.slope], "by label": [rates.slope]}
    learned = [rates.level, *varying[learner.form]] if learner.form in varying else []
    weights = {"params": list(network.parameters()), "weight_decay": WEIGHT_DECAY}
    groups = [weights, *({"params": [part], "lr": RATE_STEP} for part in learned)]
    optimizer = torch.optim.Adam(groups, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    scale = 1 / float(np.mean(rate))
    for _ in range(EPOCHS):
        for rows in torch.randperm(n).split(BATCH_SIZE):
            scores = network(data.X[rows])
            logit = rates(z[rows], t[rows]) if fixed is None else fixed[0][rows]
            logit = logit if learned else logit.detach()
            risk = scale * lose(scores, candidates[rows], logit).mean(dim=0).sum()
            if prior_weight:
                risk = risk + prior_weight * diverge(scores.sigmoid().mean(dim=0), class_prior)
            if learned:
                risk = risk + scale * learner.ridge / (2 * n) * rates.slope.square().sum()
            optimizer.zero_grad()
            risk.backward()
            optimizer.step()
        schedule.step()
        if learner.form == "em":
            maximise(rates, z, t, network(data.X).detach(), candidates, learner.ridge)
    with torch.no_grad():
        scores, test_scores = network(data.X), network(data.unseen)
        logit = rates(test_z, test_t) if fixed is None else fixed[1]
        held_out = lose(test_scores, torch.as_tensor(data.test_candidates), logit).mean()
    return Fit(scores.double().numpy(), test_scores.double().numpy(), float(held_out))


@torch.no_grad()
def maximise(
    rates: Rates, z: Tensor, t: Tensor, scores: Tensor, candidates: Tensor, ridge: float
) -> None:
    """Take one Newton step of the M step: excluded or not, weighted by being irrelevant."""
    p = rates(z, t).sigmoid()
    remains = (1 - p) * torch.sigmoid(-scores)
    weight = torch.where(candidates, remains / (remains + scores.sigmoid()), 1.0)
    inputs = torch.cat([torch.ones(len(z), 1), z], dim=1)
    penalty = torch.diag(torch.tensor([0.1, *[ridge] * z.shape[1]]))
    values = torch.cat([rates.level[None], rates.slope])  # (1 + components, q)
    pull = inputs.T @ (weight * ((~candidates).float() - p)) - penalty @ values
    curvature = torch.einsum("na,nq,nb->qab", inputs, weight * p * (1 - p), inputs) + penalty
    step = torch.linalg.solve(curvature, pull.T[:, :, None])[:, :, 0].T.clamp(-1, 1)
    rates.level.add_(step[0])
    rates.slope.add_(step[1:])


def find_envelope(data: Draw, learner: Learner, prior: FloatArray) -> tuple[Tensor, Tensor]:
    """Return logits of p(z), the upper envelope of P(excluded | x) over rows of like z.

    P(excluded | x) is learned on the other half of the rows (with a rate of 1, the likelihood is
    BCE on candidates), and its logit's quantile is linear in z.
    """
    (z, _), (test_z, _) = find_inputs(data, learner)
    logit = torch.zeros(data.candidates.shape)
    ones = np.full(data.candidates.shape[1], 1.0)
    for seen, unseen in KFold(2, shuffle=True, random_state=data.seed).split(data.X):
        held = (data.X[unseen], data.candidates[unseen], data.relevant[unseen])
        half = Draw(
            data.seed, None, data.X[seen], data.candidates[seen], data.relevant[seen], *held
        )
        likeness = train(half, Learner(), prior, ones, prior_weight=0.0)
        logit[unseen] = -torch.as_tensor(likeness.test_scores).float()
    coefficients = torch.zeros(1 + z.shape[1], logit.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([coefficients], lr=0.05)
    for _ in range(400):
        above = logit - coefficients[0] - z @ coefficients[1:]
        loss = torch.maximum(UPPER * above, (UPPER - 1) * above).mean(dim=0).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    level, slope = coefficients.detach()[0], coefficients.detach()[1:]
    envelopes = [(level + part @ slope).clamp(-4, LARGEST_LOGIT) for part in (z, test_z)]
    return envelopes[0], envelopes[1]


def fit_on_truth(data: Draw) -> tuple[Tensor, Tensor]:
    """Return logits of p(x), logistic in x, fitted on the pairs that are irrelevant in truth.

    Those of a training row are out of fold, else they would tell which pairs are irrelevant.
    """
    n = len(data.X)
    logits = torch.zeros(data.relevant.shape), torch.zeros(data.test_relevant.shape)
    parts = [(np.arange(n), logits[1], data.unseen, slice(None))]
    for seen, held in KFold(5, shuffle=True, random_state=data.seed).split(data.X):
        parts.append((seen, logits[0], data.X[held], held))
    for (seen, logit, X, rows), j in itertools.product(parts, range(logits[0].shape[1])):
        irrelevant = seen[~data.relevant[seen, j]]
        model = LogisticRegression(C=0.05, max_iter=300)
        model.fit(data.X[irrelevant], ~data.candidates[irrelevant, j])
        logit[rows, j] = torch.as_tensor(model.decision_function(X)).float()
    return logits


def bend(fit: Fit, prior: FloatArray, *, shifts: bool = False) -> Fit:
    """Return scores of eta with 1 - eta = (1 - h)^k_j, h learned and k_j such that means fit.

    Then p_j(x) = p_j (1 - eta)^(1 / k_j - 1): the likelihood is that of h, whatever k_j is. With
    ``shifts``, logit eta = logit h + k_j instead.
    """

    def move(scores: FloatArray, k: float) -> FloatArray:
        if shifts:
            return scores + k
        far = np.exp(k) * np.logaddexp(0, scores)  # -log(1 - eta)
        near = np.log(np.maximum(np.expm1(np.minimum(far, 30)), 1e-300))
        return np.asarray(np.where(far > 30, far, near))

    bent = []
    for own, own_test, mean in zip(fit.scores.T, fit.test_scores.T, prior, strict=True):
        k = brentq(lambda k, s=own, m=mean: expit(move(s, k)).mean() - m, -15, 15)
        bent.append([move(own, k), move(own_test, k)])
    return Fit(np.stack([b[0] for b in bent], 1), np.stack([b[1] for b in bent], 1), fit.held_out)


def know(data: Draw, knows: str) -> FloatArray | None:
    """Return the class priors that a learner knows."""
    if knows == "nothing":
        return None
    relevant = data.relevant
    if knows == "clean rows":
        rng = np.random.default_rng(data.seed)
        relevant = relevant[rng.choice(len(relevant), N_CLEAN, replace=False)]
        return np.asarray((relevant.sum(axis=0) + 0.5) / (len(relevant) + 1))
    return count_class_prior(relevant)


def learn(
    data: Draw, learner: Learner, prior: FloatArray, rate: FloatArray, made: dict[str, Fit]
) -> Fit:
    """Train one learner; ``prior`` and ``rate`` are estimated with constant rates.

    ``made`` keeps the fits with constant rates, by what they know.
    """
    known = know(data, learner.knows)
    if learner.form in ("shift", "bend", "bend after priors"):
        assert known is not None
        first = Learner(knows=learner.knows if learner.form == "bend after priors" else "nothing")
        return bend(learn(data, first, prior, rate, made), known, shifts=learner.form == "shift")
    if learner.form == "constant" and learner.knows in made:
        return made[learner.knows]
    share = 1 - data.candidates.mean(axis=0)
    if known is not None:
        prior, rate = known, np.clip(share / np.maximum(1 - known, 1e-9), 1e-3, 1)
    if learner.starts_low:
        prior, rate = 1 - np.sqrt(share), np.sqrt(share)
    # Estimated priors rest on constant rates: where rates vary, nothing is kept near them.
    weight = 1.0 if known is not None or learner.form == "constant" else 0.0
    fixed = None
    if learner.form == "envelope":
        fixed = find_envelope(data, learner, prior)
    elif learner.form == "truth":
        fixed = data.logit_rates or fit_on_truth(data)
    fit = train(data, learner, prior, rate, prior_weight=weight, fixed=fixed)
    if learner.form == "constant":
        made[learner.knows] = fit
    return fit


def run(name: str, kind: str, seed: int, titles: Sequence[str]) -> list[dict[str, Any]]:
    """Return what these learners make of one draw."""
    warnings.simplefilter("ignore", ComesWarning)
    torch.set_num_threads(1)
    data = draw(name, kind, seed)
    prior = rate = np.full(data.relevant.shape[1], np.nan)  # those of CHECKS are known
    if not set(titles) <= set(CHECKS):
        estimate = estimate_class_prior(data.X, data.candidates, random_state=seed)
        prior, rate = estimate.class_prior, estimate.exclude_rate
    found, made = [], dict[str, Fit]()
    for title in titles:
        started = time.perf_counter()
        fit = learn(data, LEARNERS[title], prior, rate, made)
        means = expit(fit.test_scores).mean(axis=0)
        values = (
            average_precision(fit.test_scores, data.test_relevant),
            mean_average_precision(fit.test_scores, data.test_relevant),
            fit.held_out,
            float(np.abs(means - data.test_relevant.mean(axis=0)).mean()),
        )
        row: dict[str, Any] = {"draw": kind, "set": name, "seed": seed, "learner": title}
        row |= {metric: round(value, 4) for metric, value in zip(METRICS, values, strict=True)}
        found.append(row | {"seconds": round(time.perf_counter() - started, 1)})
    return found


def main() -> None:
    """Run what is missing, and write the result after every draw."""
    parser = argparse.ArgumentParser(description="Exclude rates that depend on the instance.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sets", nargs="+", default=(*SETS, *CHECKED))
    parser.add_argument("--seeds", nargs="+", type=int, default=range(3))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=1, help="draws at a time")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(row["draw"], row["set"], row["seed"], row["learner"]) for row in rows}
    tasks = []
    for seed, kind, name in itertools.product(options.seeds, DRAWS, options.sets):
        if (DRAWS[kind] is None) == (name == "mirflickr5000"):
            titles = [own for own in options.learners if (kind, name, seed, own) not in done]
            titles = [own for own in titles if name in SETS or own in CHECKS]
            tasks += [(name, kind, seed, titles)] if titles else []
    work = Parallel(n_jobs=options.workers, return_as="generator_unordered")
    for found in work(delayed(run)(*task) for task in tasks):
        rows = sorted(rows + found, key=place)
        result = {"command": "python experiments/instance_rates.py", "rows": rows}
        with replacing_file(options.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(found), flush=True)
    table = pd.DataFrame(rows).groupby(["draw", "learner"], sort=False)[list(METRICS)]
    print(table.mean().round(4).to_string())


def place(row: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return where a row stands in the result."""
    orders = ((DRAWS, "draw"), ((*SETS, *CHECKED), "set"), (LEARNERS, "learner"))
    kind, name, learner = (list(order).index(row[key]) for order, key in orders)
    return kind, name, row["seed"], learner


if __name__ == "__main__":
    main()
