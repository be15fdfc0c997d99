"""The options that are settings of a classifier."""

from collections.abc import Sequence
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
    image_option,
    offer,
    options_under,
    parse_numbers,
    reading_options,
    split_names,
    takes_options,
)
from comes.cli.printing import (
    format_lines,
    print_json,
    print_metrics,
    print_prose,
    print_rounded,
    print_rows,
    print_summary,
    print_table,
)
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
    from comes.estimator import Choice
    from comes.label_metrics import LabelQuality
    from comes.workflows.fit import FittedModel, FittedStream
    from comes.workflows.judge import EstimatedQuality, JudgedTop, Judgement
option = options_under("Training")
rate_option = options_under("Rates")


def training_options(
    method: Annotated[
        str | None,
        option(
            help=f"One of {', '.join(METHOD_NAMES)}, or auto. Default: likelihood.",
            autocompletion=complete_method,
        ),
    ] = None,
    variant: Annotated[
        str | None, option(help="Variant of the method, where it has several.")
    ] = None,
    exclude_rate: Annotated[
        str | None,
        rate_option(
            help="For candidates: how often an irrelevant label is excluded, if that is known. One "
            "number, or one per label separated by commas. Default: estimated."
        ),
    ] = None,
    no_rate: Annotated[
        str | None,
        rate_option(help="For answers: how often an irrelevant pair is called no, likewise."),
    ] = None,
    yes_rate: Annotated[
        str | None,
        rate_option(help="For answers: how often a relevant pair is called yes, likewise."),
    ] = None,
    mistake_rate: Annotated[
        float | None,
        rate_option(help="For answers: how often a sure answer is wrong. Default: 0.", min=0),
    ] = None,
    without_maybe: Annotated[
        bool,
        rate_option("--without-maybe", help="Leave every 'maybe' out of the likelihood."),
    ] = False,
    flip_rate: Annotated[
        str | None,
        rate_option(
            help="For ccmn: one number, one per label separated by commas, or class_prior. "
            "Default: estimated."
        ),
    ] = None,
    flood_level: Annotated[
        str | None,
        option(
            help="For comes-rl: its risk is kept above this level, in units of the pair sum. A "
            "number, 0 for none, or auto, a rule of the class priors (default)."
        ),
    ] = None,
    model: Annotated[
        str | None,
        option(
            help="Network for tables: mlp (default), low_rank or linear.",
            autocompletion=complete_network,
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        image_option(
            help="Network for images: resnet50 (default), timm:NAME or torchvision:NAME.",
            autocompletion=complete_backbone,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        image_option(
            help="Weights of the backbone: imagenet (default), or a .safetensors or .pth file."
        ),
    ] = None,
    image_features: Annotated[
        str | None,
        image_option(
            help="What the head reads of images: auto, all or pooled.",
            autocompletion=offer("auto", "all", "pooled"),
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        image_option(
            help="Height and width of images. Default: the network's own, 224 for resnet50.", min=8
        ),
    ] = None,
    augment: Annotated[
        str | None,
        image_option(
            help="Augmentation of images: flip (default), crop, mixup, none.",
            autocompletion=offer("flip", "crop", "mixup", "none"),
        ),
    ] = None,
    backbone_learning_rate: Annotated[
        float | None, image_option(help="Learning rate of the backbone. Default: 1e-5.", min=0)
    ] = None,
    part_size: Annotated[
        int | None,
        image_option(
            help="Images to process at a time, if a batch does not fit into memory.", min=1
        ),
    ] = None,
    probe_epochs: Annotated[
        int | None,
        image_option(help="Epochs of the head on the frozen backbone; 0 skips them.", min=0),
    ] = None,
    epochs: Annotated[
        int | None,
        option(
            help="Passes over the rows. Default: the method's own; for images 0, which leaves the "
            "backbone frozen.",
            min=0,
        ),
    ] = None,
    batch_size: Annotated[
        int | None, option(help="Rows in a step. Default: the method's own; for images 64.", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None,
        option(help="Of the optimizer. Default: the method's own; for images 1e-4.", min=0),
    ] = None,
    reduction: Annotated[
        str,
        option(
            help="How a batch becomes one number: auto, sum, mean or per_label.",
            autocompletion=offer("auto", "sum", "mean", "per_label"),
        ),
    ] = "auto",
    threshold: Annotated[
        str,
        option(
            help="Where to cut scores: auto, zero, prior, risk, f1 or minmax.",
            autocompletion=offer("auto", "zero", "prior", "risk", "f1", "minmax"),
        ),
    ] = "auto",
    as_published: Annotated[
        bool,
        option(
            "--as-published",
            help="Train on a table as the paper does, by default comes-hl.",
        ),
    ] = False,
    early_stopping: Annotated[
        bool,
        option("--early-stopping", help="Keep the epoch with the least risk on held-out rows."),
    ] = False,
    device: Annotated[
        str, option(help="Where to compute: auto, cpu, cuda, ...", autocompletion=complete_device)
    ] = "auto",
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the settings that were given; the parameters are the options."""
    from comes.flat_settings import PUBLISHED_1_0_0
    from comes.methods import BEST_PUBLISHED, DEFAULT, METHODS

    rates = flip_rate if flip_rate == "class_prior" else parse_numbers(flip_rate, "--flip-rate")
    trained = method or (BEST_PUBLISHED if as_published else DEFAULT)
    level = _parse_flood_level(flood_level)
    flooded = [name for name, known in METHODS.items() if "flood_level" in known.get_params()]
    if isinstance(level, float) and trained in METHODS and trained not in flooded:
        raise ComesError(
            f"--flood-level is for {', '.join(flooded)}; got method {trained}. Leave it out."
        )
    published = {"method": BEST_PUBLISHED, **PUBLISHED_1_0_0, "reduction": "sum"}
    published = published if as_published else {}
    return published | drop_missing(
        method=method,
        variant=variant,
        exclude_rate=parse_numbers(exclude_rate, "--exclude-rate"),
        no_rate=parse_numbers(no_rate, "--no-rate"),
        yes_rate=parse_numbers(yes_rate, "--yes-rate"),
        mistake_rate=mistake_rate,
        uses_maybe=False if without_maybe else None,
        flip_rate=rates,
        flood_level=level,
        model=model,
        backbone=backbone,
        weights=weights,
        features=image_features,
        image_size=image_size,
        augment=augment,
        backbone_learning_rate=backbone_learning_rate,
        part_size=part_size,
        probe_epochs=probe_epochs,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        reduction=None if reduction == "auto" else reduction,
        threshold=threshold,
        early_stopping=early_stopping,
        device=device,
        random_state=seed,
    )


def _parse_flood_level(text: str | None) -> float | str | None:
    """Return "auto", a number, or None if the option was not given."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ComesError(f"--flood-level should be auto or a number; got {text!r}.") from None


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
    from comes.workflows.fit import fit_model, fit_stream

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


page_option = options_under("A page of images")
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
        Path | None, page_option(help="Also a folder for a page of images with predictions.")
    ] = None,
    examples: Annotated[
        int | None,
        page_option(help="Images on that page, however many there are. Default: 120.", min=1),
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
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write predicted labels and probabilities for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict new.csv --model model/ --item photo --top 3 -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv --page page --maps

    Example: comes predict photos/ -m model/ -o scores.csv --ask-next next.csv --asked answers.csv
    """
    from comes.workflows.predict import AskOptions, PageOptions, predict_more, write_top

    _refuse_unused(page, {"--maps": maps, "--examples": examples}, "the page", "a folder (--page)")
    _refuse_unused(
        ask_next,
        {"--asked": asked, "--questions": questions},
        "what to ask next",
        "a file (--ask-next)",
    )
    given: dict[str, Any] = {"images": images, "skip_broken": skip_broken, "item": item}
    if top is not None:
        _refuse_beside_top({"--page": page, "--ask-next": ask_next})
        written = write_top(model, data, output, top, scores=scores, **given)
        summary = {"rows": written.n_items, "labels": written.n_labels, "file": str(output)}
        print_summary(summary, as_json)
        return
    predicted = predict_more(
        model,
        data,
        output,
        scores=scores,
        **given,
        page=None if page is None else PageOptions(page, examples or 120, maps, seed),
        ask=None if ask_next is None else AskOptions(ask_next, questions or 200, asked),
    )
    summary = {"rows": len(predicted.table), "labels": predicted.n_labels, "file": str(output)}
    if predicted.page is not None:
        summary["page"] = str(predicted.page)
    if predicted.questions is not None:
        summary |= {"questions": len(predicted.questions), "ask_next": str(ask_next)}
    print_summary(summary, as_json)


def _refuse_unused(target: Path | None, options: dict[str, Any], of: str, wanted: str) -> None:
    """Raise at the first option for something that is not written."""
    for option, value in options.items():
        if target is None and value:
            raise ComesError(f"{option} is for {of}: name {wanted}, or leave it out.")


def _refuse_beside_top(options: dict[str, Any]) -> None:
    """Raise at the first option that needs the scores of all labels."""
    for option, value in options.items():
        if value is not None:
            raise ComesError(
                f"{option} needs the scores of all labels, and --top keeps only the best of them. "
                "Run the two apart."
            )


LABELS_SHOWN = 30


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

    What cannot be said of a label has a reason. The labels that a model is worst about come first.

    Example: comes evaluate test.csv --relevant 'is_*' --model model/

    Example: comes evaluate new.csv --labels 'has_*' --model model/

    Example: comes evaluate test.svm --model model/ --top 5
    """
    from comes.workflows.judge import judge_model, judge_top

    if top is not None:
        if priors is not None:
            raise ComesError("--priors are for estimates, and --top compares with true labels.")
        _print_top(judge_top(model, data, top, reading=reading), as_json)
        return
    judged = judge_model(model, data, reading=reading, priors=priors, convention=convention)
    if as_json:
        print_json(judged.as_dict())
        return
    if judged.metrics is not None:
        print_metrics([(judged.method, judged.metrics)])
        degenerate = format_lines(judged.degenerate, "; ")
        print(f"{judged.n_rows} rows; convention: {convention}; {degenerate}")
        _print_labels(judged.by_label, ("precision", "recall", "f1", "average_precision"))
    if judged.estimated is not None:
        _print_estimates(judged.estimated)
    _print_seen(judged)


def _print_top(judged: "JudgedTop", as_json: bool) -> None:
    """Print the metrics of the best labels."""
    if as_json:
        print_json(judged.as_dict())
        return
    print_rows([{f"{name} ↑": f"{value:.3f}" for name, value in judged.metrics.items()}])
    print(f"{judged.n_rows} rows; rows without relevant, which count 0: {judged.n_empty}")
    _print_seen(judged)


def _print_seen(judged: "Judgement | JudgedTop") -> None:
    """Tell if the numbers are too good, as training saw the rows."""
    if judged.n_seen:
        print(
            f"{judged.n_seen} of {judged.n_rows} rows have the features of rows that training saw: "
            "these numbers are too good for them. Take rows that were held out."
        )


def _print_labels(qualities: Sequence["LabelQuality"], shown: Sequence[str]) -> None:
    """Print what is known of each label, those that the model is worst about first."""
    from comes.label_metrics import LABEL_METRICS, explain_missing

    print_rows(
        [
            {"label": one.label}
            | {name: _write_count(count) for name, count in one.counts.items()}
            | {LABEL_METRICS[name]: str(one.metrics[name]) for name in shown}
            for one in qualities[:LABELS_SHOWN]
        ],
        width=136,  # else intervals are cut
    )
    more = len(qualities) - LABELS_SHOWN
    if more > 0:
        print(f"{more} more {'labels' if more > 1 else 'label'}; --json lists all.")
    for sentence in explain_missing(qualities, shown):
        print(sentence)


def _write_count(count: float) -> str:
    return str(count) if isinstance(count, int) else f"{count:.3f}"


def _print_estimates(estimated: "EstimatedQuality") -> None:
    source = "candidates" if estimated.kind == "candidates" else "answers"
    rows = []
    for metric in estimated.metrics:
        row = {
            f"estimated from {source}": _write_name(metric.name),
            "value": _write_number(metric.value),
            "95 % interval": f"{_write_number(metric.low)} to {_write_number(metric.high)}"
            if metric.reason is None
            else "cannot be estimated",
            "labels": f"{metric.n_labels} of {estimated.n_labels}",
        }
        if any(other.true is not None for other in estimated.metrics):
            row["true"] = _write_number(metric.true)
        rows.append(row)
    print_rows(rows)
    _print_labels(estimated.by_label, ("precision", "recall", "f1", "auc"))
    rates = (
        "irrelevant labels are excluded at a constant rate"
        if estimated.kind == "candidates"
        else "no and yes are said at constant rates, about pairs that were asked at random,"
    )
    for reason, names in estimated.reasons().items():
        shown = ", ".join(map(_write_name, names))
        print(f"Cannot be estimated: {shown}, because {reason}.")
    if estimated.contradiction is not None:
        print(f"Warning: {estimated.contradiction}")
    print_prose(
        "No true label was used for the estimates. They hold for rows that training did not see, "
        f"if {rates} and the class prior (here: {estimated.prior_source}) is right. Uncertainty of "
        f"the prior in the intervals: {estimated.prior_error}. The ranking risk is known up to a "
        "constant."
    )
    if estimated.left_out and estimated.kind == "candidates":
        print(f"Nothing excludes {', '.join(estimated.left_out)}: left out of the estimates.")
    elif estimated.left_out:
        print(f"Nobody says no to {', '.join(estimated.left_out)}: only recall can be estimated.")


def _write_name(name: str) -> str:
    return name.replace("_", " ")


def _write_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


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
    from comes.workflows.predict import export_model

    if (file is None) == (output is None):
        raise typer.BadParameter("name one .onnx file: comes export MODEL -o model.onnx")
    print_summary(export_model(model, file or output or "").summary(), as_json)


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
        str | None,
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
    plot: Annotated[
        Path | None, typer.Option(help="A .png, .pdf or .svg file: estimated against true priors.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how often each label is relevant, and rates, from what was said.

    Example: comes priors photos.csv --labels 'has_*' -o priors.csv
    """
    from comes.workflows.priors import estimate_priors

    table = estimate_priors(
        data,
        output,
        reading=reading,
        method=method,
        exclude_rate=parse_numbers(exclude_rate, "--exclude-rate"),
        clean=clean,
        plot=plot,
        seed=seed,
    )
    if as_json:
        print_json(table.to_dict("records"))
        return
    print_table(table)
    if "error" in table:
        print(f"mean absolute error: {table['error'].abs().mean():.4f}")


@takes_options(reading=reading_options)
def check(
    data: Data,
    reading: "ReadOptions",
    clean: Annotated[
        Path | None,
        typer.Option(help="True labels of some items of the data; else the data must have them."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Test whether irrelevant labels are excluded at a constant rate, whatever the item.

    Example: comes check answers.csv --clean expert.csv --features features.npz
    """
    from comes.workflows.priors import check_assumption

    found = check_assumption(data, clean, reading=reading, seed=seed)
    rows = found.per_label.to_dict("records")
    if as_json:
        print_json({"conclusion": found.conclusion, "labels": rows})
        return
    print_rounded([{str(k): v for k, v in row.items()} for row in rows], digits=".3g")
    print(found.conclusion)
