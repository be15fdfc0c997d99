"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(help="A file (.csv, .parquet, .npz, .mat, .arff, .svm, ...) or a name.")
]
Json = Annotated[bool, typer.Option("--json", help="Print json.")]
ModelFolder = Annotated[Path, typer.Option("--model", "-m", help="Folder that 'comes fit' wrote.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
