"""Predictions as a workflow: the best labels in every format, and ONNX."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.datasets import Dataset, make_scenes
from comes.datasets.matrices import write_npz
from comes.datasets.predictions import top_table, write_prediction_table
from comes.datasets.table import read_table
from comes.errors import ComesError, ComesWarning
from comes.estimator import base
from comes.metrics import ndcg_at_k, precision_at_k
from comes.workflows import predict as predict_module
from comes.workflows.judge import judge_top
from comes.workflows.predict import export_model, predict_items
from command_line import command_runner

N, Q, K = 60, 10, 3
NAMES = ["NA", "a;b", "the sea", *(f"digit {j}" for j in range(3, Q))]
ITEMS = [f"00{row}" for row in range(N)]
SCENES = replace(make_scenes(n=N), label_names=NAMES, items=ITEMS)
MODEL = CandidateClassifier("bce", epochs=1, hidden=8, random_state=0)
MODEL.fit(SCENES.X, SCENES.known_relevant(), label_names=NAMES)
TOP = MODEL.predict_top(SCENES.X, K)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 17)  # so that a file has several parts


def test_a_table_has_a_row_for_each_item_and_label(tmp_path: Path) -> None:
    for ending in ("csv", "tsv", "csv.gz", "parquet", "xlsx"):
        path = tmp_path / f"top.{ending}"
        assert len(predict_items(MODEL, SCENES, path, top=K, scores=True)) == N * K
        table = read_table(path, ["item", "label"])
        assert list(table.columns) == ["item", "rank", "label", "probability", "score"], ending
        assert table["item"].tolist() == [item for item in ITEMS for _ in range(K)], ending
        assert table["rank"].tolist() == [1, 2, 3] * N, ending
        assert table["label"].tolist() == [NAMES[label] for label in TOP.labels.ravel()], ending
        np.testing.assert_allclose(table["probability"], TOP.probabilities.ravel(), atol=1e-6)
        np.testing.assert_allclose(table["score"], TOP.scores.ravel(), rtol=1e-5)


def test_lines_of_json_have_a_list_for_each_item(tmp_path: Path) -> None:
    path = tmp_path / "top.jsonl"
    predict_items(MODEL, SCENES, path, top=K)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["item"] for line in lines] == ITEMS
    for line, labels, chances in zip(lines, TOP.labels, TOP.probabilities, strict=True):
        assert [one["label"] for one in line["top"]] == [NAMES[label] for label in labels]
        assert [one["probability"] for one in line["top"]] == pytest.approx(chances, abs=1e-6)


def test_items_without_names_are_numbered_through_all_parts(tmp_path: Path) -> None:
    unnamed = replace(SCENES, items=None)
    predict_items(MODEL, unnamed, tmp_path / "top.csv", top=1)
    predict_items(MODEL, unnamed, tmp_path / "top.jsonl", top=1)
    assert pd.read_csv(tmp_path / "top.csv")["item"].tolist() == list(range(N))
    lines = pd.read_json(tmp_path / "top.jsonl", lines=True)
    assert lines["item"].tolist() == list(range(N))


def test_what_cannot_be_written_is_refused_before_anything_is_scored(tmp_path: Path) -> None:
    for top in (0, Q + 1):
        with pytest.raises(ComesError, match=rf"\(--top\) must be 1 to {Q}.*got {top}"):
            predict_items(MODEL, SCENES, tmp_path / "top.csv", top=top)
    with pytest.raises(ComesError, match=r"top.txt should end in .*\.jsonl"):
        predict_items("no model", SCENES, tmp_path / "top.txt", top=1)
    with pytest.raises(ComesError, match="is not a folder"):
        predict_items("no model", SCENES, tmp_path / "none" / "top.csv", top=1)
    assert list(tmp_path.iterdir()) == []


def test_repeated_items_are_told(tmp_path: Path) -> None:
    table = pd.DataFrame({"red": np.arange(4.0), "blue": 0.5})
    model = CandidateClassifier("bce", epochs=1, hidden=4).fit(table, np.eye(4)[:, :2])
    table.assign(photo="same").to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(ComesWarning, match="'same' occurs more than once"):
        predict_items(model, tmp_path / "new.csv", tmp_path / "top.csv", top=1, item="photo")


def test_a_part_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def tables() -> Iterator[pd.DataFrame]:
        names = np.array(NAMES, dtype=object)
        yield top_table(TOP.labels, TOP.probabilities, names, ITEMS)
        raise ComesError("the next part fails")

    for ending in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"top.{ending}"
        path.write_text("of yesterday")
        with pytest.raises(ComesError, match="the next part fails"):
            write_prediction_table(tables(), path)
        assert path.read_text() == "of yesterday", ending
        path.unlink()
        assert list(tmp_path.iterdir()) == [], ending


def test_the_command_writes_the_best_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = command_runner(monkeypatch, capsys)
    MODEL.save("model")
    write_npz(SCENES, "scenes.npz")
    command = ("predict", "scenes.npz", "-m", "model", "--top", str(K), "-o", "top.csv")
    summary = json.loads(run(*command, "--json").stdout)
    assert summary == {"rows": N, "file": "top.csv"}
    table = pd.read_csv("top.csv", keep_default_na=False)
    assert list(table.columns) == ["item", "rank", "label", "probability"] and len(table) == N * K
    for option in ("--page", "--ask-next"):
        error = run(*command, option, "next.csv", code=1).stderr
        assert "need the scores of all labels: leave top (--top) out" in error


def test_the_best_labels_are_judged_as_all_scores_are() -> None:
    held_out = make_scenes(n=50, seed=1)
    truth = held_out.known_relevant().copy()
    truth[:4] = False
    scores = MODEL.decision_function(held_out.X)
    data = replace(held_out, relevant=truth, label_names=NAMES)
    for top, ks in ((1, [1]), (2, [1, 2]), (5, [1, 3, 5]), (7, [1, 3, 5, 7])):
        judged = judge_top(MODEL, data, top)
        expected = {f"precision@{k}": precision_at_k(scores, truth, k) for k in ks}
        expected |= {f"ndcg@{k}": ndcg_at_k(scores, truth, k) for k in ks}
        expected |= {"rows": 50, "rows_without_relevant": 4}
        assert judged == pytest.approx(expected), top


def test_the_command_prints_how_good_the_best_labels_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = command_runner(monkeypatch, capsys)
    MODEL.save("model")
    write_npz(SCENES, "scenes.npz")
    command = ("evaluate", "scenes.npz", "-m", "model", "--top", str(K))
    found = json.loads(run(*command, "--json").stdout)
    assert found == pytest.approx(judge_top(MODEL, SCENES, K))
    assert found["rows_seen_in_training"] == N
    printed = run(*command).stdout
    assert f"precision@3: {found['precision@3']:.4g}" in printed
    assert "rows without relevant: 0" in printed and "rows seen in training: 60" in printed
    assert "--top compares with true labels" in run(*command, "--priors", "p.csv", code=1).stderr
    candidates = Dataset(SCENES.X, NAMES, SCENES.known_relevant())
    write_npz(candidates, "candidates.npz")
    error = run("evaluate", "candidates.npz", *command[2:], code=1).stderr
    assert "true labels are needed" in error


# ONNX

FEATURES = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


def test_an_export_says_how_far_the_file_is_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: Any, path: Path) -> Path:
        path.write_bytes(b"a file")
        return path

    clf = CandidateClassifier("bce", epochs=1, hidden=4, random_state=0).fit(
        FEATURES, FEATURES[:, :3] > 0
    )
    monkeypatch.setattr(predict_module, "export_onnx", write)
    monkeypatch.setattr(predict_module, "measure_onnx", lambda *_: 1e-6)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert exported["difference"] == 1e-6
    assert exported["input"] == "features: float32 (n, 4)"
    table = pd.DataFrame(
        {"size": FEATURES[:, 0], "colour": np.where(FEATURES[:, 1] > 0, "red", "blue")}
    )
    clf.fit(table, FEATURES[:, :3] > 0)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert exported["input"] == f"features: float32 (n, {clf.n_inputs_}), encoded from 2 columns"
    monkeypatch.setattr(predict_module, "measure_onnx", lambda *_: 0.02)
    with pytest.warns(ComesWarning, match="up to 0.02 away .* more than 1e-05"):
        export_model(clf, tmp_path / "model.onnx")
    monkeypatch.setattr(predict_module, "find_spec", lambda _: None)
    assert export_model(clf, tmp_path / "model.onnx")["difference"] is None


def test_the_target_of_an_export_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"model.bin should end in .onnx"):
        export_model("no such model", tmp_path / "model.bin")
    with pytest.raises(ComesError, match="is not a folder"):
        export_model("no such model", tmp_path / "missing" / "model.onnx")
