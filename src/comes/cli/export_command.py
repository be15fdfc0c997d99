"""``comes export``: hand a model on to programs without comes."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.options import Json
from comes.cli.printing import print_summary


def export(
    model: Annotated[Path, typer.Argument(help="Folder that 'comes fit' wrote.")],
    output: Annotated[Path, typer.Argument(help="An .onnx file.")],
    as_json: Json = False,
) -> None:
    """Write a model as ONNX: scaling, network and head in one file that needs no Python.

    Example: comes export model/ model.onnx
    """
    from comes.jobs import export_model

    print_summary(export_model(model, output).summary(), as_json)
