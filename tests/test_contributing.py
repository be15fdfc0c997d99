"""The recipes of CONTRIBUTING.md are true: each is followed inside the running package."""

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from comes import CandidateClassifier, estimate_class_prior, jobs, metrics, risks
from comes.answers import BoolMatrix
from comes.datasets import Reading, formats, make_scenes, read_dataset
from comes.errors import ComesError
from comes.generation import case_b
from comes.methods import families
from comes.priors import class_prior

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = [textwrap.dedent(b) for b in re.findall(r"^   ```py\n(.*?)^   ```", TEXT, re.M | re.S)]


def block(part: str) -> str:
    """Return the one block of code that has this part."""
    (found,) = (code for code in BLOCKS if part in code)
    return found


def run(code: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the names that code defines where others are known."""
    names = dict(names or {}, __name__="recipe")
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    return names


def draw_scenes(n: int) -> tuple[Any, BoolMatrix]:
    """Return features and true labels of digit scenes."""
    scenes = make_scenes("train", n=n)
    return scenes.X, scenes.known_relevant()


def test_a_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(block("class MarginRisk"))
    for name in ("margin_risk", "MarginRisk"):
        monkeypatch.setattr(risks, name, names[name], raising=False)
    code, _, entry = block("def _make_margin").rpartition("\n\n\n")
    family = eval(entry, run(code, vars(families)))
    monkeypatch.setitem(families.METHODS, family.name, family)

    X, relevant = draw_scenes(60)
    clf = CandidateClassifier("margin", epochs=1, random_state=0)
    clf.fit(X, case_b(relevant, exclude_rate=0.5))
    assert clf.decision_function(X).shape == relevant.shape

    tests = run(block("test_equals_the_formula_written_as_loops"))
    named = [test for name, test in tests.items() if name.startswith("test_")]
    assert len(named) == 2
    for test in named:
        test()


def test_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(block("def read_records"))
    entry = eval("{" + block('".records": Format') + "}", {**vars(formats), **names})
    monkeypatch.setattr(formats, "FORMATS", {**formats.FORMATS, **entry})

    path = tmp_path / "photos.records"
    path.write_text('{"x": [0.1, 0.9], "labels": ["sky"]}\n{"x": [0.7, 0.2], "labels": []}\n')
    photos = read_dataset(path, Reading(label_names=["sea", "sky"]))
    assert photos.relevant is not None
    assert photos.relevant.tolist() == [[False, True], [False, False]]
    with pytest.raises(ComesError, match="item"):
        read_dataset(path, item="x")
    path.write_text('{"x": [0.1, 0.9]}\n')
    with pytest.raises(ComesError, match=r"photos.records should have lines.*KeyError"):
        read_dataset(path)


def test_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", dict(metrics.METRICS))
    run(block("def top_two_error"), vars(metrics))
    scores = [[4.0, 3.0, 2.0], [4.0, 3.0, 2.0]]
    values = metrics.evaluate(scores, [[False, True, False], [False, False, True]])
    assert values["top_two_error"] == 0.5


def test_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = run(block("def count_labels("))["count_labels"]
    monkeypatch.setattr(jobs, "count_labels", job, raising=False)
    command = run(block("def count("))["count"]
    app = typer.Typer()
    app.command()(command)

    (tmp_path / "photos.csv").write_text("red,has_sky,has_sea\n0.1,1,0\n0.7,1,1\n")
    arguments = [str(tmp_path / "photos.csv"), "--labels", "has_*"]
    assert CliRunner().invoke(app, arguments).stdout.split() == ["has_sky", "2", "has_sea", "1"]
    assert '"has_sky": 2' in CliRunner().invoke(app, [*arguments, "--json"]).stdout
    assert "Example: comes count" in (command.__doc__ or "")


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # so few rows
def test_an_estimator_of_class_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = run(block("def lowest_ratio"), {"np": np, "npt": np.typing})["lowest_ratio"]
    rng = np.random.default_rng(0)
    component = rng.normal(size=400) + 6
    apart = np.append(rng.normal(size=600), rng.normal(size=400) + 6)
    assert estimator(component, apart) == pytest.approx(0.4, abs=0.1)
    assert estimator(component, component) == pytest.approx(1, abs=0.01)

    monkeypatch.setitem(class_prior.ON_SCORES, "lowest-ratio", estimator)
    known = (*class_prior.PRIOR_METHODS, "lowest-ratio")
    monkeypatch.setattr(class_prior, "PRIOR_METHODS", known)
    X, relevant = draw_scenes(200)
    candidates = case_b(relevant, exclude_rate=0.5)
    estimate = estimate_class_prior(X, candidates, "lowest-ratio")
    assert estimate.class_prior.shape == (10,)


@pytest.mark.parametrize(("thing", "most"), [("risk", 5), ("format", 4), ("metric", 3)])
def test_a_recipe_touches_few_files(thing: str, most: int) -> None:
    recipe = TEXT.partition(f"## Add a {thing}\n")[2].partition("\n## ")[0]
    files = re.findall(r"^\d\. `([^`]+)`", recipe, re.M)
    assert len(set(files)) == len(files) == most
    assert all(name.startswith(("src/comes/", "tests/test_", "docs/")) for name in files)
