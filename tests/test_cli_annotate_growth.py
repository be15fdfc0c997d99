"""`comes annotate add`, `learn`, `report` and `export` of a project that grows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import comes.annotate
from comes.annotate import open_project
from comes.workflows import annotate as active_jobs
from comes.workflows.fit import fit_model
from command_line import Run, command_runner
from projects import Desk, Projects, all_cards

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # few answers
KINDS = ("rain", "goal")
SHORT = {"epochs": 1, "hidden": 8, "n_networks": 1, "no_rate": 0.9, "yes_rate": 0.9}


def write_texts(path: Path, numbers: range) -> None:
    rng = np.random.default_rng(numbers.start)
    kinds = rng.choice(KINDS, len(numbers)).tolist()
    items = [f"{kind} {k}" for kind, k in zip(kinds, numbers, strict=True)]
    pd.DataFrame({"item": items, "text": [f"about {kind} and so on" for kind in kinds]}).to_csv(
        path, index=False
    )


@pytest.fixture
def run(
    tmp_path: Path,
    projects: Projects,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command line in a folder with a project of which everything asked is answered."""
    monkeypatch.chdir(tmp_path)

    def kept(folder: Any) -> Any:
        return projects.keep(open_project(folder))

    def fit_shortly(data: Any, settings: dict[str, Any], **options: Any) -> Any:
        return fit_model(data, settings | SHORT, **options)

    for module in (comes.annotate,):
        monkeypatch.setattr(module, "open_project", kept)
    monkeypatch.setattr(active_jobs, "fit_model", fit_shortly)
    write_texts(tmp_path / "texts.csv", range(80))
    (tmp_path / "classes.txt").write_text("\n".join(KINDS))
    run = command_runner(monkeypatch, capsys)
    sources = ("--items", "texts.csv", "--classes", "classes.txt")
    run("annotate", "init", "news", *sources, "--rate", "0.25")
    answer(projects, tmp_path)
    return run


def answer(projects: Projects, folder: Path) -> None:
    project = projects.keep(open_project(folder / "news"))
    said: dict[bool, Any] = {True: "yes", False: "no"}
    Desk(project).answer_all(lambda card: said[card["name"].startswith(card["class"])], now=1.0)


def test_items_and_classes(run: Run, tmp_path: Path) -> None:
    write_texts(tmp_path / "more.csv", range(80, 100))
    command = ("annotate", "add", "news", "--items", "more.csv")
    added = json.loads(run(*command, "--json").stdout)
    assert added == {"items_added": 20, "left_out": 0, "cards_added": 10}
    again = run(*command)
    assert "cards added: 0" in again.stdout
    assert again.stderr == "20 names that the project has are left out.\n"
    (tmp_path / "more.txt").write_text("travel\n")
    added = json.loads(run("annotate", "add", "news", "--new-classes", "more.txt", "--json").stdout)
    assert added == {"classes_added": 1, "left_out": 0, "cards_added": 25}


def test_active_draws_and_what_the_report_makes_of_them(
    run: Run, tmp_path: Path, projects: Projects
) -> None:
    command = ("annotate", "add", "news", "--active", "auto", "--cards", "10")
    drawn = json.loads(run(*command, "--json").stdout)
    assert (drawn["round"], drawn["learned_from"], drawn["cards_added"]) == (1, 40, 10)
    answer(projects, tmp_path)
    output = run("annotate", "report", "news").stdout
    assert "yes of all" in output and "no of all" in output
    shares = json.loads(run("annotate", "report", "news", "--json").stdout)["shares"]
    items = pd.read_csv(tmp_path / "texts.csv")["item"]
    for row in shares:
        truth = items.str.startswith(row["class"]).mean()
        assert row["asked"] == 25 and row["yes_lower"] <= truth <= row["yes_upper"]
        assert row["no"] == pytest.approx(1 - row["yes"], abs=0.05)
    run("annotate", "export", "news", "-o", "answers.csv")
    table = pd.read_csv(tmp_path / "answers.csv")
    own = table[table["source"] == "active"]
    assert len(own) == 10 and own["probability"].between(0, 1, inclusive="right").all()


def test_learning_prints_a_line_for_each_round(run: Run, projects: Projects) -> None:
    told = run("annotate", "learn", "news", "--every", "10", "--rounds", "1")
    assert told.stdout.startswith("round 1: learned from 40 answers in ")
    assert "drew 10 cards of" in told.stdout
    project = projects.keep(open_project("news"))
    assert sum(card.source == "active" for card in all_cards(project)) == 10


def test_raw_answers(run: Run, tmp_path: Path) -> None:
    told = json.loads(run("annotate", "export", "news", "-o", "raw.csv", "--raw", "--json").stdout)
    assert told == {"answers": 40, "people": 1, "file": "raw.csv"}
    table = pd.read_csv(tmp_path / "raw.csv")
    assert set(table["answer"]) == {"yes", "no"} and set(table["probability"]) == {0.25}
