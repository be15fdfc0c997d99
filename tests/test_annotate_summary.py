"""What the answers of a project amount to, against plain loops."""

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
from sqlalchemy import insert

from comes.annotate import Project, import_answers, summarise
from comes.annotate import summary as summary_module
from comes.annotate.cards import Answer
from comes.annotate.grow import add_chosen_cards, add_random_cards, reopen_skipped_cards
from comes.annotate.schema import answers, cards, fetch_all, people
from comes.annotate.summary import (
    ENOUGH,
    WORDS,
    AnswerCache,
    AnswerColumns,
    ClassSummary,
    bound_share,
    measure_agreement,
)
from comes.annotate.web.lead import describe_summary
from projects import Desk, Projects, all_cards, new_answer, stored

# Agreement


def fleiss_kappa_by_loops(both_no: int, disagree: int, both_maybe: int) -> float:
    """Return kappa as Fleiss writes it: a row per item, a column per answer, two raters."""
    table = [(2, 0)] * both_no + [(1, 1)] * disagree + [(0, 2)] * both_maybe
    n = len(table)
    agreed = sum((a * (a - 1) + b * (b - 1)) / 2 for a, b in table) / n
    shares = [sum(row[k] for row in table) / (2 * n) for k in (0, 1)]
    chance = sum(share**2 for share in shares)
    return (agreed - chance) / (1 - chance)


def test_kappa_is_that_of_fleiss() -> None:
    for counts in ((40, 10, 50), (1, 1, 1), (90, 5, 5), (0, 3, 4), (7, 0, 2)):
        agreement = measure_agreement(counts)
        assert agreement.n_pairs == sum(counts)
        assert agreement.share == (counts[0] + counts[2]) / sum(counts)
        assert agreement.kappa == pytest.approx(fleiss_kappa_by_loops(*counts)), counts
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


# The cache of answers


def as_values(said: AnswerColumns) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(said).items()
    }


def check(cache: AnswerCache, project: Project) -> AnswerColumns:
    """Return what a cache knows, after comparing it with plain loops."""
    said = cache.read()
    by_number = {card.id: card for card in all_cards(project)}
    expected = [row for row in stored(project) if row.undone_at is None]
    assert len(said.word) == len(expected)
    for k, row in enumerate(expected):
        card = by_number[row.card_id]
        item, class_ = said.pairs[:, said.question[k]].tolist()
        assert (item + 1, class_ + 1) == (card.item_id, card.class_id)
        assert summary_module.SOURCES[said.source[k]] == card.source
        assert (said.people[said.person[k]], WORDS[said.word[k]]) == (row.annotator, row.answer)
        assert said.at[k] == row.answered_at
        assert np.isnan(said.seconds[k]) if row.seconds is None else said.seconds[k] == row.seconds
    assert len(set(zip(*said.pairs.tolist(), strict=True))) == said.pairs.shape[1]
    np.testing.assert_equal(as_values(said), as_values(AnswerCache(project).read()))
    return said


def test_what_is_new_undone_or_changed_is_seen(projects: Projects) -> None:
    project = projects.make(30, rate=0.5, overlap=0.3)
    cache, ann, bob = AnswerCache(project), Desk(project), Desk(project, "Bob", "tab-of-bob")
    assert len(check(cache, project).word) == 0
    first = ann.ask()
    keys = [ann.answer(card["card"], "no", now=1.0, seconds=2.0) for card in first[:3]]
    assert len(check(cache, project).word) == 3
    ann.undo(keys[1])
    assert len(check(cache, project).word) == 2
    bob.send(*(new_answer(card["card"], "skip") for card in bob.ask()), now=5.0)
    check(cache, project)
    reopen_skipped_cards(project)
    check(cache, project)
    asked = {(card.item_id, card.class_id) for card in all_cards(project)}
    free = [f"t{k}" for k in range(30) if (k + 1, 1) not in asked]
    add_chosen_cards(project, pd.DataFrame({"item": free, "label": "sky"}))
    check(cache, project)
    ann.answer_all(lambda card: "yes" if card["item"] % 2 else "maybe")
    check(cache, project)
    add_random_cards(project, ["sky"], 0.5, seed=0)  # what a model chose now counts as drawn
    check(cache, project)
    with project.writing() as connection:
        row = {"name": "Bob", "joined_at": 0.0, "left_out_at": 1.0}
        connection.execute(insert(people).values(row))
    said = check(cache, project)
    assert [name for name, out in zip(said.people, said.left_out, strict=True) if out] in (
        ["Bob"],
        [],
    )


def test_a_commit_that_comes_late_is_seen(projects: Projects) -> None:
    """Another server took a smaller number, and stored its answer after a larger one."""
    for late in (1, 10_000):
        project = projects.make(20, ["sky"], name=f"late-{late}")
        cache = AnswerCache(project)
        free = [card.id for card in all_cards(project)]
        order = (20_000, 20_001, 20_000 - late, 20_003)
        for number, card in zip(order, free, strict=False):
            row: dict[str, Any] = {"id": number, "card_id": card, "key": f"k{number}"}
            row |= {"annotator": "Ann", "tab": "t", "answer": "no", "answered_at": 1.0}
            with project.writing() as connection:
                connection.execute(insert(answers).values(**row))
                connection.execute(cards.update().where(cards.c.id == card).values(is_done=True))
            check(cache, project)


def test_only_what_is_new_is_read(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> None:
    project = projects.make(40, ["sky"])
    desk, cache = Desk(project), AnswerCache(project)
    cache.read()
    read: list[int] = []

    def fetch(*arguments: Any) -> list[Any]:
        rows = fetch_all(*arguments)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(summary_module, "fetch_all", fetch)
    monkeypatch.setattr(summary_module, "LATE", 0)
    for card in desk.ask()[:5]:
        desk.answer(card["card"])
        cache.read()
    assert read == [1] * 5
    cache.read()
    assert read == [1] * 5


def test_all_is_read_in_blocks(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_module, "ROWS_AT_ONCE", 7)
    project = projects.make(20)
    Desk(project).answer_all()
    said = check(AnswerCache(project), project)
    assert len(said.word) == 40 and np.bincount(said.card_class).tolist() == [20, 20]


# The summary


NO_OR_MAYBE: tuple[Answer, Answer] = ("no", "maybe")
GIVEN: list[Answer] = ["no", "no", "no", "maybe", "skip"]


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
            word = GIVEN[rng.integers(len(GIVEN))]
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


def test_people(worked_on: Project) -> None:
    check_people(worked_on)


def check_people(project: Project) -> None:
    summary, said = summarise(project), answers_by_loops(project)
    assert [person.name for person in summary.people] == sorted({row["annotator"] for row in said})
    for person in summary.people:
        own = [row for row in said if row["annotator"] == person.name]
        words = [row["answer"] for row in own if row["answer"] != "skip"]
        assert person.n_answers == len(words)
        assert (person.n_no, person.n_maybe) == (words.count("no"), words.count("maybe"))
        assert same(person.seconds, median(s for row in own if (s := row["seconds"]) is not None))
        assert person.last == max(row["at"] for row in own)


def test_a_project_without_answers(projects: Projects) -> None:
    summary = summarise(projects.make(30, rate=0.5))
    assert (summary.n_cards, summary.n_done, summary.n_answers, summary.n_saved) == (30, 0, 0, 30)
    assert summary.people == ()
    for row in summary.classes:
        assert (row.n_asked, row.n_excluded, row.prior_bound) == (0, 0, 1.0)
        assert math.isnan(row.share_maybe) and math.isnan(row.seconds)
    assert len(summary.table()) == 2


def test_somebody_who_only_skips(projects: Projects) -> None:
    project = projects.make(2, ["sky"])
    Desk(project).answer_all(lambda _: "skip")
    summary = summarise(project)
    assert (summary.n_done, summary.n_answers, summary.classes[0].n_skipped) == (2, 0, 2)
    assert summary.people[0].n_answers == 0


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
            "disagreements": row.n_disagreements,
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
    assert [(person.n_no, person.n_answers) for person in summary.people] == [(1, 5), (2, 4)]
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
