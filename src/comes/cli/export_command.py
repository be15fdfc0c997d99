"""``comes export``: hand a model on to programs without comes."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.options import Json
from comes.cli.printing import print_summary


def export(
    model: Annotated[Path, typer.Argument(help="Folder that 'comes fit' wrote.")],
    file: Annotated[Path | None, typer.Argument(help="An .onnx file; or give it by -o.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="An .onnx file.")] = None,
    as_json: Json = False,
) -> None:
    """Write a model as ONNX: scaling, network and head in one file that needs no Python.

    The file is run on rows that are drawn, and compared with the model. Text, categories and other
    columns that are no numbers are encoded by comes; the file begins at the encoded columns.

    Example: comes export model/ -o model.onnx
    """
    from comes.jobs import export_model

    if (file is None) == (output is None):
        raise typer.BadParameter("name one .onnx file: comes export MODEL -o model.onnx")
    print_summary(export_model(model, file or output or "").summary(), as_json)
