"""Robots answer all cards of a server, as browsers do."""

from collections import Counter

from robots import run_robots

from comes.annotate import collect_answers, serve_in_thread
from projects import Projects, all_cards, states, stored


def test_robots_answer_every_card_once_and_as_they_are_told(projects: Projects) -> None:
    project = projects.make(30)

    def say(item: str, label: str) -> str:
        return "yes" if item == "t3" else "no" if label == "sky" else "maybe"

    with serve_in_thread(project) as address:
        reports = run_robots(address, 3, say, name="machine")
    assert [(report.error, report.refused) for report in reports] == [(None, [])] * 3
    given = Counter((card, key) for report in reports for card, key, _ in report.acknowledged)
    assert given == Counter((row.card_id, row.key) for row in stored(project))
    assert all(card.is_done for card in all_cards(project)) and len(given) == 60
    assert {row.annotator for row in stored(project)} <= {f"machine {k}" for k in (1, 2, 3)}
    known = states(collect_answers(project))
    assert len(known) == 60 and known == {pair: say(*pair) for pair in known}


def test_robots_stop_after_so_many_answers(projects: Projects) -> None:
    project = projects.make(30)
    with serve_in_thread(project) as address:
        [report] = run_robots(address, 1, lambda *_: "no", most=7)
    assert len(report.acknowledged) == len(stored(project)) == 7
