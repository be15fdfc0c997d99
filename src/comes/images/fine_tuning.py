"""Network and head trained together, after the probe, on pixels."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from comes.answers import answer_evidence, posterior_probability
from comes.errors import warn_user
from comes.estimator.prepare import Training, as_plain
from comes.methods import Likelihood
from comes.training import History, TrainOptions, make_optimizer, predict_scores
from comes.training.checkpoint import Checkpoint
from comes.training.pixels import PixelRows

if TYPE_CHECKING:
    from comes.images.classifier import ImageClassifier

FEW_IN_A_BATCH = 50  # exclusions of a label; with fewer a pretrained network forgets
# Settings that a checkpoint may differ in: they change nothing, act later, or are hashed otherwise.
NOT_HASHED = ("device", "verbose", "part_size", "backbone", "weights", "random_state", "threshold")


class FineTuning:
    """The training of a whole network, with the rows, the targets and the risk of the probe."""

    def __init__(
        self,
        classifier: "ImageClassifier",
        images: Any,
        probed: Training,
        device: torch.device,
    ) -> None:
        self.classifier, self.images, self.probed = classifier, images, probed
        network, held_out = classifier.network_, probed.held_out
        self.rows, size = probed.rows, network.backbone.preprocessing
        if held_out is not None:
            held_out = replace(held_out, X=PixelRows(images[held_out.rows], size, device))
        self._warn_of_small_batches()
        augment: Any = classifier.augment
        self.training = replace(
            probed,
            network=network,
            X=PixelRows(images[self.rows], size, device, augment),
            held_out=held_out,
            may_be_graph=isinstance(classifier.backbone, str) and ":" not in classifier.backbone,
            options=TrainOptions(
                optimizer=self._make_optimizer,
                epochs=classifier.epochs,
                batch_size=classifier.batch_size,
                risk_scale=probed.options.risk_scale,
                cosine=(classifier.optimizer or {}).get("cosine", True),
                seed=probed.options.seed,
                progress=None if classifier.verbose == 0 else False,
                callbacks=classifier._list_callbacks(),
                description="fine-tuning",
                part_size=classifier.part_size,
                precision=classifier._choose_precision(device),
            ),
            is_shared=True,
            cross_score=None,
        )

    def run(self) -> History:
        """Train the whole network, in place: on soft targets, or by the risk of the probe."""
        if not self.classifier._uses_soft_targets:
            return self.training.run()
        network = self.training.network
        before = {name: value.clone() for name, value in network.state_dict().items()}
        mixes = self.classifier.augment == "mixup"
        softly = replace(
            self.training,
            targets=self._make_soft_targets(),
            risk=soft_cross_entropy,
            options=replace(self.training.options, mixes_pairs=mixes),
        )
        history = softly.run()
        with torch.no_grad():  # halfway, so that what was known before is not lost
            for name, value in network.state_dict().items():
                if value.is_floating_point():
                    value.lerp_(before[name], 0.5)
        return history

    def _make_soft_targets(self) -> torch.Tensor:
        """Return how probable each pair is, given the frozen head and the answers, (n, q)."""
        method, probed = self.probed.method, self.probed
        assert isinstance(method, Likelihood)
        answers = method.used(probed.answers[self.rows])
        evidence = answer_evidence(answers, probed.rates.answer_rates)
        scores = predict_scores(probed.network, probed.X)
        targets = posterior_probability(scores.cpu().numpy(), evidence)
        return torch.as_tensor(targets, dtype=torch.float32, device=scores.device)

    def _make_optimizer(self, _: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return an optimiser with a learning rate each for head and network."""
        classifier, network = self.classifier, self.classifier.network_
        make = make_optimizer(
            "adamw" if classifier.weight_decay else "adam",
            learning_rate=float(classifier.learning_rate),
            weight_decay=classifier.weight_decay,
        )
        optimizer = make(network.head.parameters())
        group = {"params": list(network.backbone.parameters())}
        optimizer.add_param_group(group | {"lr": classifier.backbone_learning_rate})
        return optimizer

    def _warn_of_small_batches(self) -> None:
        """Warn if batches have too few exclusions of a label to fine-tune a probed network."""
        batch_size, answers = self.classifier.batch_size, self.probed.answers
        if not self.probed.method.needs_large_batches or self.classifier.probe_epochs == 0:
            return
        share = float(np.median(answers.without_chosen().excluded.mean(axis=0)))
        if share * batch_size < FEW_IN_A_BATCH and len(answers) > 10 * batch_size:
            warn_user(
                f"a batch of {batch_size} has about {share * batch_size:.0f} exclusions of a "
                f"label; with fewer than {FEW_IN_A_BATCH} fine-tuning may lose what the probe has "
                "learned. Use larger batches, in parts (--batch-size 1024 --part-size 128 on the "
                "command line)."
            )

    def keep_state(self, path: str | Path, begun: str) -> None:
        """Keep the state in a file, with a hash of everything that decides the result.

        ``begun`` is the hash of the weights that the network came with.
        """
        probed, parameters = self.probed, self.classifier.get_params(deep=False)
        settings = {k: as_plain(v) for k, v in parameters.items() if k not in NOT_HASHED}
        precision = str(self.training.options.precision)
        settings |= {"seed": probed.options.seed, "precision": precision}
        labels = hashlib.sha256(probed.answers.codes.tobytes())
        labels.update(probed.targets.cpu().numpy().tobytes())  # kinds of answers, people, chosen
        fingerprint = [settings, self.images.fingerprint(), labels.hexdigest(), begun]
        text = json.dumps(fingerprint, sort_keys=True)
        checkpoint = Checkpoint(Path(path), hashlib.sha256(text.encode()).hexdigest())
        self.training = replace(self.training, checkpoint=checkpoint)


def soft_cross_entropy(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of scores and probabilities."""
    return F.binary_cross_entropy_with_logits(scores.float(), targets)
