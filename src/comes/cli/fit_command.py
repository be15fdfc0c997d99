"""``comes fit``: train a model, or choose one and train it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import Clean, Data, Json, image_option, split_names
from comes.cli.printing import print_rounded, print_summary
from comes.cli.reading_options import reading_options
from comes.cli.training_options import training_options

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
    from comes.estimator import Choice
    from comes.jobs import FittedModel, FittedStream


@takes_options(settings=training_options, reading=reading_options)
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model.")],
    settings: dict[str, Any],
    reading: "ReadOptions",
    priors: Annotated[
        Path | None,
        typer.Option(help="A table of class priors, as 'comes priors -o' writes it."),
    ] = None,
    clean: Clean = None,
    freeze: Annotated[
        bool,
        image_option(
            "--freeze", help="Do not fine-tune the backbone; the default without --epochs."
        ),
    ] = False,
    embedding: Annotated[
        str | None,
        typer.Option(
            help="What turns texts into vectors: wordllama, the folder of a model, or the name of "
            "one in the cache of Hugging Face. Default: TF-IDF."
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            help="Settings to choose on what was said about held-out rows: method, lr, epochs, "
            "separated by commas."
        ),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream", help="DATA is a folder, pattern or address of files: read them in blocks."
        ),
    ] = False,
    buffer_rows: Annotated[
        int, typer.Option(min=1, help="With --stream: about how many rows are mixed.")
    ] = 2**17,
    as_json: Json = False,
) -> None:
    """Train a model on answers, candidate labels or complementary labels.

    Example: comes fit answers.csv --labels 'has_*' --answers 1=yes,0=no,-1=maybe -o model/

    Example: comes fit photos.csv --labels 'has_*' --method comes-hl -o model/

    Example: comes fit texts.csv --text body --labels maybe --embedding wordllama -o model/

    Example: comes fit photos.csv --labels 'has_*' --images photos/ --backbone resnet50 -o model/

    Example: comes fit parts/ --stream --labels 'has_*' -o model/
    """
    from comes.jobs import fit_model, fit_stream

    if stream:
        unused: dict[str, Any] = {"priors": priors, "clean": clean, "select": select}
        unused |= {"freeze": freeze, "embedding": embedding}
        streamed = fit_stream(
            data, settings, reading=reading, buffer_rows=buffer_rows, output=output, **unused
        )
        _print_fit(streamed, streamed.summary(), as_json)
        return
    fitted = fit_model(
        data,
        settings,
        reading=reading,
        priors=priors,
        clean=clean,
        select=split_names(select) or (),
        freeze=freeze,
        embedding=embedding,
        output=output,
        on_choice=lambda choice: None if as_json else _print_choice(choice),
    )
    _print_fit(fitted, fitted.summary(with_choice=as_json), as_json)


def _print_fit(
    fitted: "FittedModel | FittedStream", summary: dict[str, Any], as_json: bool
) -> None:
    if not fitted.is_leader:
        return
    print_summary(summary, as_json)
    if fitted.history.interrupted:
        raise typer.Exit(130)


def _print_choice(choice: "Choice") -> None:
    rows = choice.table.sort_values("behind", kind="stable").to_dict("records")
    shown = [{str(k): v for k, v in row.items()} for row in rows]
    print_rounded(shown, digits=".4g", width=150)  # else names of methods are cut
    best = choice.table.iloc[choice.best]
    print(
        f"Chosen: {best['method']}, learning rate {best['learning_rate']:g}, "
        f"{best['epochs']} epochs. It has the least likelihood loss: what was said about rows that "
        "training did not see is most likely with it. "
        "'behind' says what the others are behind by; where its interval reaches 0, they may well "
        "be as good."
    )
    if choice.tied:
        print(
            f"Level with it: {len(choice.tied)} of the others. Of those that are level, the one "
            "with fewer epochs is taken, then with a smaller learning rate."
        )
    if choice.edges:
        print(f"Nothing was tried beyond: {'; '.join(choice.edges)}. There may be better.")
