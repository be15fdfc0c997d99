"""What the absolute value of COMES-HL does in training: the same network with and without it.

    python experiments/correction.py

writes ``experiments/results/correction.json``: after every epoch, the unbiased estimate of the risk
on the training rows, the risk that it estimates (BCE with the true labels of the same rows), the
same on rows that training did not see, and their average precision. Scenes of the demo, one
irrelevant label in ten excluded, true class priors.
"""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from comes.datasets import make_scenes
from comes.files import replacing_file
from comes.generation import case_b
from comes.metrics import average_precision
from comes.models import mlp
from comes.risks import bce_risk, hamming_risk

RESULT = Path(__file__).parent / "results" / "correction.json"
N_ROWS, RATE, EPOCHS, BATCH_SIZE, LEARNING_RATE = 4000, 0.1, 60, 200, 5e-4
CORRECTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "unbiased": torch.positive,
    "corrected": torch.abs,
}


def train(model: torch.nn.Module, correction: Callable[[Tensor], Tensor]) -> list[dict[str, float]]:
    """Train a network, and return what its risks are after every epoch."""
    rows, unseen = make_scenes("train", n=N_ROWS), make_scenes("test", n=2000)
    X, unseen_X = torch.tensor(rows.X).float(), torch.tensor(unseen.X).float()
    relevant, truth = torch.tensor(rows.known_relevant()), unseen.known_relevant()
    candidates = torch.tensor(case_b(relevant.numpy(), exclude_rate=RATE))
    prior, share = relevant.double().mean(dim=0), (~candidates).double().mean(dim=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    history = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(N_ROWS).split(BATCH_SIZE):
            risk = hamming_risk(
                model(X[batch]),
                candidates[batch],
                prior,
                correction=correction,
                exclude_share=share,
            )
            optimizer.zero_grad()
            risk.backward()
            optimizer.step()
        with torch.no_grad():
            scores, unseen_scores = model(X), model(unseen_X)
        estimate = hamming_risk(scores, candidates, prior, correction=torch.positive)
        found = {
            "estimate": float(estimate),
            "truth": float(bce_risk(scores, relevant)),
            "unseen": float(bce_risk(unseen_scores, torch.tensor(truth))),
            "average_precision": average_precision(unseen_scores.numpy(), truth),
        }
        history.append({key: round(value, 4) for key, value in found.items()})
    return history


def main() -> None:
    """Train both from the same weights and write the result."""
    torch.manual_seed(0)
    model = mlp(256, 10)
    result: dict[str, Any] = {"command": "python experiments/correction.py"}
    for name, correction in CORRECTIONS.items():
        torch.manual_seed(1)
        result[name] = train(copy.deepcopy(model), correction)
        print(name, result[name][-1])
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
