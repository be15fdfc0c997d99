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

from comes.annotate import (
    Project,
    add_chosen_cards,
    describe_summary,
    import_answers,
    summarise,
)
from comes.annotate.cards import Answer
from comes.annotate.summary import ENOUGH, LATEST, ClassSummary, bound_share, measure_agreement
from projects import Desk, Projects, all_cards, new_answer, stored

NO_OR_MAYBE: tuple[Answer, Answer] = ("no", "maybe")
WORDS: list[Answer] = ["no", "no", "no", "maybe", "skip"]


def annotated(projects: Projects, seed: int = 0) -> Project:
    """Return a project that three people worked on, with all that can happen."""
    rng = np.random.default_rng(seed)
    project = projects.make(40, ["sky", "sea", "sun"], rate=0.5, overlap=0.4)
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


def test_a_summary_is_what_plain_loops_count(projects: Projects, worked_on: Project) -> None:
    for project in (worked_on, annotated(projects, seed=1)):
        check_summary(project)


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
        assert (row.n_asked, row.n_excluded, row.n_disagreements) == (
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


def test_a_project_without_answers(projects: Projects) -> None:
    summary = summarise(projects.make(30, rate=0.5))
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


def test_the_pace_is_that_of_the_last_half_hour(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = projects.make(10, ["sky"])
    desk = Desk(project)
    for card, now in zip(desk.ask(), (100.0, 9_400.0, 9_600.0, 9_700.0), strict=False):
        desk.answer(card["card"], now=now)
    monkeypatch.setattr("comes.annotate.summary.time.time", lambda: 10_000.0)
    assert summarise(project).per_hour == pytest.approx(3600 * 3 / 600)
    monkeypatch.setattr("comes.annotate.summary.time.time", lambda: 100_000.0)
    assert summarise(project).per_hour == 0


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
            "confirmed": row.n_confirmed,
            "torn": row.n_disagreements,
            "chosen_by_model": row.n_chosen,
            "pairs": agreement.n_pairs,
            "agreement": agreement.share,
            "kappa": agreement.kappa,
            "kappa_lower": agreement.lower,
            "kappa_upper": agreement.upper,
            "seconds": row.seconds,
            "share_no": row.share_no,
            "share_maybe": row.share_maybe,
            "share_yes": row.share_yes,
            "decided": row.n_decided,
            "seconds_left": row.seconds_left,
            "prior_at_least": row.prior_lower,
            "prior_at_most": row.prior_bound,
            "more_cards": row.more_cards,
        }
        np.testing.assert_equal({name: cells[name] for name in expected}, expected)


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
        bounds = [bound_share(int(k), 100) for k in rng.binomial(100, prior, 2000)]
        held = np.mean([prior <= bound for bound in bounds])
        assert 0.92 <= held <= 0.985
    for prior, n in ((0.002, 1000), (0.02, 100)):  # rare ones, exactly
        shares = binom.pmf(np.arange(n + 1), n, prior)
        is_held = [prior <= bound_share(k, n) for k in range(n + 1)]
        assert shares[is_held].sum() >= 0.95
    assert bound_share(0, 0) == 1.0


def test_more_answers_are_wanted_until_there_are_enough(projects: Projects) -> None:
    """A class that is excluded in four of five answers needs about 125 for a hundred."""
    row = one_class(projects, 400, 40, 10)
    assert not row.has_enough and row.can_be_enough
    assert row.more_cards == pytest.approx((ENOUGH - 40) / 0.8, rel=0.05)
    enough = one_class(projects, 150, ENOUGH + 9, 3, "enough")
    assert enough.has_enough and enough.more_cards == 0
    assert one_class(projects, ENOUGH, ENOUGH, 0, "all").can_be_enough


def test_no_more_answers_are_wanted_than_there_are_items(projects: Projects) -> None:
    """Cards that wait for an answer count as what can still be answered."""
    none = one_class(projects, 30, 0, 0)
    assert none.more_cards == 30 and not none.can_be_enough
    assert one_class(projects, 30, 10, 5, "half").more_cards == 15
    assert one_class(projects, 30, 20, 10, "all").more_cards == 0


def test_yes_and_no_bound_the_prior(projects: Projects, tmp_path: Path) -> None:
    """The bound of the prior then holds as before: a relevant item is not called surely not."""
    project = projects.make(6, ["sky"])
    rows = ["t0,yes,Ann", "t0,yes,Bob", "t1,yes,Ann", "t1,maybe,Bob", "t2,yes,Ann", "t2,no,Bob"]
    rows += ["t3,no,Ann", "t3,no,Bob", "t4,yes,Ann"]
    table = "\n".join(row.replace(",", ",sky,", 1) for row in rows)
    (tmp_path / "answers.csv").write_text(f"item,label,answer,person\n{table}\n")
    import_answers(project, tmp_path / "answers.csv")
    summary = summarise(project)
    [sky] = summary.classes
    assert (sky.n_asked, sky.n_excluded, sky.n_confirmed, sky.n_disagreements) == (5, 1, 2, 1)
    assert sky.agreement == summary.agreement == measure_agreement([1, 1, 2])
    assert (sky.share_no, sky.share_maybe, sky.share_yes) == (1 / 5, 2 / 5, 2 / 5)
    assert sky.prior_bound == bound_share(4, 5) and sky.prior_lower == 1 - bound_share(3, 5)
    assert [person.share_no for person in summary.people] == [1 / 5, 2 / 4]
    assert describe_summary(summary)["classes"][0]["confirmed"] == 2


def test_an_item_that_a_model_chose_can_still_be_drawn(projects: Projects) -> None:
    project = projects.make(30, ["sky"], rate=1 / 3)
    drawn = {card.item_id for card in all_cards(project)}
    free = [f"t{k}" for k in range(30) if k + 1 not in drawn]
    add_chosen_cards(project, pd.DataFrame({"item": free, "label": "sky"}))
    Desk(project).answer_all()
    (sky,) = summarise(project).classes
    assert (sky.n_asked, sky.n_chosen, sky.more_cards) == (10, 20, 20)


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
