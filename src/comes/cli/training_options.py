"""The options that are settings of a classifier."""

from typing import Annotated, Any

from comes.cli.completion_values import (
    METHOD_NAMES,
    complete_backbone,
    complete_device,
    complete_method,
    complete_network,
    offer,
)
from comes.cli.help_pages import options_under
from comes.cli.options import Seed, drop_missing, image_option, parse_numbers
from comes.errors import ComesError

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
