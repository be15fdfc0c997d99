"""Estimates from cards that a model draws, over more projects than `make test` has time for."""

from test_annotate_drawing import check_estimates

from projects import Projects


def test_estimates_from_forty_projects_are_right_on_average(projects: Projects) -> None:
    check_estimates(projects, 40, held=0.9)
