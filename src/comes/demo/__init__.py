"""Whole jobs on embedded data: training on candidates, and the way from questions to a model.

Of the scenes without a digit, a share of `EXCLUDE_RATE` says so.
"""

from comes.demo.circle import Circle, annotate_by_robots, make_project, serve_scenes
from comes.demo.comparison import EXCLUDE_RATE, DemoRow, run_demo

__all__ = [
    "EXCLUDE_RATE",
    "Circle",
    "DemoRow",
    "annotate_by_robots",
    "make_project",
    "run_demo",
    "serve_scenes",
]
