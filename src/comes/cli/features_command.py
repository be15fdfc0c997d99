"""``comes features``: put images through a network once."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.completion_values import complete_backbone, complete_device
from comes.cli.help_pages import options_under
from comes.cli.options import ImageSource, Json, SkipBroken
from comes.cli.printing import print_summary
from comes.errors import ComesError

network_option = options_under("Network")


def features(
    data: Annotated[
        str, typer.Argument(help="A folder or .zip of images, or a table that names images.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .npz, .parquet or .npy file. Default: the cache alone."
        ),
    ] = None,
    backbone: Annotated[
        str,
        network_option(
            help="resnet50, timm:NAME or torchvision:NAME.",
            autocompletion=complete_backbone,
        ),
    ] = "resnet50",
    weights: Annotated[
        str, network_option(help="imagenet, or a .safetensors or .pth file.")
    ] = "imagenet",
    image_features: Annotated[
        str, network_option(help="pooled (the last layer), or classes (class probabilities).")
    ] = "pooled",
    image_size: Annotated[
        int | None,
        network_option(help="Height and width of images. Default: the network's own.", min=8),
    ] = None,
    images: ImageSource = None,
    skip_broken: SkipBroken = False,
    part_size: Annotated[
        int | None, network_option(help="Images to process at a time. Default: 256.", min=1)
    ] = None,
    device: Annotated[
        str,
        network_option(
            help="Where to compute: auto, cpu, cuda, ...", autocompletion=complete_device
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Compute features of images by a frozen network; called again, it goes on where it stopped.

    Example: comes features photos/ -o features.npz

    Example: comes features photos.csv --images photos/ --backbone timm:resnet18 -o features.npz
    """
    from comes.jobs import compute_features

    try:
        found = compute_features(
            data,
            output,
            images=images,
            backbone=backbone,
            weights=weights,
            features=image_features,
            image_size=image_size,
            skip_broken=skip_broken,
            part_size=part_size,
            device=device,
        )
    except KeyboardInterrupt:
        raise ComesError(
            "interrupted. What was computed is kept: the same command goes on from there."
        ) from None
    summary: dict[str, object] = {"images": len(found), "features": found.X.shape[1]}
    print_summary(summary | ({"file": str(output)} if output is not None else {}), as_json)
