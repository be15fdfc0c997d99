"""The options that are settings of a classifier."""

from typing import Annotated, Any

import typer

from comes.cli.options import Seed, drop_missing, parse_numbers
from comes.methods import DEFAULT, METHODS


def training_options(
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}, or auto.")] = DEFAULT,
    variant: Annotated[str | None, typer.Option(help="Of a method that has variants.")] = None,
    flip_rate: Annotated[
        str | None,
        typer.Option(
            help="For ccmn: a number, or one per label separated by commas, or class_prior; by "
            "default estimated."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="mlp (default) or linear, for features.")
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="Of images: resnet50, timm:NAME or torchvision:NAME. Default: resnet50."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Of the backbone: imagenet (default) or a file, safetensors or .pth."),
    ] = None,
    image_features: Annotated[
        str | None, typer.Option(help="What the head reads of an image: auto, classes or pooled.")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(help="Height and width of images. Default: 224.", min=8)
    ] = None,
    augment: Annotated[
        str | None, typer.Option(help="Of images: flip (default), crop or none.")
    ] = None,
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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the settings that were given; the parameters are the options."""
    rates = flip_rate if flip_rate == "class_prior" else parse_numbers(flip_rate, "--flip-rate")
    return drop_missing(
        method=method,
        variant=variant,
        flip_rate=rates,
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
        reduction=reduction,
        threshold=threshold,
        early_stopping=early_stopping,
        device=device,
        random_state=seed,
    )
