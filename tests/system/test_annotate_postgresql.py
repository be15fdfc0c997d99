"""What the tests in `tests/` promise of projects on SQLite holds on PostgreSQL, too.

Tests are imported to be run again: here, the fixture `projects` makes projects on PostgreSQL.
"""

# ruff: noqa: F401

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from annotation_site import HERE, answer, join, lease
from comes.annotate import Project, create_project, export_answers, open_project
from comes.annotate.web.server import make_app
from comes.datasets import open_dataset
from comes.errors import ComesError
from databases import PostgreSQL
from projects import Desk, Projects, states
from test_annotate_cards import *  # noqa: F403
from test_annotate_cards import test_control_cards_are_mixed_in_and_look_like_others
from test_annotate_decisions import (
    test_a_decision_replaces_what_was_said,
    test_a_frozen_project_gives_no_cards,
    test_disagreements_are_no_against_anything_else,
    test_who_is_left_out_does_not_disagree,
)
from test_annotate_exchange import (
    test_an_imported_answer_that_a_model_chose_is_marked_unless_it_was_drawn,
    test_an_imported_question_is_not_asked_again,
    test_answers_of_several_people_are_taken_under_their_names,
    test_questions_that_were_not_drawn_are_added,
    test_what_a_model_chose_is_marked,
    test_what_has_an_answer_is_left_alone,
    test_what_is_exported_is_what_was_said,
    test_what_other_tools_say,
    test_what_was_taken_back_is_absent,
    test_where_two_people_disagree_both_answers_are_kept,
)
from test_annotate_grow import (
    test_a_draw_that_others_have_overtaken_is_refused,
    test_a_random_draw_may_meet_what_a_model_drew,
    test_another_open_project_notices,
    test_cards_keep_how_they_were_drawn_and_come_next,
    test_cards_that_a_model_chose,
    test_missing_answers_of_people_left_out_and_controls_do_not_count,
    test_more_cards_ask_nothing_twice,
    test_new_classes_are_asked_about_at_the_projects_rate,
    test_new_items_are_asked_about_at_the_rate_of_each_class,
    test_shares_of_the_first_draw_are_plain,
    test_the_lead_decides,
    test_what_a_model_chose_has_the_same_chance_of_being_drawn,
    test_what_a_model_drew_is_no_fair_sample_and_exported_with_its_probability,
    test_what_was_skipped_can_be_asked_again,
)
from test_annotate_guard import (
    VALUES,
    Site,
    check_refusals,
    running_site,
    test_the_tables_hold_only_the_hostile_part,
)
from test_annotate_links import (
    test_a_running_server_notices_new_and_revoked_links,
    test_roles_open_what_they_may,
)
from test_annotate_project import (
    test_a_card_needs_an_item_that_there_is,
    test_a_project_of_an_earlier_version_opens,
    test_a_project_opens_again,
    test_a_project_remembers_how_it_was_drawn,
    test_a_reader_sees_one_moment,
    test_awkward_names_come_back_as_they_are,
    test_readers_do_not_wait_for_writers,
)
from test_annotate_summary import (
    annotated,
    check_people,
    check_summary,
    test_a_project_without_answers,
    test_what_is_new_undone_or_changed_is_seen,
)
from test_annotate_writer import (
    test_a_future_is_done_when_others_can_see_what_it_did,
    test_a_refusal_or_an_error_of_one_command_leaves_the_others,
)

pytestmark = pytest.mark.needs("postgresql")


@pytest.fixture
def projects(tmp_path: Path, postgresql: PostgreSQL) -> Iterator[Projects]:
    """What makes annotation projects on PostgreSQL."""
    projects = Projects(tmp_path, postgresql.new_database)
    yield projects
    projects.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), postgresql.new_database()) as site:
        yield site


@pytest.mark.smoke
def test_two_people_answer_in_their_browsers_and_the_export_has_it(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(8)
    said: dict[tuple[str, str], str] = {}
    with TestClient(make_app(project), base_url=HERE) as client:
        for name, word in (("Ann", "no"), ("Bob", "yes")):
            join(client, name)
            for number, card in enumerate(lease(client, f"tab-of-{name}")):
                key = f"key-{name}-{number}"
                reply = answer(client, card["card"], word, key, f"tab-of-{name}")
                assert reply.json() == {"stored": 1}
                said[card["name"], card["class"]] = word
        undone = client.post("/api/undo", json={"tab": "tab-of-Bob", "keys": ["key-Bob-0"]})
        [card] = undone.json()["cards"]
        del said[card["name"], card["class"]]
    assert len(said) == 15 and set(said.values()) == {"no", "yes"}
    assert export_answers(project, tmp_path / "answers.csv")["people"] == 2
    assert states(open_dataset(tmp_path / "answers.csv")) == said


def test_hostile_values_are_refused_and_change_nothing(site: Site) -> None:
    check_refusals(site, VALUES)


def test_a_summary_and_people_are_what_plain_loops_count(projects: Projects) -> None:
    project = annotated(projects)
    check_summary(project)
    check_people(project)


def test_a_database_holds_one_project(projects: Projects, postgresql: PostgreSQL) -> None:
    address, folder = postgresql.new_database(), projects.folder
    (folder / "texts.csv").write_text("item,text\na,rain\nb,goal\n")
    (folder / "classes.txt").write_text("sport\n")
    sources = folder / "texts.csv", folder / "classes.txt"
    made = projects.keep(create_project(folder / "one", *sources, rate=1, database=address))
    Desk(made).answer_all()
    with pytest.raises(ComesError, match="the database already holds a project. Give each"):
        create_project(folder / "two", *sources, rate=1, database=address)
    assert not (folder / "two").exists()
    again: Project = projects.keep(open_project(folder / "one"))
    assert Desk(again).progress()["mine"] == 2
