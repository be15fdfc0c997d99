"""Estimates from cards that a model draws, over more projects than `make test` has time for."""

from projects import Projects
from test_annotate_grow import check_estimates


def test_estimates_from_forty_projects_are_right_on_average(projects: Projects) -> None:
    check_estimates(projects, 40, held=0.9)
