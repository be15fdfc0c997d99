"""Network and head trained together, after the probe, on pixels."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from comes.answers import Answers, answer_evidence, posterior_probability
from comes.errors import ComesError, ComesWarning
from comes.estimator.preparation import Training, split_rows
from comes.estimator.storage import plain
from comes.methods import method_of_label
from comes.models.views import ImageNetwork
from comes.training import History, TrainOptions, make_optimizer, predict_scores
from comes.training.checkpoint import Checkpoint
from comes.training.options import MakeOptimizer
from comes.training.pixels import PixelRows

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

FEW_IN_A_BATCH = 50  # exclusions of a label; with fewer a pretrained network forgets
# Settings that a checkpoint may differ in: they change nothing, act later, or are hashed otherwise.
UNDECIDED = ("device", "progress", "part_size", "backbone", "weights", "random_state", "threshold")


def prepare_fine_tuning(
    classifier: "ImageClassifier",
    images: Any,
    probed: Training,
    device: torch.device,
    precision: torch.dtype | None,
    checkpoint: Checkpoint | None,
) -> Training:
    """Return the training of the whole network, with the rows and the risk of the probe."""
    n, size = len(probed.raw[1]), classifier.network_.backbone.preprocessing
    _warn_of_small_batches(classifier, probed.raw[1])
    trained, held_out = np.arange(n), probed.held_out
    if held_out is not None:
        trained, held = split_rows(n, classifier.validation_share, probed.options.seed)
        pixels = PixelRows(images[held], size, device)
        held_out = replace(held_out, X=pixels)
    augment: Any = classifier.augment
    return Training(
        method=probed.method,
        module=classifier.network_,
        X=PixelRows(images[trained], size, device, augment),
        seen=probed.seen,
        risk=probed.risk,
        held_out=held_out,
        raw=probed.raw,
        is_ours=isinstance(classifier.backbone, str) and ":" not in classifier.backbone,
        options=TrainOptions(
            optimizer=_set_two_rates(classifier),
            epochs=classifier.epochs,
            batch_size=classifier.batch_size,
            risk_scale=probed.options.risk_scale,
            cosine=classifier.cosine,
            seed=probed.options.seed,
            progress=classifier.progress,
            description="fine-tuning",
            part_size=classifier.part_size,
            precision=precision,
        ),
        checkpoint=checkpoint,
        is_shared=True,
    )


def run_fine_tuning(classifier: "ImageClassifier", training: Training, probed: Training) -> History:
    """Train the whole network, in place: on soft targets, or by the risk of the probe."""
    if not learns_softly(classifier):
        return training.run()
    before = {name: value.clone() for name, value in training.module.state_dict().items()}
    mixes = classifier.augment == "mixup"
    softly = replace(
        training,
        seen=find_soft_targets(classifier, probed),
        risk=soft_cross_entropy,
        options=replace(training.options, mixes_pairs=mixes),
    )
    history = softly.run()
    meet_halfway(training.module, before)
    return history


def learns_softly(classifier: "ImageClassifier") -> bool:
    """Return whether fine-tuning learns probabilities, by default where a head can give them."""
    wanted = classifier.soft_targets
    return _can_give_probabilities(classifier) if wanted is None else wanted


def _can_give_probabilities(classifier: "ImageClassifier") -> bool:
    """Return whether there is a head, and rates that say what answers tell."""
    named = method_of_label(classifier.method_)
    return named is not None and named.has_view_head and classifier.probe_epochs != 0


def find_soft_targets(classifier: "ImageClassifier", probed: Training) -> torch.Tensor:
    """Return how probable each pair is, given the frozen head and what was said, (n, q)."""
    answers = probed.raw[1]
    if probed.held_out is not None:
        n, share = len(answers), classifier.validation_share
        answers = answers[split_rows(n, share, probed.options.seed)[0]]
    if not classifier.uses_maybe:
        answers = answers.without_maybe()
    evidence = answer_evidence(answers, classifier.rates_.answer_rates)
    scores = predict_scores(probed.module, probed.X)
    targets = posterior_probability(scores.cpu().numpy(), evidence)
    return torch.as_tensor(targets, dtype=torch.float32, device=scores.device)


def soft_cross_entropy(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of scores and probabilities."""
    return F.binary_cross_entropy_with_logits(scores.float(), targets)


@torch.no_grad()
def meet_halfway(module: nn.Module, before: Mapping[str, torch.Tensor]) -> None:
    """Set weights to their mean before and after training: what was known before is not lost."""
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            value.lerp_(before[name], 0.5)


def check_soft_targets(classifier: "ImageClassifier") -> None:
    """Refuse soft targets where nothing gives them, and mixed answers, which mean nothing."""
    softly = learns_softly(classifier)
    if softly and not _can_give_probabilities(classifier):
        raise ComesError(
            "soft_targets must go with method 'likelihood' and a probe, which give them; got "
            f"{classifier.method_!r} and probe_epochs={classifier.probe_epochs}. Leave it out."
        )
    if classifier.augment == "mixup" and not softly:
        raise ComesError(
            "augment='mixup' must go with soft targets, which can be mixed; got answers. Take "
            "method 'likelihood' with a probe, or augment='crop'."
        )


def _warn_of_small_batches(classifier: "ImageClassifier", answers: Answers) -> None:
    """Warn if batches have too few exclusions of a label to fine-tune a probed network."""
    named = method_of_label(classifier.method_)
    if named is None or not named.needs_large_batches or classifier.probe_epochs == 0:
        return
    in_a_batch = (
        float(np.median(answers.without_chosen().excluded.mean(axis=0))) * classifier.batch_size
    )
    is_small = in_a_batch < FEW_IN_A_BATCH and len(answers) > 10 * classifier.batch_size
    if is_small:
        warnings.warn(
            f"a batch of {classifier.batch_size} has about {in_a_batch:.0f} exclusions of a label; "
            f"with fewer than {FEW_IN_A_BATCH} fine-tuning may lose what the probe has learned. "
            "Use larger batches, in parts (--batch-size 1024 --part-size 128 on the command "
            "line).",
            ComesWarning,
            stacklevel=2,
        )


def make_checkpoint(
    classifier: "ImageClassifier",
    path: str | Path,
    images: Any,
    probed: Training,
    start: str,
    precision: torch.dtype | None,
) -> Checkpoint:
    """Return the checkpoint in a file, with a hash of everything that decides the result.

    ``start`` is the hash of the weights that the network came with.
    """
    settings = {k: plain(v) for k, v in classifier.get_params(deep=False).items()}
    for name in UNDECIDED:
        del settings[name]
    settings |= {"seed": probed.options.seed, "precision": str(precision)}
    labels = hashlib.sha256(probed.raw[1].codes.tobytes())
    labels.update(probed.seen.cpu().numpy().tobytes())  # kinds of answers, people, what was chosen
    text = json.dumps([settings, images.fingerprint(), labels.hexdigest(), start], sort_keys=True)
    return Checkpoint(Path(path), hashlib.sha256(text.encode()).hexdigest())


def _set_two_rates(classifier: "ImageClassifier") -> MakeOptimizer:
    """Return a callable that makes an optimiser with a learning rate each for head and network."""
    network: ImageNetwork = classifier.network_
    make = make_optimizer(
        "adamw" if classifier.weight_decay else "adam",
        learning_rate=classifier.learning_rate,
        weight_decay=classifier.weight_decay,
    )

    def make_with_two_rates(_: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        optimiser = make(network.head.parameters())
        group = {"params": list(network.backbone.parameters())}
        optimiser.add_param_group(group | {"lr": classifier.backbone_learning_rate})
        return optimiser

    return make_with_two_rates
