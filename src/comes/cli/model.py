"""Commands about models: fit, predict, evaluate, export, priors."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comes.cli.options import (
    METHOD_NAMES,
    Clean,
    Data,
    ImageSource,
    Json,
    ModelFolder,
    Seed,
    SkipBroken,
    complete_backbone,
    complete_device,
    complete_method,
    complete_network,
    drop_missing,
    offer,
    options_under,
    parse_numbers,
    reading_options,
    split_names,
    takes_options,
)
from comes.cli.printing import (
    STARTED,
    print_json,
    print_prose,
    print_rows,
    print_summary,
    print_table,
)
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
option = options_under("Training")


def training_options(
    method: Annotated[
        str | None,
        option(
            help=f"One of {', '.join(METHOD_NAMES)}, or auto. Default: likelihood.",
            autocompletion=complete_method,
        ),
    ] = None,
    model: Annotated[
        str | None,
        option(
            help="Network for tables: wide_and_deep, blend, mlp, low_rank or linear. Default: the "
            "method's own.",
            autocompletion=complete_network,
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        option(
            help="Network for images: resnet50 (default), timm:NAME or torchvision:NAME.",
            autocompletion=complete_backbone,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        option(help="Passes over the rows; with images, epochs of fine-tuning.", min=0),
    ] = None,
    learning_rate: Annotated[
        float | None, option(help="Learning rate of the optimizer.", min=0)
    ] = None,
    threshold: Annotated[
        str,
        option(
            help="Where to cut scores: auto, half, zero, prior, risk, f1 or minmax.",
            autocompletion=offer("auto", "half", "zero", "prior", "risk", "f1", "minmax"),
        ),
    ] = "auto",
    early_stopping: Annotated[
        bool,
        option("--early-stopping", help="Keep the epoch with the least risk on held-out rows."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        option("--set", help="Any other parameter, NAME=VALUE, such as exclude_rate=0.5."),
    ] = None,
    device: Annotated[
        str, option(help="Where to compute: auto, cpu, cuda, ...", autocompletion=complete_device)
    ] = "auto",
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the settings that were chosen; the parameters are the options.

    A value of --set is json, numbers such as .8,0.9, or a word.
    """
    found = drop_missing(
        method=method,
        model=model,
        backbone=backbone,
        epochs=epochs,
        learning_rate=learning_rate,
        threshold=threshold,
        early_stopping=early_stopping,
        device=device,
        random_state=seed,
    )
    for text in settings or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise ComesError(f"--set should be NAME=VALUE, such as flood_level=0.5; got {text!r}.")
        found[name] = value
        with suppress(ValueError):
            found[name] = parse_numbers(value, name)  # .5,1 is not json
        with suppress(ValueError):
            found[name] = json.loads(value)
    return found


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
    embedding: Annotated[
        str | None,
        typer.Option(
            help="Vectors of texts: wordllama, or a model of Hugging Face. Default: TF-IDF."
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Choose on held-out rows: method, lr, epochs."),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="DATA is a folder, pattern or address: read it in blocks."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a model on answers, candidate labels or complementary labels.

    Example: comes fit answers.csv --labels 'has_*' --answers 1=yes,0=no,-1=maybe -o model/

    Example: comes fit photos.csv --labels 'has_*' --method comes-hl -o model/

    Example: comes fit texts.csv --text body --labels maybe --embedding wordllama -o model/

    Example: comes fit photos.csv --labels 'has_*' --images photos/ --backbone resnet50 -o model/

    Example: comes fit parts/ --stream --labels 'has_*' -o model/
    """
    from comes.workflows.fit import fit_model

    fitted = fit_model(
        data,
        settings,
        reading=reading,
        priors=priors,
        clean=clean,
        select=split_names(select) or (),
        embedding=embedding,
        stream=stream,
        output=output,
    )
    if fitted.path is None:  # another process saved the model, and tells
        return
    summary, total = fitted.summary(), round(time.monotonic() - STARTED, 1)
    training, choice = summary["seconds"], fitted.choice
    summary["seconds"] = total if as_json else f"{total} (training {training:.1f})"
    if as_json:
        summary["training_seconds"] = training
        if choice is not None:
            summary["compared"] = choice.table.to_dict("records")
    elif choice is not None:  # what was compared, the best first
        table = choice.table.sort_values("behind", kind="stable")
        print_table(table, digits=".4g", width=150)  # else names of methods are cut
        best = choice.table.iloc[choice.best]
        print(
            f"Chosen: {best['method']}, learning rate {best['learning_rate']:g}, {best['epochs']} "
            "epochs: the least likelihood loss on held-out rows. Where the interval of 'behind' "
            "reaches 0, others may well be as good."
        )
        if choice.tied:
            print(f"Level with it: {len(choice.tied)} others; the cheapest of these is taken.")
        if choice.edges:
            print(f"Nothing was tried beyond: {'; '.join(choice.edges)}. There may be better.")
    print_summary(summary, as_json)
    if fitted.history.interrupted:
        raise typer.Exit(130)


page_option = options_under("A page of predictions")
question_option = options_under("What to ask next")


def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet, .jsonl, ... file.")
    ],
    item: Annotated[
        str | None, typer.Option(help="The column that names the items. Default: row numbers.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also a column of scores for each label.")
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="Only so many labels of each item, the best first, a row for each of them."
        ),
    ] = None,
    images: ImageSource = None,
    skip_broken: SkipBroken = False,
    page: Annotated[
        Path | None,
        page_option(help="Also a folder for a page of rows or images with predictions."),
    ] = None,
    examples: Annotated[
        int | None,
        page_option(help="Rows or images on that page. Default: 120.", min=1),
    ] = None,
    maps: Annotated[
        bool,
        page_option("--maps", help="Show on that page where in an image the evidence is."),
    ] = False,
    ask_next: Annotated[
        Path | None,
        question_option(help="Also a table of what to ask next, for 'comes annotate add --cards'."),
    ] = None,
    questions: Annotated[
        int | None, question_option(help="Pairs in that table. Default: 200.", min=1)
    ] = None,
    asked: Annotated[
        str | None, question_option(help="Answers so far, which are left out of that table.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write predicted labels and probabilities for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict new.csv --model model/ --item photo --top 3 -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv --page page --maps

    Example: comes predict photos/ -m model/ -o scores.csv --ask-next next.csv --asked answers.csv
    """
    from comes.workflows.predict import predict_items

    for name, value, target, wanted in (
        ("--maps", maps, page, "a page (--page FOLDER)"),
        ("--examples", examples, page, "a page (--page FOLDER)"),
        ("--asked", asked, ask_next, "--ask-next FILE"),
        ("--questions", questions, ask_next, "--ask-next FILE"),
    ):
        if value and target is None:
            raise ComesError(f"{name} needs {wanted}. Add it, or leave {name} out.")
    table = predict_items(
        model,
        data,
        output,
        images=images,
        skip_broken=skip_broken,
        item=item,
        scores=scores,
        top=top,
        page=page,
        maps=maps,
        ask_next=ask_next,
        asked=asked,
        **drop_missing(n_examples=examples, n_questions=questions),
    )
    summary: dict[str, Any] = {"rows": len(table) // (top or 1)}
    if top is None:
        summary["labels"] = int(table.columns.str.startswith("probability:").sum())
    written = {"file": output, "page": page and page / "index.html", "ask_next": ask_next}
    summary |= {name: str(path) for name, path in written.items() if path is not None}
    print_summary(summary, as_json)


LABELS_SHOWN = 3  # the worst
WIDTH = 120  # of text, so that a good run fits on twelve lines


@takes_options(reading=reading_options)
def evaluate(
    data: Data,
    model: ModelFolder,
    reading: "ReadOptions",
    convention: Annotated[
        Literal["pml", "sklearn"],
        typer.Option(help="Which definition of the metrics: pml is the paper's."),
    ] = "pml",
    priors: Annotated[
        Path | None,
        typer.Option(help="A table of class priors for estimates; by default the model's own."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Only P@k and nDCG@k up to so many labels, for very many labels."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a model's scores with true labels, or judge them by candidates where there are none.

    The verdict comes first, the labels that the model is worst about last. A dash is what cannot be
    estimated; with --json, all labels are listed, and why something is not known.

    Example: comes evaluate test.csv --relevant 'is_*' --model model/

    Example: comes evaluate new.csv --labels 'has_*' --model model/

    Example: comes evaluate test.svm --model model/ --top 5
    """
    from comes.label_metrics import LABEL_METRICS
    from comes.metrics import METRICS
    from comes.workflows.judge import judge_model, judge_top, title_of

    if top is not None:
        if priors is not None:
            raise ComesError("--priors are for estimates, and --top compares with true labels.")
        print_summary(judge_top(model, data, top, reading=reading), as_json)
        return
    judged = judge_model(model, data, reading=reading, priors=priors, convention=convention)
    if as_json:
        print_json(judged.as_dict())
        return
    lines = [judged.verdict()]
    if judged.metrics is not None:
        values = ", ".join(f"{METRICS[k].title} {v:.3f}" for k, v in judged.metrics.items())
        odd = "".join(f"; {n} {k.replace('_', ' ')}" for k, n in judged.degenerate.items() if n)
        lines.append(f"True labels: {values}{odd}")
    known: list[str] = []
    reasons: dict[str, list[str]] = {}
    for name, one in (judged.estimated or {"metrics": {}})["metrics"].items():
        if one["reason"] is not None:
            reasons.setdefault(one["reason"], []).append(title_of(name))
        elif name != "ranking_risk":  # which has no meaning of its own
            ends = f"{one['low']:.3f}–{one['high']:.3f}"
            known.append(f"{title_of(name)} {one['value']:.3f} ({ends})")
    if known:
        lines.append(f"Estimated: {', '.join(known)}")
    for reason, names in reasons.items():
        lines.append(f"Cannot be estimated: {', '.join(names)}, because {reason}.")
    for line in lines:
        print_prose(line, WIDTH)
    labels = judged.qualities
    title = f"worst of {len(labels)} labels" if len(labels) > LABELS_SHOWN else "label"
    shown = [name for name in LABEL_METRICS if name in labels[0].metrics][:4]
    rows = [
        {title: one.label, **one.counts}
        | {LABEL_METRICS[name]: str(one.metrics[name]) for name in shown}
        for one in labels[:LABELS_SHOWN]
    ]
    print_rows(rows, width=136)  # else intervals are cut


def export(
    model: Annotated[Path, typer.Argument(help="Folder that 'comes fit' wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="An .onnx file.")],
    as_json: Json = False,
) -> None:
    """Write a model as ONNX: scaling, network and head in one file that needs no Python.

    The file is run on rows that are drawn, and compared with the model. Text, categories and other
    columns that are no numbers are encoded by comes; the file begins at the encoded columns.

    Example: comes export model/ -o model.onnx
    """
    from comes.workflows.predict import export_model

    facts = export_model(model, output)
    if not as_json and facts["difference"] is None:
        facts["difference"] = "not checked: install onnxruntime"
    elif not as_json:
        facts["difference"] = f"at most {facts['difference']:.1e} of a probability, on drawn rows"
    print_summary(facts, as_json)


PRIORS_SHOWN = 6


@takes_options(reading=reading_options)
def priors(
    data: Data,
    reading: "ReadOptions",
    method: Annotated[
        str,
        typer.Option(
            help="How to estimate: hierarchical, best-bin or bbe.",
            autocompletion=offer("hierarchical", "best-bin", "bbe"),
        ),
    ] = "hierarchical",
    exclude_rate: Annotated[
        list[str] | None,
        typer.Option(
            help="How often an irrelevant label is excluded, if that is known: one number, or one "
            "per label separated by commas."
        ),
    ] = None,
    clean: Clean = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .xlsx or .parquet file for 'fit'."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Test instead whether irrelevant labels are excluded at constant rates."
        ),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how often each label is relevant, and rates, from the labels there are.

    Example: comes priors photos.csv --labels 'has_*' -o priors.csv

    Example: comes priors answers.csv --check --clean expert.csv --features features.npz
    """
    from comes.workflows.priors import check_assumption, estimate_priors

    if check:
        if output is not None or exclude_rate is not None:
            raise ComesError("--check writes and assumes nothing: leave -o and rates out.")
        found = check_assumption(data, clean, reading=reading, seed=seed)
        if as_json:
            labels = found.per_label.to_dict("records")
            print_json({"conclusion": found.conclusion, "labels": labels})
        else:
            print_table(found.per_label, digits=".3g")
            print(found.conclusion)
        return
    table = estimate_priors(
        data,
        output,
        reading=reading,
        method=method,
        exclude_rate=parse_numbers(exclude_rate, "--exclude-rate"),
        clean=clean,
        seed=seed,
    )
    if as_json:
        print_json(table.to_dict("records"))
        return
    print_table(table[:PRIORS_SHOWN], width=120)  # else names of labels are cut
    if len(table) > PRIORS_SHOWN:
        where = "--json" if output is None else output
        print(f"{len(table) - PRIORS_SHOWN} more labels: {where} has all.")
    if "error" in table:
        print(f"mean absolute error: {table['error'].abs().mean():.4f}")
