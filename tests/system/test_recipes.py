"""The recipes of docs/guide/recipes.md: each block of code runs, and does what the page says."""

import importlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from comes import CandidateClassifier
from comes.images.backbones import import_torchvision
from comes.risks import HammingRisk
from comes.training import split_risk

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "recipes.md").read_text(encoding="utf-8")


def blocks(title: str) -> list[str]:
    """Return the Python blocks of a section."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```py\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found, title
    return found


# HTTP

NAMES = ["height", "width", "depth"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CandidateClassifier, Any]:
    """Return a saved model, and rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=NAMES)
    clf = CandidateClassifier("bce", epochs=5, random_state=0)
    clf.fit(X, X.to_numpy()[:, :2] > 0, label_names=["sky", "sea"])
    folder = tmp_path_factory.mktemp("served")
    clf.save(folder / "model")
    return folder, clf, X


@pytest.fixture(scope="module")
def address(model: tuple[Path, CandidateClassifier, Any]) -> Iterator[str]:
    """Start the recipe's server in a process of its own; yield where it answers."""
    folder, _, _ = model
    (code,) = blocks("Predictions over HTTP")
    (folder / "serve.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "uvicorn", "serve:app", "--port", "0"]
    server = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"COMES_MODEL": "model"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    try:
        lines = []
        for line in server.stdout:  # until it listens, or ends
            lines.append(line)
            if found := re.search(r"running on (http://127.0.0.1:\d+)", line):
                yield found[1]
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def ask(address: str, body: Any) -> tuple[int, Any]:
    """Return the status and the answer of the server to rows."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{address}/predict", data, {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_a_server_gives_the_probabilities_of_the_model_by_name(
    address: str, model: tuple[Path, CandidateClassifier, Any]
) -> None:
    _, clf, X = model
    rows = X[:7].to_dict("records")
    status, answer = ask(address, {"rows": rows})
    assert status == 200 and len(answer) == 7
    found = [[row[name]["probability"] for name in ("sky", "sea")] for row in answer]
    np.testing.assert_allclose(found, clf.predict_proba(X[:7]), atol=1e-6)
    chosen = [[row[name]["relevant"] for name in ("sky", "sea")] for row in answer]
    np.testing.assert_array_equal(chosen, clf.predict(X[:7]) == 1)
    shuffled = [{name: row[name] for name in reversed(NAMES)} for row in rows]
    assert ask(address, {"rows": shuffled}) == (200, answer)


def test_a_server_refuses_what_does_not_fit(address: str) -> None:
    good = dict.fromkeys(NAMES, 1.0)
    wrong: list[tuple[Any, str]] = [
        ({"rows": [{**good, "weight": 1}]}, "weight"),
        ({"rows": [{"height": 1.0}]}, "width"),
        ({"rows": [{**good, "depth": "deep"}]}, "depth"),
        ({"rows": []}, "rows"),
        ({"rows": [good] * 1001}, "1000"),
        (b'{"rows": [{"height": NaN, "width": 1, "depth": 1}]}', "height"),
        (b"not json", "json"),
    ]
    for body, named in wrong:
        status, answer = ask(address, body)
        assert status == 422 and named in json.dumps(answer).lower(), (body, answer)
    assert ask(address, {"rows": [good]})[0] == 200, "and goes on"


def test_a_model_of_a_table_takes_its_cells_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"colour": rng.choice(["red", "blue"], 80), "size": rng.normal(size=80)})
    table.loc[3, "size"] = np.nan
    clf = CandidateClassifier("bce", epochs=2, random_state=0)
    clf.fit(table, (table["colour"] == "red").to_numpy()[:, None], label_names=["warm"])
    clf.save(tmp_path / "model")
    monkeypatch.setenv("COMES_MODEL", str(tmp_path / "model"))
    names: dict[str, Any] = {"__name__": "serve"}
    exec(compile(blocks("Predictions over HTTP")[0], "recipes.md", "exec"), names)
    rows = [{"colour": "red", "size": 1.5}, {"colour": "blue", "size": None}]
    answer = names["predict"](names["Rows"](rows=rows))
    expected = clf.predict_proba(pd.DataFrame(rows))[:, 0]
    np.testing.assert_allclose([row["warm"]["probability"] for row in answer], expected, atol=1e-6)


# Exact micro-batches

torch.manual_seed(0)
ROWS = torch.randn(64, 5)
CANDIDATES = torch.rand(64, 3) < 0.7
PRIOR = torch.full((3,), 0.3)


def with_dropout() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


def test_parts_of_a_risk_repeat_dropout_and_leave_statistics_alone() -> None:
    network, risk = with_dropout(), HammingRisk(PRIOR)
    before = [buffer.clone() for buffer in network.buffers()]
    pieces, known = ROWS.split(16), CANDIDATES.split(16)
    parts = split_risk(network, pieces, known, risk)
    for buffer, old in zip(network.buffers(), before, strict=True):
        torch.testing.assert_close(buffer, old)
    scores = []
    for part, rows in zip(parts, pieces, strict=True):
        part.repeat_dropout()
        scores.append(network(rows))
    whole = torch.cat(scores)
    losses = [part.loss(own) for part, own in zip(parts, scores, strict=True)]
    total, first = torch.stack(losses).sum(), next(network.parameters())
    torch.testing.assert_close(total, risk(whole, CANDIDATES))  # the same units were left out
    exact = torch.autograd.grad(risk(whole, CANDIDATES), first, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(total, first), exact)


@pytest.mark.needs("lightning")
@pytest.mark.filterwarnings("ignore")
def test_lightning_in_parts_trains_as_in_whole_batches() -> None:
    import_torchvision(needed_by="lightning")
    ended = {}
    for part_size in (50, None):
        first, second = blocks("Lightning")
        names: dict[str, Any] = {"X": ROWS, "candidates": CANDIDATES}
        exec(compile(first, "recipes.md", "exec"), names)
        torch.manual_seed(0)
        code = second.replace("part_size=50", f"part_size={part_size}")
        exec(compile(code.replace("batch_size=128", "batch_size=32"), "recipes.md", "exec"), names)
        ended[part_size] = names["learner"].network.weight.detach().clone()
        assert names["trainer"].global_step == 6
    torch.testing.assert_close(ended[50], ended[None])
    torch.manual_seed(0)
    assert (nn.Linear(5, 3).weight - ended[50]).abs().max() > 1e-3, "it was trained"


@pytest.mark.needs("transformers")
@pytest.mark.filterwarnings("ignore")
def test_micro_batches_of_the_trainer_are_one_large_batch(tmp_path: Path) -> None:
    import_torchvision(needed_by="transformers")
    transformers: Any = importlib.import_module("transformers")

    exact, use = blocks("Hugging Face's Trainer")
    risk = HammingRisk(PRIOR)
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(0, 30, (64, 6), generator=generator)
    dataset = [{"input_ids": row, "labels": s} for row, s in zip(words, CANDIDATES, strict=True)]

    def arguments(**given: Any) -> Any:
        return transformers.TrainingArguments(
            output_dir=str(tmp_path),
            learning_rate=0.05,
            optim="sgd",
            max_grad_norm=1e9,
            num_train_epochs=2,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            remove_unused_columns=False,
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
            **given,
        )

    def make() -> Any:
        torch.manual_seed(0)
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = transformers.BertConfig(
            vocab_size=30,
            intermediate_size=16,
            num_labels=3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **sizes,
        )
        return transformers.BertForSequenceClassification(config)

    def train(code: str) -> tuple[float, Any]:
        names: dict[str, Any] = {
            "model": make(),
            "arguments": arguments,
            "dataset": dataset,
            "risk": risk,
        }
        exec(compile(exact, "recipes.md", "exec"), names)
        exec(compile(code, "recipes.md", "exec"), names)
        return names["reported"], names["model"].classifier.weight.detach()

    loss, weight = train(use)
    large = use.replace("train_batch_size=8, gradient_accumulation_steps=4", "train_batch_size=32")
    assert large != use
    expected_loss, expected = train(large)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-6)

    naive = make()
    plain = transformers.Trainer(
        model=naive,
        args=arguments(per_device_train_batch_size=8, gradient_accumulation_steps=4),
        train_dataset=dataset,
        compute_loss_func=lambda outputs, labels, **_: risk(outputs.logits, labels),
    )
    assert plain.train().training_loss > 3 * expected_loss, "what the page warns of"
    assert (naive.classifier.weight - expected).abs().max() > 1e-3
