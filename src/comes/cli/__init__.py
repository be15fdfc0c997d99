"""The command line. Command NAME lives in ``NAME_command.py``, a group in ``NAME_commands.py``.

A command declares its options, calls one job (`comes.jobs`), and prints what it returns.
"""

import io
import sys
import warnings
from typing import Annotated, Any

import typer

import comes
from comes.cli.advice import drop_foreign_options
from comes.cli.annotate_commands import app as annotate
from comes.cli.bench_command import bench
from comes.cli.check_command import check
from comes.cli.datasets_commands import app as datasets
from comes.cli.demo_command import demo
from comes.cli.evaluate_command import evaluate
from comes.cli.export_command import export
from comes.cli.features_command import features
from comes.cli.fit_command import fit
from comes.cli.generate_command import generate
from comes.cli.predict_command import predict
from comes.cli.printing import print_warning
from comes.cli.priors_command import priors
from comes.cli.report_command import report
from comes.cli.split_command import split
from comes.errors import ComesError
from comes.files import Terminated, end_at_once, end_like_ctrl_c

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Multi-label classification from answers, candidate labels and complementary labels.",
)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Learn multi-label classifiers from answers, candidate labels and complementary labels."""
    if show:
        print(f"comes {comes.__version__}")
        raise typer.Exit


app.command()(demo)
app.add_typer(datasets, name="datasets")
app.command()(split)
app.command()(generate)
app.command()(priors)
app.command()(check)
app.command()(features)
app.command()(fit)
app.command()(predict)
app.command()(evaluate)
app.command()(export)
app.command()(bench)
app.command()(report)
app.add_typer(annotate, name="annotate")


def main() -> None:
    """Run the command line; our own errors become one line and exit code 1."""
    warnings.showwarning = print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # some terminals cannot show arrows
            stream.reconfigure(errors="replace")
    code: Any = 130
    try:
        end_like_ctrl_c()
        code = _run_app()
        end_at_once()
    except KeyboardInterrupt:  # before or after the command
        end_at_once()
    sys.exit(128 + Terminated.number if Terminated.number else code)


def _run_app() -> Any:
    """Run the command, and return its exit code."""
    try:
        app(prog_name="comes")
    except ComesError as error:
        told = drop_foreign_options(str(error), typer.main.get_command(app), sys.argv[1:])
        print(f"Error: {told}", file=sys.stderr)
        return 1
    except SystemExit as end:
        return end.code
    return 0
