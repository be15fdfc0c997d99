"""Whole jobs on embedded data: training on candidates, and the way from questions to a model.

Of all pairs of scene and digit, a share of `ASKED_RATE` is asked about. People who try the page get
drawn scenes, and a table of support tickets.
"""

from comes.demo.circle import Circle, Learned, annotate_by_robots, make_project
from comes.demo.comparison import ASKED_RATE, DemoRow, run_demo
from comes.demo.drawn_scenes import make_drawn_project, serve_scenes
from comes.demo.tickets import make_tickets, write_tickets

__all__ = [
    "ASKED_RATE",
    "Circle",
    "DemoRow",
    "Learned",
    "annotate_by_robots",
    "make_drawn_project",
    "make_project",
    "make_tickets",
    "run_demo",
    "serve_scenes",
    "write_tickets",
]
