"""``comes features``: put images through a network once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from comes.cli.completion_values import complete_backbone, complete_device
from comes.cli.help_pages import options_under
from comes.cli.options import CentreCrop, ImageSource, Json, SkipBroken
from comes.cli.printing import print_summary
from comes.errors import ComesError

network_option = options_under("Network")
cluster_option = options_under("On a cluster")


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
            help="resnet50, timm:NAME, torchvision:NAME, or folder:PATH, as timm or transformers "
            "save it.",
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
    centre_crop: CentreCrop = False,
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
    backend: Annotated[
        Literal["dask", "ray"] | None,
        cluster_option(help="A cluster that computes them. Default: this machine."),
    ] = None,
    scheduler: Annotated[
        str | None,
        cluster_option(help="Address of the cluster. Default: one that is started here."),
    ] = None,
    workers: Annotated[
        int, cluster_option(help="Processes of a cluster that is started here.", min=1)
    ] = 2,
    as_json: Json = False,
) -> None:
    """Compute features of images by a frozen network; called again, it goes on where it stopped.

    Example: comes features photos/ -o features.npz

    Example: comes features photos.csv --images photos/ --backbone folder:dinov2/ -o features.npz
    """
    from comes.clusters import Cluster
    from comes.jobs import compute_features

    if scheduler is not None and backend is None:
        raise ComesError(
            f"--scheduler is the address of a cluster; got {scheduler} without --backend. Give "
            "--backend dask or ray, or leave it out."
        )
    try:
        found = compute_features(
            data,
            output,
            images=images,
            backbone=backbone,
            weights=weights,
            features=image_features,
            image_size=image_size,
            centre_crop=centre_crop,
            skip_broken=skip_broken,
            part_size=part_size,
            device=device,
            cluster=None if backend is None else Cluster(backend, scheduler, workers),
        )
    except KeyboardInterrupt:
        raise ComesError(
            "interrupted. What was computed is kept: the same command goes on from there."
        ) from None
    summary: dict[str, object] = {"images": len(found), "features": found.X.shape[1]}
    print_summary(summary | ({"file": str(output)} if output is not None else {}), as_json)
