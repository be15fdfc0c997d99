"""``comes fit``: train a model, or choose one and train it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.images import checkpoint_of, fit_images
from comes.cli.options import Data, Json, Seed
from comes.cli.printing import print_rows, print_summary
from comes.cli.reading import parse_numbers, reads_data
from comes.errors import ComesError
from comes.methods import DEFAULT, METHODS

if TYPE_CHECKING:
    from comes.datasets import Dataset
    from comes.estimator import CandidateClassifier


@reads_data
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model.")],
    reading: dict[str, Any],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}, or auto.")] = DEFAULT,
    variant: Annotated[str, typer.Option(help="Of a method that has variants.")] = "",
    priors: Annotated[
        Path | None,
        typer.Option(help="A table of class priors, as 'comes priors -o' writes it."),
    ] = None,
    flip_rate: Annotated[
        str,
        typer.Option(
            help="For ccmn: a number, or one per label separated by commas, or class_prior; by "
            "default estimated."
        ),
    ] = "",
    model: Annotated[str, typer.Option(help="mlp (default) or linear, for features.")] = "",
    backbone: Annotated[
        str,
        typer.Option(help="Of images: resnet50, timm:NAME or torchvision:NAME. Default: resnet50."),
    ] = "",
    weights: Annotated[
        str,
        typer.Option(help="Of the backbone: imagenet (default) or a file, safetensors or .pth."),
    ] = "",
    freeze: Annotated[
        bool,
        typer.Option("--freeze", help="Leave the backbone as it is, as without --epochs."),
    ] = False,
    image_features: Annotated[
        str, typer.Option(help="What the head reads of an image: auto, classes or pooled.")
    ] = "",
    image_size: Annotated[
        int | None, typer.Option(help="Height and width of images. Default: 224.", min=8)
    ] = None,
    augment: Annotated[str, typer.Option(help="Of images: flip (default), crop or none.")] = "",
    backbone_learning_rate: Annotated[
        float | None, typer.Option(help="Of the backbone; by default 1e-5.", min=0)
    ] = None,
    part_size: Annotated[
        int | None,
        typer.Option(help="Images at a time, where a batch does not fit into memory.", min=1),
    ] = None,
    probe_epochs: Annotated[
        int | None,
        typer.Option(help="Of the head on the frozen backbone; 0 starts with --epochs.", min=0),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="By default 200; of the backbone of images 0.", min=0)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="By default 256; 64 images.", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="By default 5e-3; of images 1e-4.", min=0)
    ] = None,
    reduction: Annotated[str, typer.Option(help="auto, sum, mean or per_label.")] = "auto",
    threshold: Annotated[
        str, typer.Option(help="Where to cut scores: auto, zero, prior, risk, f1 or minmax.")
    ] = "auto",
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping", help="Keep the epoch with the least risk on held-out rows."
        ),
    ] = False,
    select: Annotated[
        str,
        typer.Option(
            help="What to choose by candidates of other rows: method, lr, epochs, separated by "
            "commas."
        ),
    ] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a model on candidate labels, or on complementary labels.

    Example: comes fit photos.csv --labels 'has_*' --method comes-hl -o model/

    Example: comes fit photos.csv --labels 'has_*' --images photos/ --backbone resnet50 -o model/
    """
    from comes.datasets import Images, open_dataset
    from comes.estimator import CandidateClassifier, check_model_target
    from comes.priors import read_priors

    partial = Path(f"{output}.partial")
    for target in (output, partial):
        check_model_target(target)
    dataset = open_dataset(data, **reading)
    rates = flip_rate if flip_rate == "class_prior" else parse_numbers(flip_rate, "--flip-rate")
    settings: dict[str, Any] = {
        "method": DEFAULT if method == "auto" else method,
        "variant": variant or None,
        "class_prior": None if priors is None else read_priors(priors),
        "flip_rate": rates,
        "reduction": reduction,
        "threshold": threshold,
        "early_stopping": early_stopping,
        "device": device,
        "random_state": seed,
    }
    given = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    of_images = {
        "backbone": backbone,
        "weights": weights,
        "features": image_features,
        "image_size": image_size,
        "augment": augment,
        "backbone_learning_rate": backbone_learning_rate,
        "part_size": part_size,
        "probe_epochs": probe_epochs,
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    of_images = {name: value for name, value in of_images.items() if value not in ("", None)}
    varied = [name.strip() for name in select.split(",") if name.strip()]
    if method == "auto" and "method" not in varied:
        varied = ["method", *varied]
    compared = None
    classifier: Any
    if isinstance(dataset.X, Images):
        if varied or model:
            raise ComesError("--select, --method auto and --model are for tables, not for images.")
        classifier = fit_images(dataset, output, settings | of_images, freeze=freeze)
        if classifier is None:
            return
    elif of_images or freeze:
        raise ComesError(
            f"options of a backbone were given, and {data} has no images: name their folder "
            "(--images), or leave them out."
        )
    else:
        X = dataset.known_features()
        classifier = CandidateClassifier(**settings, model=model or "mlp")
        if varied:
            classifier, compared = _choose(classifier, varied, X, dataset, as_json)
        classifier.fit(X, dataset.candidates_with_names())
    history = classifier.history_
    if not history.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if history.interrupted:  # the work so far is kept, but not in place of a finished model
        output = partial
    classifier.save(output)
    if not history.interrupted:
        checkpoint_of(output).unlink(missing_ok=True)
    summary: dict[str, Any] = {
        "data": str(dataset),
        "method": classifier.method,
        "epochs": len(history.risk),
        "interrupted": history.interrupted,
        "seconds": round(history.seconds, 2),
        "risk": history.risk[-1 if history.best_epoch is None else history.best_epoch - 1],
        "model": str(output),
    }
    if history.best_epoch is not None:
        summary["kept_epoch"] = history.best_epoch
    if compared is not None and as_json:
        summary["compared"] = compared
    print_summary(summary, as_json)
    if history.interrupted:
        raise typer.Exit(130)


def _choose(
    classifier: "CandidateClassifier", varied: list[str], X: Any, dataset: "Dataset", as_json: bool
) -> tuple["CandidateClassifier", list[dict[str, Any]]]:
    """Return the classifier that candidates favour, told its class prior, and the comparison."""
    import numpy as np

    from comes.estimator import choose_classifier, per_label, vary_settings
    from comes.priors import estimate_class_prior

    seed: Any = classifier.random_state
    S = dataset.candidates_with_names().to_numpy(dtype=bool)
    prior: Any = classifier.class_prior
    if prior is None:
        prior = estimate_class_prior(X, S, random_state=seed, label_names=dataset.label_names)
    else:
        prior = per_label(prior, "class_prior", dataset.label_names)
    choice = choose_classifier(vary_settings(classifier, varied), X, S, prior, seed=seed)
    rows = [{str(k): v for k, v in row.items()} for row in choice.table.to_dict("records")]
    if not as_json:
        shown = [{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows]
        print_rows(sorted(shown, key=lambda row: float(row["behind"])))
        chosen = f"{choice.classifier.method}, learning rate {choice.classifier.learning_rate:g}"
        print(
            f"Chosen: {chosen}, {choice.classifier.epochs} epochs. It has the least ranking risk, "
            "estimated from candidates of rows that training did not see. 'behind' says what the "
            "others are behind by; where its interval reaches 0, they may well be as good."
        )
    return choice.classifier.set_params(class_prior=np.asarray(prior)), rows
