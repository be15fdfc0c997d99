"""`comes annotate`, from the questions to a model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import comes.annotate
from comes.annotate import create_project, open_project
from comes.datasets import Dataset
from comes.datasets.matrices import write_npz
from comes.workflows import priors as prior_jobs
from command_line import Result, Run, command_runner
from projects import Desk, Projects, stored

N = 60
NAMES = [f"t{k:02}" for k in range(N)]
RNG = np.random.default_rng(0)
RELEVANT = RNG.random((N, 2)) < 0.3
RELEVANT[:2] = [[True, False], [False, True]]
X = RELEVANT @ RNG.normal(size=(2, 5)) * 3 + RNG.normal(size=(N, 5))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with texts, classes and features."""
    table = pd.DataFrame({"item": NAMES, "text": [f"text of {name}" for name in NAMES]})
    table.to_csv(tmp_path / "texts.csv", index=False)
    (tmp_path / "classes.txt").write_text("sport\nweather\n")
    write_npz(Dataset(X, ["sport"], relevant=RELEVANT[:, :1], items=NAMES), tmp_path / "X.npz")
    return tmp_path


@pytest.fixture
def run(
    folder: Path,
    projects: Projects,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command line in the folder, and check its exit code."""
    monkeypatch.chdir(folder)
    for opens in (open_project, create_project):  # a process that ends closes what it opened

        def kept(*arguments: Any, opens: Any = opens, **options: Any) -> Any:
            return projects.keep(opens(*arguments, **options))

        monkeypatch.setattr(comes.annotate, opens.__name__, kept)
    return command_runner(monkeypatch, capsys)


def init(run: Run, *options: str, code: int = 0) -> Result:
    sources = ("--items", "texts.csv", "--classes", "classes.txt")
    return run("annotate", "init", "news", *sources, *options, code=code)


def answer_all(projects: Projects, folder: Path, *people: str) -> None:
    """Let people answer from the truth."""
    project = projects.keep(open_project(folder / "news"))
    truth = {name: dict(zip(("sport", "weather"), row, strict=True)) for name, row in rows()}
    for name in people or ("Ann",):
        desk = Desk(project, name, f"tab-of-{name}")
        desk.answer_all(lambda card: "maybe" if truth[card["name"]][card["class"]] else "no")


def rows() -> list[tuple[str, list[bool]]]:
    return list(zip(NAMES, RELEVANT.tolist(), strict=True))


def test_init_says_what_is_asked_and_what_comes_next(run: Run) -> None:
    output = init(run, "--rate", "0.5", "--overlap", "0.1").stdout
    assert "items: 60" in output and "classes: 2" in output and "cards: 66" in output
    assert "questions saved: 60" in output
    assert "next: comes annotate serve news" in output


def test_init_as_json(run: Run) -> None:
    summary = json.loads(init(run, "--json", "--seed", "3").stdout)
    assert summary == {
        "items": 60,
        "classes": 2,
        "cards": 12,
        "questions_saved": 108,
        "question": "Is this text about sport?",
        "next": "comes annotate serve news",
    }


def test_init_by_item(run: Run, folder: Path, projects: Projects) -> None:
    init(run, "--by", "item", "--rate", "0.5")
    project = projects.keep(open_project(folder / "news"))
    asked = Desk(project).ask(by_item=True)
    assert [card["class_number"] for card in asked[:2]] == [1, 2]
    assert asked[0]["item"] == asked[1]["item"] != asked[2]["item"]


def test_init_with_three_opinions_on_some_items(run: Run, folder: Path, projects: Projects) -> None:
    init(run, "--by", "item", "--rate", "0.5", "--overlap", "0.1", "--opinions", "3")
    project = projects.keep(open_project(folder / "news"))
    assert project.count_cards() == 30 * 2 + 2 * 3 * 2


def test_add_and_its_json(run: Run, folder: Path, projects: Projects) -> None:
    init(run)
    desk = Desk(projects.keep(open_project(folder / "news")))
    desk.answer(desk.ask()[0]["card"], "skip")
    output = run("annotate", "add", "news", "--skipped", "--json").stdout
    assert json.loads(output) == {"cards_added": 1}
    assert "cards added: 12" in run("annotate", "add", "news", "--classes", "sport,weather").stdout
    output = run(
        "annotate", "add", "news", "--classes", " sport ", "--rate", "0.5", "--json"
    ).stdout
    assert json.loads(output) == {"cards_added": 30}
    pd.DataFrame({"item": NAMES, "label": "weather"}).to_csv(folder / "chosen.csv", index=False)
    output = run("annotate", "add", "news", "--cards", "chosen.csv", "--json").stdout
    assert json.loads(output) == {"cards_added": N - 12}


def test_import(run: Run, folder: Path) -> None:
    init(run)
    lines = [{"key": "t00", "label": "sport", "answer": "reject", "text": "x"}]
    (folder / "export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ("annotate", "import", "news", "export.jsonl", "--item", "key", "--json")
    assert json.loads(run(*command).stdout) == {"taken": 1, "already_answered": 0}
    assert json.loads(run(*command).stdout) == {"taken": 0, "already_answered": 1}


def test_import_of_words_that_mean_yes(run: Run, folder: Path, projects: Projects) -> None:
    init(run)
    lines = [{"text": "t00", "label": "sport", "answer": "accept"}]
    (folder / "export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("annotate", "import", "news", "export.jsonl", "--answers", "accept=yes,reject=no")
    [said] = stored(projects.keep(open_project(folder / "news")))
    assert said.answer == "yes"
    assert "confirmed" in run("annotate", "report", "news").stdout


def test_import_of_what_a_model_chose_and_what_was_ticked(run: Run, folder: Path) -> None:
    init(run)
    choices = {"type": "choices", "from_name": "not", "value": {"choices": ["sport"]}}
    task = {"id": 1, "data": {"text": "t00"}, "annotations": [{"result": [choices]}]}
    (folder / "export.json").write_text(json.dumps([task]))
    run("annotate", "import", "news", "export.json", "--complementary", "--chosen-by-model")
    reported = json.loads(run("annotate", "report", "news", "--json").stdout)
    [sport, weather] = reported["classes"]
    assert (sport["chosen_by_model"], sport["excluded"]) == (1, 0)
    assert weather["chosen_by_model"] == 0


def test_export_then_fit(run: Run, folder: Path, projects: Projects) -> None:
    init(run, "--rate", "0.8")
    answer_all(projects, folder)
    exported = run("annotate", "export", "news", "-o", "answers.parquet", "--json")
    counts = json.loads(exported.stdout)
    assert counts["asked"] == 96 and counts["file"] == "answers.parquet"
    assert 0 < counts["surely_not"] < 96
    given = ("--set", "no_rate=0.8", "--set", "yes_rate=0.8", "--epochs", "1")
    fitted = run("fit", "answers.parquet", "--features", "X.npz", "-o", "model", *given)
    assert f"{N} rows, 5 features, 2 labels" in fitted.stdout
    assert "method: likelihood\n" in fitted.stdout
    no = counts["surely_not"]
    assert f"96 of 120 pairs asked: {no} no, 0 yes, {96 - no} maybe" in fitted.stdout
    assert "rates: no 0.80 given, yes 0.80 given" in fitted.stdout


def test_report_as_a_table(run: Run, folder: Path, projects: Projects) -> None:
    init(run, "--rate", "0.5", "--overlap", "0.5")
    before = run("annotate", "report", "news").stdout
    assert "0 of 90 cards are done" in before and "weather" in before
    answer_all(projects, folder, "Ann", "Bob")
    output = run("annotate", "report", "news").stdout
    assert "90 of 90 cards are done" in output
    for word in ("sport", "weather", "excluded", "kappa"):
        assert word in output


def test_report_as_json_and_as_a_page(run: Run, folder: Path, projects: Projects) -> None:
    init(run, "--rate", "0.5", "--overlap", "0.5")
    answer_all(projects, folder, "Ann", "Bob")
    output = run("annotate", "report", "news", "-o", "report.html", "--json").stdout
    reported: dict[str, Any] = json.loads(output)
    assert (reported["cards"], reported["done"], reported["answers"]) == (90, 90, 90)
    assert reported["questions_saved"] == 60
    assert reported["agreement"]["share"] == 1.0 and reported["agreement"]["n_pairs"] == 30
    assert [row["class"] for row in reported["classes"]] == ["sport", "weather"]
    assert sorted(reported["ask_next"]) == ["sport", "weather"]
    assert "<bdi>sport</bdi>" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_report_without_answers_is_json_all_the_same(run: Run) -> None:
    init(run)
    reported = json.loads(run("annotate", "report", "news", "--json").stdout)
    assert reported["agreement"]["share"] is None
    assert reported["classes"][0]["kappa"] is None


def test_report_with_features_shows_estimated_priors(
    run: Run, folder: Path, projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(run, "--rate", "0.8")
    answer_all(projects, folder)
    seeds: list[int] = []
    columns = {"class_prior": [0.25, 0.5], "lower": [0.2, 0.4], "upper": [0.3, 0.6]}

    def estimate(data: Dataset, *, seed: int) -> pd.DataFrame:
        np.testing.assert_allclose(data.known_features(), X)
        assert (data.known_answers().codes != 0).sum() == 96
        seeds.append(seed)
        return pd.DataFrame({"label": data.label_names, **columns})

    monkeypatch.setattr(prior_jobs, "estimate_priors", estimate)
    command = ("annotate", "report", "news", "--features", "X.npz")
    reported = json.loads(run(*command, "-o", "report.html", "--json").stdout)
    assert [row["class_prior"] for row in reported["classes"]] == columns["class_prior"]
    assert [row["prior_upper"] for row in reported["classes"]] == columns["upper"]
    assert "0.25 (0.20 to 0.30)" in (folder / "report.html").read_text(encoding="utf-8")
    assert "class prior" in run(*command, "--seed", "3").stdout
    assert seeds == [0, 3]


def test_errors_are_one_line(run: Run) -> None:
    sources = ("--items", "texts.csv", "--classes", "classes.txt")
    run("annotate", "init", "old", *sources)
    for command, message in (
        ("init news --items none.csv --classes classes.txt", "none.csv does not exist"),
        ("init news --items texts.csv --classes none.txt", "none.txt cannot be read"),
        ("init news --items texts.csv --classes classes.txt --rate 2", "rate must be in (0, 1]"),
        ("init old --items texts.csv --classes classes.txt", "exists and holds something else"),
        (
            "init news --items texts.csv --classes classes.txt --database mysql://h/d",
            "is not the address of a database",
        ),
        ("serve none/news", "none is not a folder. Create it first"),
        ("serve old --port 1 --host 192.0.2.1", "port 1 of 192.0.2.1 cannot be opened"),
        (
            "add old",
            "say what to add: --items, --new-classes, --classes with --rate",
        ),
        ("add old --classes sport --cards x.csv", "say what to add"),
        ("add old --classes , --rate 0.5", "say what to add"),
        ("add old --classes moon", "the project has no class 'moon'; it has 'sport', 'weather'"),
        ("add old --classes sport --rate 1", "asks about 60 more items, but only 54 are left"),
        ("add old --classes moon", "comes annotate add PROJECT --new-classes FILE"),
        ("add old --items texts.csv --skipped", "say what to add"),
        ("add old --items none.csv", "none.csv does not exist. Correct the path of the items"),
        ("add old --active auto --cards few", "--active draws a number of --cards; got 'few'"),
        ("add old --active auto --cards 5", "old has no answers yet. Collect some"),
        ("add old --active model --cards 5", "model"),
        ("export old -o raw.csv --raw", "old has no answers yet. Collect some"),
        ("add old --cards none.csv", "none.csv cannot be read as csv"),
        ("import old none.json", "none.json"),
        ("import old texts.csv", "texts.csv"),
        ("export old -o answers.csv", "old has no answers yet. Collect some: comes annotate serve"),
        ("export news -o answers.csv", "news is not the folder of a project"),
        ("report news", "news is not the folder of a project"),
        ("report old -o page.pdf", "page.pdf should end in .html"),
        ("report old --features none.npz", "none.npz"),
    ):
        result = run("annotate", *command.split(), code=1)
        assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1, command
        assert message in result.stderr, command
        assert result.stdout == "", command
