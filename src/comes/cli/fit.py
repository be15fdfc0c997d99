"""``comes fit``: train a model, or choose one and train it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.options import Data, Json, Seed
from comes.cli.printing import print_rows, print_summary
from comes.cli.reading import parse_numbers, reads_data
from comes.labels import METHODS

if TYPE_CHECKING:
    from comes.datasets import Dataset
    from comes.estimator import CandidateClassifier


@reads_data
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model.")],
    reading: dict[str, Any],
    method: Annotated[
        str, typer.Option(help=f"One of {', '.join(METHODS)}, or auto.")
    ] = "comes-hl",
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
    model: Annotated[str, typer.Option(help="mlp or linear.")] = "mlp",
    epochs: Annotated[int, typer.Option(min=1)] = 200,
    batch_size: Annotated[int, typer.Option(min=1)] = 256,
    learning_rate: Annotated[float, typer.Option(min=0)] = 5e-3,
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
    """
    from comes.datasets import open_dataset
    from comes.estimator import CandidateClassifier, storage
    from comes.priors import read_priors

    partial = Path(f"{output}.partial")
    for target in (output, partial):
        storage.check_target(target)
    dataset = open_dataset(data, **reading)
    X = dataset.known_features()
    classifier = CandidateClassifier(
        "comes-hl" if method == "auto" else method,
        variant=variant or None,
        class_prior=None if priors is None else read_priors(priors),
        flip_rate=flip_rate
        if flip_rate == "class_prior"
        else parse_numbers(flip_rate, "--flip-rate"),
        model=model,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        reduction=reduction,
        threshold=threshold,
        early_stopping=early_stopping,
        device=device,
        random_state=seed,
    )
    varied = [name.strip() for name in select.split(",") if name.strip()]
    if method == "auto" and "method" not in varied:
        varied = ["method", *varied]
    compared = None
    if varied:
        classifier, compared = _choose(classifier, varied, X, dataset, as_json)
    classifier.fit(X, dataset.candidates_with_names())
    history = classifier.history_
    if not history.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if history.interrupted:  # the work so far is kept, but not in place of a finished model
        output = partial
    classifier.save(output)
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

    from comes.estimator.checks import per_label
    from comes.experiment.choosing import choose_classifier, variations
    from comes.priors import estimate_class_prior

    seed: Any = classifier.random_state
    S = dataset.candidates_with_names().to_numpy(dtype=bool)
    prior: Any = classifier.class_prior
    if prior is None:
        prior = estimate_class_prior(X, S, random_state=seed, label_names=dataset.label_names)
    else:
        prior = per_label(prior, "class_prior", dataset.label_names)
    choice = choose_classifier(variations(classifier, varied), X, S, prior, seed=seed)
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
