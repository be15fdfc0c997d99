"""Fits on shards: the model that training in memory gives, kept through a kill, any labels."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from comes import Answers, CandidateClassifier
from comes.datasets import open_shards
from comes.errors import ComesError
from comes.estimator import count_seen_rows
from comes.estimator.row_training import Start, prepare_rows
from comes.models import find_label_head
from comes.training import BlockOrder

N, D, Q, PARTS = 120, 5, 3, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N * PARTS, D)).astype(np.float32)
RELEVANT = X @ RNG.normal(size=(D, Q)) > 0.3
NO = ~RELEVANT & (RNG.random(RELEVANT.shape) < 0.5)
NAMES = ["sea", "sky", "sun"]


def write_shards(folder: Path, *, with_words: bool = False) -> Path:
    for part in range(PARTS):
        rows = slice(part * N, (part + 1) * N)
        table = pd.DataFrame(X[rows], columns=list("abcde"))
        if with_words:
            table["place"] = np.where(RELEVANT[rows, 0], "coast", "inland")
            table["note"] = np.where(RELEVANT[rows, 1], "blue above", "grey above all")
        for label, name in enumerate(NAMES):
            table[name] = np.where(NO[rows, label], 0, 1)
        table.to_parquet(folder / f"part-{part}.parquet", index=False)
    return folder


def shards_of(folder: Path) -> Any:
    return open_shards(folder, labels=tuple(NAMES))


def make(method: str = "likelihood", **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 3, "hidden": 8, "device": "cpu", "random_state": 0}
    given |= {"progress": False}
    return CandidateClassifier(method, **(given | settings))


def weights(classifier: CandidateClassifier) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in classifier.module_.parameters()])


@pytest.mark.parametrize("method", ["likelihood", "comes-hl", "comes-rl", "bce", "gdf"])
def test_a_stream_gives_the_model_of_rows_in_memory(method: str, tmp_path: Path) -> None:
    shards = shards_of(write_shards(tmp_path))
    known = {"class_prior": RELEVANT.mean(axis=0)} if method.startswith(("co", "li")) else {}
    streamed = make(method, **known).fit_stream(shards, buffer_rows=2 * N)
    other = make(method, **known)
    answers = Answers.from_candidates(~NO, NAMES)
    start = Start(scaling=streamed.scaling_)
    training = prepare_rows(other, X, answers, start)
    options = replace(training.options, order=BlockOrder(shards.sizes, 2 * N))
    replace(training, options=options).run()
    if method == "gdf":  # which draws an excluded label of every row, block by block
        assert torch.isfinite(weights(streamed)).all()
    else:
        assert torch.equal(weights(streamed), weights(other))
    assert streamed.trained_on_ == {"rows": N * PARTS, "kind": "candidates"}


def test_priors_are_estimated_and_predictions_are_as_good_as_of_a_fit(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 20, "hidden": 50}
    fitted = make(**settings).fit_stream(shards_of(write_shards(tmp_path)))
    assert abs(fitted.class_prior_ - RELEVANT.mean(axis=0)).max() < 0.15
    frame = pd.DataFrame(X, columns=list("abcde"))
    in_memory = make(**settings).fit(frame, ~NO, label_names=NAMES)
    assert count_seen_rows(fitted, frame) == len(frame)
    assert abs(fitted.score(frame, RELEVANT) - in_memory.score(frame, RELEVANT)) < 0.03


def test_a_table_with_words_is_encoded(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, with_words=True)
    fitted = make(epochs=10).fit_stream(shards_of(folder))
    table = pd.read_parquet(folder / "part-1.parquet").drop(columns=NAMES)
    assert fitted.predict(table).shape == (N, Q)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(table), fitted.decision_function(table))


def write_many(folder: Path, q: int = 3000) -> Any:
    """Write shards with many labels, three ticked a row, in the form of LIBSVM."""
    rng = np.random.default_rng(1)
    for part in range(3):
        ticked = sparse.csr_array(rng.random((N, q)) < 3 / q)
        lines = [
            ",".join(str(label) for label in np.flatnonzero(row)) + f" {i % 7}:1 8:0.5"
            for i, row in enumerate(ticked.toarray())
        ]
        (folder / f"part-{part}.svm").write_text(f"{N} 9 {q}\n" + "\n".join(lines) + "\n")
    return open_shards(folder, labels_are="positives")


@pytest.mark.parametrize("method", ["likelihood", "bce"])
def test_many_labels_are_streamed_in_chunks(method: str, tmp_path: Path) -> None:
    shards = replace(write_many(tmp_path), is_sparse=True)
    known = {"yes_rate": 1.0} if method == "likelihood" else {}
    fitted = make(method, n_networks=1, **known).fit_stream(shards)
    assert find_label_head(fitted.module_).n_labels == len(shards.label_names)
    assert np.isfinite(fitted.history_.risk).all()
    top = fitted.predict_top(sparse.csr_array((2, 9)), 5)
    assert top.labels.shape == (2, 5)


def test_a_method_that_compares_labels_takes_blocks_as_matrices(tmp_path: Path) -> None:
    shards = replace(shards_of(write_shards(tmp_path)), is_sparse=True)
    fitted = make("comes-rl", class_prior=[0.4] * Q).fit_stream(shards)
    assert np.isfinite(fitted.history_.risk).all()


def test_maybe_is_left_out_where_somebody_else_says_yes(tmp_path: Path) -> None:
    for part, word in enumerate(("yes", "maybe")):
        table = pd.DataFrame({"a": X[:N, 0], "sea": np.where(X[:N, 0] > 0, word, "no")})
        table.to_parquet(tmp_path / f"{part}.parquet", index=False)
    fitted = make("bce").fit_stream(open_shards(tmp_path, labels=("sea",)))
    assert fitted.trained_on_ == {"rows": 2 * N, "kind": "answers"}
    sure = make("bce").fit_stream(open_shards(tmp_path / "0.parquet", labels=("sea",)))
    assert fitted.history_.risk[0] < sure.history_.risk[0]  # half of the "yes" are left out


CHILD = """
    import sys, time
    from comes import CandidateClassifier
    from comes.datasets import open_shards
    shards = open_shards(sys.argv[1], labels=("sea", "sky", "sun"))
    slow = lambda X: (time.sleep(float(sys.argv[3])), X)[1]
    shards = shards if not float(sys.argv[3]) else shards.__class__(
        **{**shards.__dict__, "load_rows": lambda f, b, load=shards.load_rows: slow(load(f, b))})
    clf = CandidateClassifier("likelihood", epochs=4, hidden=8, device="cpu", random_state=0,
        progress=False, batch_size=16, class_prior=[0.4, 0.4, 0.4])
    clf.fit_stream(shards, buffer_rows=120, checkpoint=sys.argv[2], checkpoint_every=0.0)
    clf.save(sys.argv[2] + ".model")
"""


def test_a_kill_in_the_middle_of_an_epoch_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    write_shards(folder)
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))

    def start(name: str, delay: str) -> Any:
        arguments = [sys.executable, script, folder, tmp_path / name, delay]
        return subprocess.Popen([*map(str, arguments)], env=os.environ | {"OMP_NUM_THREADS": "1"})

    assert start("through", "0").wait() == 0
    child = start("killed", "0.3")
    deadline = time.monotonic() + 120
    while not (tmp_path / "killed").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    state = torch.load(tmp_path / "killed", weights_only=True)
    assert state  # somewhere in the training
    assert start("killed", "0").wait() == 0
    one, other = (
        weights(CandidateClassifier.load(tmp_path / f"{name}.model"))
        for name in ("through", "killed")
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"early_stopping": True}, "neither hold rows out nor learn thresholds"),
        ({"threshold": "f1"}, "Set them to False and 'auto'"),
        ({"warm_start": True}, "fit_stream starts anew"),
        ({"exclude_rate": "instance"}, "do not depend on the instance"),
    ],
)
def test_settings_that_need_all_rows_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ComesError, match=message):
        make(**settings).fit_stream(write_shards(tmp_path))


def test_shards_without_answers_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0], "relevant": ["sea"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ComesError, match="needs rows with features and answers"):
        make().fit_stream(open_shards(tmp_path, relevant=("relevant",)))
