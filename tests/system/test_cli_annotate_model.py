"""`comes annotate` and `comes fit`: from answers to a model, with rates and priors estimated."""

import json
from pathlib import Path

import pandas as pd

from command_line import Run
from projects import Projects
from test_cli_annotate import N, answer_all, init
from test_cli_annotate import folder as folder  # fixtures
from test_cli_annotate import run as run


def test_a_fit_of_exported_answers_estimates_the_rates(
    run: Run, folder: Path, projects: Projects
) -> None:
    init(run, "--rate", "0.8")
    answer_all(projects, folder)
    exported = run("annotate", "export", "news", "-o", "answers.parquet", "--json")
    counts = json.loads(exported.stdout)
    assert counts["asked"] == 96 and counts["file"] == "answers.parquet"
    assert 0 < counts["surely_not"] < 96
    fitted = run(*("fit", "answers.parquet", "--features", "X.npz", "-o", "model", "--epochs", "2"))
    assert f"{N} rows, 5 features, 2 labels" in fitted.stdout
    assert "method: likelihood\n" in fitted.stdout
    no = counts["surely_not"]
    assert f"96 of 120 pairs asked: {no} no, 0 yes, {96 - no} maybe" in fitted.stdout
    assert "rates: no " in fitted.stdout
    assert " estimated\n" in fitted.stdout
    run("predict", "X.npz", "-m", "model", "-o", "predictions.csv")
    assert len(pd.read_csv(folder / "predictions.csv")) == N


def test_a_report_with_features_estimates_priors(
    run: Run, folder: Path, projects: Projects
) -> None:
    init(run, "--rate", "0.8")
    answer_all(projects, folder)
    command = ("annotate", "report", "news", "--features", "X.npz")
    output = run(*command, "-o", "report.html", "--json").stdout
    for row in json.loads(output)["classes"]:
        assert 0 <= row["prior_lower"] <= row["class_prior"] <= row["prior_upper"] <= 1
    assert "relevant, estimated" in (folder / "report.html").read_text(encoding="utf-8")
