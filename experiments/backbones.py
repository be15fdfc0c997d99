"""Other networks, other features and other terms of the risk, beside the default.

    pip install tabm rtdl_num_embeddings
    python experiments/backbones.py

writes ``experiments/results/backbones.json``, a row per (set, draw, seed, learner): average
precision over the rows and mAP over the labels of a fifth of the rows, and the CPU seconds of the
fit, those of estimating with them, and alone. `comes` does not need the two packages: without them
``--learners`` leaves theirs out. The sets are those of `recipes.py`, fewer of Yeast: 300 and, of
most, 1000 rows of each. Draws are one irrelevant pair in ten or in two excluded, and one pair in
ten asked, 80 % of the answers sure. Rates and class priors are estimated once for all learners.
Every learner has the passes over the rows and the linear model of the default, and differs by one
thing:

"TabM, k = 8"
    eight networks that share weights (two layers of 256 units, dropout 0.3) in the place of the
    two, each trained on its own risk. Sets of more than 2000 columns are left out.
"piecewise-linear embeddings"
    every dense column as 8 columns, one for each bin between quantiles, which go from 0 to 1 as a
    number crosses the bin, then standardised; rows keep their length. Sparse sets are left out.
"bias from 0"
    networks that do not start at the class prior.
"order bonus"
    a row whose labels with yes, or those still possible, weighted by how likely they are relevant,
    score above those that it excludes, is rewarded.
"rank bonus"
    a batch whose probabilities have a large nuclear norm is rewarded: many patterns, not few.

What the result holds already is not run again.
"""

import argparse
import copy
import importlib
import itertools
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from defaults import load, say
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

from comes.answers import Answers, State
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.methods import Counts, Likelihood, Rates
from comes.metrics import average_precision, mean_average_precision
from comes.models import Ensemble, InputLayer
from comes.models.tabular import Dropout
from comes.risks import LikelihoodRisk

RESULT = Path(__file__).parent / "results" / "backbones.json"
SETS = (
    *("scenes", "scene", "yeast", "emotions", "enron", "bibtex"),
    *("mirflickr5000", "YeastCC", "Corel5k", "goemotions", "medical", "yahoo-arts"),
)
SMALLER = {"emotions": (300,), "medical": (300,), "YeastCC": (300,)}  # of others, 1000 rows, too
DRAWS = ("answers", "0.1", "0.5")
N_MEMBERS, N_UNITS, N_BINS = 8, 256, 8
MOST_COLUMNS = 2000  # for TabM
SMOOTH = 1e-2  # added to squared singular values: the root has no slope at 0


class TabM(Ensemble):
    """An `Ensemble` whose hidden units are those of the package ``tabm``."""

    def __init__(self, d: int, q: int) -> None:
        super().__init__(d, q, N_UNITS, n_networks=N_MEMBERS, has_linear=True)
        self.inputs = InputLayer(1, 1).requires_grad_(False)  # its weights are those of `units`
        self.backbone: Any = importlib.import_module("tabm").make_tabm_backbone(
            d_in=d,
            n_blocks=2,
            d_block=N_UNITS,
            dropout=0.3,
            k=N_MEMBERS,
            start_scaling_init="random-signs",
            start_scaling_init_chunks=[1] * d,
        )
        for block in self.backbone.blocks:
            block[-1] = Dropout(block[-1].p)  # faster

    def units(self, x: Tensor) -> Tensor:
        """Return the hidden units of each member, (k, n, hidden).

        Of sparse rows the first layers of all members are computed as one wide layer.
        """
        (first, *rest), *blocks = self.backbone.blocks
        if x.layout is torch.sparse_csr:
            wide = first.r.T[:, :, None] * first.weight.T[:, None, :]
            layer = {"weight": wide.flatten(1), "bias": torch.zeros(wide[0].numel())}
            units: Tensor = torch.func.functional_call(self.inputs, layer, x)
            units = units.unflatten(1, (N_MEMBERS, -1)) * first.s + first.bias
        else:
            units = first(x[:, None].expand(-1, N_MEMBERS, -1))
        for part in (*rest, *blocks):
            units = part(units)
        return units.transpose(0, 1)


class Bonus(nn.Module):
    """The likelihood, less a reward of scores and answers; the ridge is chosen without it."""

    def __init__(self, risk: LikelihoodRisk, weight: float) -> None:
        super().__init__()
        self.risk, self.weight = risk, weight

    @property
    def costs_unasked(self) -> bool:
        """Whether pairs that nobody was asked about count."""
        return True

    def select_labels(self, labels: slice | Tensor) -> LikelihoodRisk:
        """Return the risk of some labels, without the reward."""
        return self.risk.select_labels(labels)

    def forward(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return the risk of one batch."""
        value: Tensor = self.risk(scores, answers)
        return value - self.weight * self.reward(scores, answers)

    def reward(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return what is rewarded."""
        raise NotImplementedError


class OrderBonus(Bonus):
    """Minus the mean over rows and relevant labels of log(1 + mean exp(excluded - relevant)).

    The mean is over the excluded labels of the row. It is at most the mean log sigmoid of the
    differences, and takes no pairs.
    """

    expected: Tensor  # how often a label is relevant where it is possible, (q,)

    def __init__(self, risk: LikelihoodRisk, weight: float, expected: Tensor) -> None:
        super().__init__(risk, weight)
        self.register_buffer("expected", expected)

    def reward(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return the mean over rows in which something can be compared."""
        if answers.dtype == torch.bool:
            excluded, relevant = ~answers, answers * self.expected
        else:
            excluded, relevant = answers == State.NO, (answers == State.YES).to(scores.dtype)
        both = excluded.any(dim=1) & (relevant.sum(dim=1) > 0)
        if not both.any():
            return scores.sum() * 0
        scores, excluded, relevant = scores[both], excluded[both], relevant[both]
        level = scores.masked_fill(~excluded, -torch.inf).logsumexp(dim=1, keepdim=True)
        level = level - excluded.sum(dim=1, keepdim=True).log()
        losses = (relevant * F.softplus(level - scores)).sum(dim=1) / relevant.sum(dim=1)
        return -losses.sum() / len(both)


class RankBonus(Bonus):
    """The nuclear norm of probabilities, as a share of the largest that their number can have."""

    def reward(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return the share."""
        P = scores.sigmoid()
        P = P if len(P) >= P.shape[1] else P.T
        squares: Tensor = torch.linalg.eigvalsh(P.T @ P)
        norm = (squares.clamp(min=0) + SMOOTH).sqrt().sum()
        return norm / (P.shape[1] * math.sqrt(len(P)))


class WithBonus(Likelihood):
    """The likelihood with a bonus, "order" or "rank", of some weight."""

    def __init__(self, *, bonus: str = "order", bonus_weight: float = 0.1) -> None:
        super().__init__()
        self.bonus, self.bonus_weight = bonus, bonus_weight

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Any:
        """Return the risk; where a model is judged, that of the likelihood."""
        risk: Any = super().make_risk(rates, counts, corrected=corrected)
        if not corrected:
            return risk
        if self.bonus == "rank":
            return RankBonus(risk, self.bonus_weight)
        possible = 1 - rates.no_rate * (1 - rates.class_prior)
        expected = torch.tensor(rates.class_prior / possible, dtype=torch.float32)
        return OrderBonus(risk, self.bonus_weight, expected)


SHARED, EMBEDDED = "TabM, k = 8", "piecewise-linear embeddings"
LEARNERS: dict[str, dict[str, Any]] = {
    "default": {},
    SHARED: {"model": TabM},
    EMBEDDED: {"scale": None},
    "bias from 0": {"optimizer": {"starts_at_prior": False}},
    "order bonus, 0.1": {"method": WithBonus(bonus="order", bonus_weight=0.1)},
    "order bonus, 0.3": {"method": WithBonus(bonus="order", bonus_weight=0.3)},
    "rank bonus, 0.3": {"method": WithBonus(bonus="rank", bonus_weight=0.3)},
}


def embed(rows: Any, X: Any) -> Any:
    """Return a column for each bin of a column of dense X, between quantiles of some rows.

    The columns are standardised and shortened, so that rows are as long as they were.
    """
    package: Any = importlib.import_module("rtdl_num_embeddings")
    all_rows = torch.from_numpy(np.asarray(X, np.float32))
    all_rows = all_rows[:, (all_rows[rows] != all_rows[rows[0]]).any(dim=0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of columns that have one bin
        bins = package.compute_bins(all_rows[rows], n_bins=N_BINS)
        found = package.PiecewiseLinearEncoding(bins)(all_rows).numpy()
    deviation = np.maximum(found[rows].std(axis=0), 1e-6)
    return (found - found[rows].mean(axis=0)) / deviation * np.sqrt(X.shape[1] / found.shape[1])


def run(name: str, draw: str, seed: int, titles: list[str]) -> list[dict[str, Any]]:
    """Return what the learners make of one draw."""
    warnings.simplefilter("ignore", ComesWarning)
    dataset = load(name, None)
    X, relevant, said = dataset.X, dataset.known_relevant(), say(dataset, draw, seed)
    X = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    answers = said if isinstance(said, Answers) else Answers.from_candidates(said)
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    shared: dict[str, Any] = {"random_state": seed, "verbose": -1, "device": "cpu"}
    started = time.process_time()
    first = CandidateClassifier(model="linear", epochs=1, **shared)
    first.fit(X[train], answers=answers[train])
    estimating = time.process_time() - started
    names = {"no": "no_rate_", "yes": "yes_rate_"}
    names = {"exclude": "no_rate_"} if answers.kind == "candidates" else names
    shared["rates"] = {key: getattr(first, value) for key, value in names.items()}
    shared["class_prior"] = first.class_prior_
    rows = []
    for title in titles:
        if title == EMBEDDED and sparse.issparse(X):
            continue
        if title == SHARED and X.shape[1] > MOST_COLUMNS:
            continue
        started = time.process_time()
        features = embed(train, X) if title == EMBEDDED else X
        classifier = CandidateClassifier(**shared, **copy.deepcopy(LEARNERS[title]))
        classifier.fit(features[train], answers=answers[train])
        seconds = time.process_time() - started
        if title == "default":  # another network would have fewer passes
            shared["epochs"] = len(classifier.history_.risk)
        scores = classifier.decision_function(features[test])
        row: dict[str, Any] = {"set": name, "draw": draw, "seed": seed, "learner": title}
        row["average_precision"] = round(average_precision(scores, relevant[test]), 4)
        row["mean_average_precision"] = round(mean_average_precision(scores, relevant[test]), 4)
        row["seconds"] = round(estimating + seconds, 2)
        rows.append(row | {"estimating": round(estimating, 2)})
    return rows


def main() -> None:
    """Run what is missing, and write the result after every task."""
    parser = argparse.ArgumentParser(description="Other backbones beside the default.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sizes", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--draws", nargs="+", default=DRAWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="tasks at a time")
    parser.add_argument("--limit", type=float, default=np.inf, help="start nothing after seconds")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(row["set"], row["draw"], row["seed"]) for row in rows}
    titles = ["default", *(title for title in options.learners if title != "default")]
    tasks = [
        (f"{name}:{n}", draw, seed, titles)
        for seed, n, name, draw in itertools.product(
            options.seeds, options.sizes, options.sets, options.draws
        )
        if n in SMALLER.get(name, (300, 1000)) and (f"{name}:{n}", draw, seed) not in done
    ]
    started = time.monotonic()
    work = Parallel(
        n_jobs=options.workers, return_as="generator_unordered", pre_dispatch="1*n_jobs"
    )
    todo = (task for task in tasks if time.monotonic() - started < options.limit)
    for found in work(delayed(run)(*task) for task in todo):
        rows += found
        rows.sort(
            key=lambda r: (r["set"], r["draw"], r["seed"], list(LEARNERS).index(r["learner"]))
        )
        result = {"command": "python experiments/backbones.py", "rows": rows}
        with replacing_file(options.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{time.monotonic() - started:.0f}", json.dumps(found[0]), flush=True)
    print(summarise(pd.DataFrame(rows)))


def summarise(table: pd.DataFrame) -> str:
    """Return means over sets of what changed against the default, and its least and its most."""
    metrics = ["average_precision", "mean_average_precision", "seconds"]
    by_set: Any = table.groupby(["draw", "set", "learner"])[metrics].mean().unstack()
    found = []
    for draw, part in by_set.groupby(level=0):
        for learner in part["seconds"]:
            own = part.xs(learner, axis=1, level=1).dropna()
            usual = part.xs("default", axis=1, level=1).loc[own.index]
            row = {"draw": draw, "learner": learner, "sets": len(own)}
            for title, metric in zip(("AP", "mAP"), metrics[:2], strict=True):
                change = own[metric] - usual[metric]
                row |= {title: change.mean(), f"{title} least": change.min()}
                row |= {f"{title} most": change.max(), f"{title} worst set": change.idxmin()[1]}
            found.append(row | {"cost": own["seconds"].sum() / usual["seconds"].sum()})
    return str(pd.DataFrame(found).round(3).to_string())


if __name__ == "__main__":
    main()
