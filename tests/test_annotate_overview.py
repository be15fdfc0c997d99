"""The overview of a project: a table, a record for json, and a page."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.annotate import summarise
from comes.annotate.web.lead import describe_summary, write_overview
from comes.errors import ComesError
from projects import Desk, Projects

PRIORS = pd.DataFrame(
    {"label": ["sea"], "class_prior": [0.25], "lower": [0.125], "upper": [math.nan]}
)


def test_the_record_holds_the_counts_and_the_table(projects: Projects) -> None:
    project = projects.make(4, ["sky", "sea"], rate=0.5)
    Desk(project).answer_all(lambda card: "no" if card["class"] == "sky" else "skip")
    summary = summarise(project)
    described = describe_summary(summary)
    classes, agreement = described.pop("classes"), described.pop("agreement")
    assert described == {
        "cards": 4,
        "done": 4,
        "answers": 2,
        "questions_saved": 4,
        "ask_next": ["sea", "sky"],
    }
    np.testing.assert_equal(classes, summary.table().to_dict("records"))
    assert agreement["n_pairs"] == 0 and math.isnan(agreement["kappa"])


def test_the_record_has_estimated_priors_beside_their_class(projects: Projects) -> None:
    summary = summarise(projects.make())
    table = pd.DataFrame(describe_summary(summary, PRIORS)["classes"])
    pd.testing.assert_frame_equal(table[list(summary.table())], summary.table())
    added = table.set_index("class")[["class_prior", "prior_lower", "prior_upper"]]
    np.testing.assert_array_equal(added.loc["sea"], [0.25, 0.125, math.nan])
    assert added.loc["sky"].isna().all()


def test_the_page_shows_the_numbers(projects: Projects, tmp_path: Path) -> None:
    project = projects.make()
    for name in ("Ann", "Bob"):
        desk = Desk(project, name, f"tab-of-{name}")
        desk.answer(desk.ask()[0]["card"])
    summary = write_overview(project, tmp_path / "report.html")
    assert summary.n_done == len(summary.people) == 2
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{summary.n_done} of {summary.n_cards} cards are done" in page
    for row in summary.classes:
        assert f"<bdi>{row.name}</bdi>" in page
    for person in summary.people:
        assert f"<bdi>{person.name}</bdi>" in page
    assert "prior, estimated" not in page


HOSTILE = "<script>alert('x')</script>&\"</td>"


def test_whatever_a_name_holds_is_text(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(["t0", HOSTILE], ["sky", HOSTILE], name="a&b <i>")
    Desk(project, HOSTILE, "tab-of-mallory").answer_all()
    priors = pd.DataFrame(
        {"label": ["sky", HOSTILE], "class_prior": [0.25, 0.5], "lower": [0.2, 0.4], "upper": 0.6}
    )
    write_overview(project, tmp_path / "report.html", priors=priors)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page and "</td>&" not in page and "<i>" not in page
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&#34;&lt;/td&gt;") >= 3
    assert "a&amp;b &lt;i&gt;" in page


def test_the_page_needs_nothing_else(projects: Projects, tmp_path: Path) -> None:
    write_overview(projects.make(), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert "<link" not in page and "src=" not in page.replace("default-src=", "")


def test_estimated_priors_stand_beside_their_class(projects: Projects, tmp_path: Path) -> None:
    write_overview(projects.make(), tmp_path / "report.html", priors=PRIORS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "relevant, estimated" in page
    row = page[page.index("<bdi>sea</bdi>") :]
    assert "0.25 (0.12 to –)" in row and "0.25" not in page[: -len(row)].partition("<body>")[2]


def test_the_page_is_replaced_whole(
    projects: Projects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = projects.make()
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(ComesError, match="is a folder; expected the name of a file"):
        write_overview(project, tmp_path)
    with monkeypatch.context() as patch:

        def fail(*_: Any, **__: Any) -> int:
            raise OSError(28, "No space left on device")

        patch.setattr(Path, "write_text", fail)
        with pytest.raises(ComesError, match="report.html cannot be written: No space left"):
            write_overview(project, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "old"
    write_overview(project, tmp_path / "report.html")
    assert "old" not in (tmp_path / "report.html").read_text(encoding="utf-8")[:20]
    assert not list(tmp_path.glob(".report*"))
