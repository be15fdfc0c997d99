"""The command line: a command declares its options, calls a workflow, and prints its result."""

import io
import sys
import time
import warnings
from typing import Annotated, Any

import typer

import comes
from comes import progress
from comes.cli.annotate import app as annotate
from comes.cli.data import app as datasets
from comes.cli.data import demo, doctor, split
from comes.cli.experiments import bench, report
from comes.cli.model import evaluate, export, fit, predict, priors
from comes.cli.options import CommandPage, GroupPage
from comes.cli.printing import greet, print_warning
from comes.errors import ComesError
from comes.files import run_interruptible

app = typer.Typer(
    cls=GroupPage,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Learn multi-label classifiers from answers, candidate labels and complementary labels."""
    if show:
        print(f"comes {comes.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        greet()


for panel, commands in {
    "To begin with": (demo, doctor),
    "Data": (split,),
    "Models": (priors, fit, predict, evaluate, export),
    "Experiments": (bench, report),
}.items():
    for command in commands:
        app.command(cls=CommandPage, rich_help_panel=panel)(command)
app.add_typer(datasets, name="datasets", rich_help_panel="Data")
app.add_typer(annotate, name="annotate", rich_help_panel="Labels from people")


def main() -> None:
    """Run the command line; errors of comes become one line and exit code 1."""
    warnings.showwarning = print_warning
    progress.in_command, progress.last_line = True, time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # some terminals cannot show arrows
            stream.reconfigure(errors="replace")
    sys.exit(run_interruptible(run_app))


def run_app() -> Any:
    """Run the command, and return its exit code."""
    try:
        app(prog_name="comes")
    except ComesError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except SystemExit as end:
        return end.code
