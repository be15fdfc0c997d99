"""What the answers say about themselves, against plain loops and simulations."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from comes.annotate import Project, add_chosen_cards, summarise, write_overview
from comes.annotate.agreement import measure_agreement
from comes.annotate.leases import Answer
from comes.annotate.summary import ENOUGH, LATEST, ClassSummary, _bound_share
from comes.errors import ComesError
from databases import PostgreSQL
from projects import Desk, Projects, all_cards, new_answer, stored

NO_OR_MAYBE: tuple[Answer, Answer] = ("no", "maybe")
WORDS: list[Answer] = ["no", "no", "no", "maybe", "skip"]


def annotated(projects: Projects, database: str | None = None, seed: int = 0) -> Project:
    """Return a project that three people worked on, with all that can happen."""
    rng = np.random.default_rng(seed)
    project = projects.make(40, ["sky", "sea", "sun"], database=database, rate=0.5, overlap=0.4)
    asked = {(row.item_id, row.class_id) for row in all_cards(project)}
    free = [(f"t{k}", "sea") for k in range(40) if (k + 1, 2) not in asked][:6]
    add_chosen_cards(project, pd.DataFrame(free, columns=["item", "label"]))
    moment = 0.0
    for number, name in enumerate(("Ann", "Bob", "Carol")):
        desk = Desk(project, name, f"tab-of-{name}")
        for _ in range(40 if number < 2 else 25):
            cards = desk.ask(now=moment)
            if not cards:
                break
            moment += 1
            word = WORDS[rng.integers(len(WORDS))]
            seconds = None if rng.random() < 0.2 else float(rng.integers(1, 9))
            key = desk.answer(cards[0]["card"], word, now=moment, seconds=seconds)
            if rng.random() < 0.15:
                desk.undo(key, now=moment)
    return project


@pytest.fixture(scope="module")
def worked_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project on SQLite that three people worked on; tests only read it."""
    projects = Projects(tmp_path_factory.mktemp("worked_on"))
    yield annotated(projects)
    projects.close()


def answers_by_loops(project: Project) -> list[dict[str, Any]]:
    by_number = {card.id: card for card in all_cards(project)}
    return [
        {
            "item": by_number[row.card_id].item_id,
            "class": by_number[row.card_id].class_id,
            "source": by_number[row.card_id].source,
            "answer": row.answer,
            "annotator": row.annotator,
            "seconds": row.seconds,
            "at": row.answered_at,
        }
        for row in stored(project)
        if row.undone_at is None
    ]


def counts_by_loops(said: list[dict[str, Any]]) -> tuple[list[int], dict[str, int]]:
    """Return pairs (both no, torn, both maybe), and how many items are what."""
    of_item: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row in said:
        if row["answer"] != "skip" and row["source"] != "model":
            of_item[row["item"], row["class"]].append(row["answer"])
    pairs = [0, 0, 0]
    for words in of_item.values():
        for one, other in combinations(words, 2):
            pairs[1 if one != other else 0 if one == "no" else 2] += 1
    return pairs, {
        "asked": len(of_item),
        "excluded": sum(set(words) == {"no"} for words in of_item.values()),
        "torn": sum(len(set(words)) == 2 for words in of_item.values()),
        "maybe": sum("maybe" in words for words in of_item.values()),
    }


def same(one: float, other: float) -> bool:
    return math.isclose(one, other) or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_summary_is_what_plain_loops_count(projects: Projects, seed: int) -> None:
    check_summary(annotated(projects, None, seed))


def test_a_summary_and_people_on_postgresql(projects: Projects, postgresql: PostgreSQL) -> None:
    project = annotated(projects, postgresql.new_database())
    check_summary(project)
    check_people(project)


def check_summary(project: Project) -> None:
    summary, said, cards = summarise(project), answers_by_loops(project), all_cards(project)
    assert (summary.n_items, summary.n_classes, summary.n_cards) == (40, 3, len(cards))
    assert summary.n_done == sum(card.is_done for card in cards) == len(said)
    assert summary.n_answers == sum(row["answer"] != "skip" for row in said)
    assert summary.n_saved == 120 - len({(card.item_id, card.class_id) for card in cards})
    pairs, _ = counts_by_loops(said)
    assert sum(pairs) > 5
    assert summary.agreement == measure_agreement(pairs)
    assert [row.name for row in summary.classes] == ["sky", "sea", "sun"]
    for number, row in enumerate(summary.classes, 1):
        own = [one for one in said if one["class"] == number]
        pairs, counts = counts_by_loops(own)
        assert row.n_cards == sum(card.class_id == number for card in cards)
        assert row.n_done == len(own)
        assert row.n_skipped == sum(one["answer"] == "skip" for one in own)
        assert (row.n_asked, row.n_excluded, row.n_torn) == (
            counts["asked"],
            counts["excluded"],
            counts["torn"],
        )
        chosen = [one for one in own if one["source"] == "model" and one["answer"] != "skip"]
        assert row.n_chosen == len(chosen)
        assert same(row.share_maybe, counts["maybe"] / counts["asked"])
        assert same(row.seconds, median(s for one in own if (s := one["seconds"]) is not None))
        np.testing.assert_equal(vars(row.agreement), vars(measure_agreement(pairs)))
    assert summary.classes[1].n_chosen > 0


def test_people_and_the_latest_answers(worked_on: Project) -> None:
    check_people(worked_on)


def check_people(project: Project) -> None:
    summary, said = summarise(project), answers_by_loops(project)
    assert [person.name for person in summary.people] == sorted({row["annotator"] for row in said})
    for person in summary.people:
        own = [row for row in said if row["annotator"] == person.name]
        words = [row["answer"] for row in own if row["answer"] != "skip"]
        assert person.n_answers == len(words)
        assert same(person.share_no, words.count("no") / len(words))
        assert same(person.seconds, median(s for row in own if (s := row["seconds"]) is not None))
        assert person.last == max(row["at"] for row in own)
    newest = sorted(said, key=lambda row: -row["at"])[:LATEST]
    assert [(row["at"], row["annotator"], row["answer"]) for row in summary.latest] == [
        (row["at"], row["annotator"], row["answer"]) for row in newest
    ]
    assert [(row["item"], row["class"]) for row in summary.latest] == [
        (project.item_names[row["item"] - 1], project.class_names[row["class"] - 1])
        for row in newest
    ]


def test_a_project_without_answers(projects: Projects, database: str | None) -> None:
    summary = summarise(projects.make(30, database=database, rate=0.5))
    assert (summary.n_cards, summary.n_done, summary.n_answers, summary.n_saved) == (30, 0, 0, 30)
    assert (summary.people, summary.latest) == ((), ())
    for row in summary.classes:
        assert (row.n_asked, row.n_excluded, row.prior_bound) == (0, 0, 1.0)
        assert math.isnan(row.share_maybe) and math.isnan(row.seconds)
    assert len(summary.table()) == 2


def test_somebody_who_only_skips(projects: Projects) -> None:
    project = projects.make(2, ["sky"])
    Desk(project).answer_all(lambda _: "skip")
    summary = summarise(project)
    assert (summary.n_done, summary.n_answers, summary.classes[0].n_skipped) == (2, 0, 2)
    assert summary.people[0].n_answers == 0 and math.isnan(summary.people[0].share_no)


def test_the_table_says_the_same(worked_on: Project) -> None:
    summary = summarise(worked_on)
    table = summary.table()
    assert table["class"].tolist() == ["sky", "sea", "sun"]
    for row, (_, cells) in zip(summary.classes, table.iterrows(), strict=True):
        agreement = row.agreement
        assert cells["answered"] + cells["skipped"] == row.n_done
        assert cells["skipped"] == row.n_skipped
        expected = {
            "cards": row.n_cards,
            "asked": row.n_asked,
            "excluded": row.n_excluded,
            "torn": row.n_torn,
            "chosen_by_model": row.n_chosen,
            "pairs": agreement.n_pairs,
            "agreement": agreement.share,
            "kappa": agreement.kappa,
            "kappa_lower": agreement.lower,
            "kappa_upper": agreement.upper,
            "seconds": row.seconds,
            "share_maybe": row.share_maybe,
            "prior_at_most": row.prior_bound,
            "more_cards": row.more_cards,
        }
        np.testing.assert_equal({name: cells[name] for name in expected}, expected)


# Agreement


def fleiss_kappa_by_loops(both_no: int, torn: int, both_maybe: int) -> float:
    """Return kappa as Fleiss writes it: a row per item, a column per answer, two raters."""
    table = [(2, 0)] * both_no + [(1, 1)] * torn + [(0, 2)] * both_maybe
    n = len(table)
    agreed = sum((a * (a - 1) + b * (b - 1)) / 2 for a, b in table) / n
    shares = [sum(row[k] for row in table) / (2 * n) for k in (0, 1)]
    chance = sum(share**2 for share in shares)
    return (agreed - chance) / (1 - chance)


@pytest.mark.parametrize("counts", [(40, 10, 50), (1, 1, 1), (90, 5, 5), (0, 3, 4), (7, 0, 2)])
def test_kappa_is_that_of_fleiss(counts: tuple[int, int, int]) -> None:
    agreement = measure_agreement(counts)
    assert agreement.n_pairs == sum(counts)
    assert agreement.share == (counts[0] + counts[2]) / sum(counts)
    assert agreement.kappa == pytest.approx(fleiss_kappa_by_loops(*counts))
    assert agreement.lower < agreement.upper


def test_kappa_without_pairs() -> None:
    agreement = measure_agreement([0, 0, 0])
    assert agreement.n_pairs == 0
    values = (agreement.share, agreement.kappa, agreement.lower, agreement.upper)
    assert all(math.isnan(value) for value in values)


def test_kappa_where_all_agree() -> None:
    assert measure_agreement([5, 0, 7]).kappa == 1
    for counts in ([9, 0, 0], [0, 0, 9], [1, 0, 0]):  # all the same: chance explains it
        agreement = measure_agreement(counts)
        assert agreement.share == 1 and math.isnan(agreement.kappa)
        assert -1 <= agreement.lower < agreement.upper <= 1


def test_kappa_where_all_differ() -> None:
    agreement = measure_agreement([0, 12, 0])
    assert (agreement.share, agreement.kappa) == (0, -1)
    assert -1 <= agreement.lower < agreement.upper < 0


def test_the_interval_is_wide_for_few_pairs_and_narrow_for_many() -> None:
    few, many = measure_agreement([4, 1, 5]), measure_agreement([400, 100, 500])
    assert few.upper - few.lower > 3 * (many.upper - many.lower)
    assert many.lower < many.kappa < many.upper


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    for shares in ([0.5, 0.2, 0.3], [0.85, 0.1, 0.05]):
        truth = measure_agreement(np.array(shares) * 1e6).kappa
        found = [measure_agreement(rng.multinomial(80, shares)) for _ in range(300)]
        held = np.mean([one.lower <= truth <= one.upper for one in found])
        assert 0.91 <= held <= 0.985


# Priors, and what to ask next


def one_class(
    projects: Projects, n_items: int, n_no: int, n_maybe: int, name: str = "project"
) -> ClassSummary:
    project = projects.make(n_items, ["sky"], name=name)
    answer_some(Desk(project), "sky", n_no, n_maybe)
    return summarise(project).classes[0]


def answer_some(desk: Desk, name: str, n_no: int, n_maybe: int) -> None:
    """Answer as many cards of a class, and leave the others open."""
    no, maybe = NO_OR_MAYBE
    words = [no] * n_no + [maybe] * n_maybe
    number = 0
    while words:
        desk = Desk(desk.project, desk.annotator, f"{name}-{number}")
        number += 1
        asked = [card for card in desk.ask() if card["class"] == name]
        if asked:
            desk.send(*(new_answer(card["card"], words.pop()) for card in asked[: len(words)]))


def test_the_prior_is_bounded_by_the_share_of_maybe(projects: Projects) -> None:
    row = one_class(projects, 60, 30, 10)
    assert row.share_maybe == 0.25
    assert 0.25 < row.prior_bound < 0.45
    none = one_class(projects, 60, 40, 0, "none")
    assert 0 < none.prior_bound < 0.1
    every = one_class(projects, 60, 0, 20, "every")
    assert (every.share_maybe, every.prior_bound) == (1.0, 1.0)


def test_the_bound_of_the_prior_holds_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    for prior in (0.05, 0.3, 0.8):
        bounds = [_bound_share(int(k), 100) for k in rng.binomial(100, prior, 2000)]
        held = np.mean([prior <= bound for bound in bounds])
        assert 0.92 <= held <= 0.985
    for prior, n in ((0.002, 1000), (0.02, 100)):  # rare ones, exactly
        shares = binom.pmf(np.arange(n + 1), n, prior)
        is_held = [prior <= _bound_share(k, n) for k in range(n + 1)]
        assert shares[is_held].sum() >= 0.95
    assert _bound_share(0, 0) == 1.0


def test_more_answers_are_wanted_until_there_are_enough(projects: Projects) -> None:
    """A class that is excluded in four of five answers needs about 125 for a hundred."""
    row = one_class(projects, 400, 40, 10)
    assert not row.has_enough
    assert row.more_cards == pytest.approx((ENOUGH - 40) / 0.8, rel=0.05)
    enough = one_class(projects, 150, ENOUGH + 9, 3, "enough")
    assert enough.has_enough and enough.more_cards == 0


def test_no_more_answers_are_wanted_than_there_are_items(projects: Projects) -> None:
    """Cards that wait for an answer count as what can still be answered."""
    none = one_class(projects, 30, 0, 0)
    assert none.more_cards == 30 and not none.can_be_enough
    assert one_class(projects, 30, 10, 5, "half").more_cards == 15
    assert one_class(projects, 30, 20, 10, "all").more_cards == 0


def test_what_lacks_most_is_asked_first(projects: Projects) -> None:
    project = projects.make(250, ["many", "few", "some", "none"])
    for name, count in (("many", ENOUGH), ("few", 5), ("some", ENOUGH - 1)):
        answer_some(Desk(project), name, count, 0)
    summary = summarise(project)
    assert [row.name for row in summary.to_ask] == ["none", "few", "some"]


def test_a_class_without_exclusions_wants_as_many_as_the_others_need(projects: Projects) -> None:
    project = projects.make(500, ["sky", "sea"])
    answer_some(Desk(project), "sky", 30, 30)
    sea = summarise(project).classes[1]
    assert sea.more_cards == 2 * ENOUGH


# The page


def test_the_page_shows_the_numbers(worked_on: Project, tmp_path: Path) -> None:
    summary = write_overview(worked_on, tmp_path / "report.html")
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
    priors = pd.DataFrame(
        {"label": ["sea"], "class_prior": [0.25], "lower": [0.125], "upper": [math.nan]}
    )
    write_overview(projects.make(), tmp_path / "report.html", priors=priors)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "prior, estimated" in page
    row = next(line for line in page.splitlines() if "<bdi>sea</bdi>" in line)
    assert "0.25 (0.12 to –)" in row


def test_the_page_is_replaced_whole(
    projects: Projects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = projects.make()
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(ComesError, match="is a folder; the name of a file was wanted"):
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
