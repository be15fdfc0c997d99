"""The annotation page: collect "surely not" answers, and hand them on to training."""

from comes.annotate.exchange import collect_answers, export_answers, import_answers
from comes.annotate.project import (
    Project,
    add_chosen_cards,
    add_random_cards,
    create_project,
    open_project,
    reopen_skipped_cards,
)
from comes.annotate.report import write_report
from comes.annotate.robots import RobotReport, run_robots
from comes.annotate.sampling import sample_cards
from comes.annotate.server import make_app
from comes.annotate.serving import find_token, serve, serving
from comes.annotate.statistics import Summary, summarise

__all__ = [
    "Project",
    "RobotReport",
    "Summary",
    "add_chosen_cards",
    "add_random_cards",
    "collect_answers",
    "create_project",
    "export_answers",
    "find_token",
    "import_answers",
    "make_app",
    "open_project",
    "reopen_skipped_cards",
    "run_robots",
    "sample_cards",
    "serve",
    "serving",
    "summarise",
    "write_report",
]
