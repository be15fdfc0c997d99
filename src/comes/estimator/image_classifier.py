"""`ImageClassifier`: a pretrained network with a head that learns from candidates.

First a head is trained on the features of the frozen network (the probe), then, if asked, network
and head together (fine-tuning). With few answers the probe gives most of what can be learned.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from comes.answers import Answers
from comes.estimator import image_storage
from comes.estimator.features import (
    as_pictures,
    choose_precision,
    explaining_memory,
    features_of,
    in_parts,
    stream_features,
    weights_hash,
)
from comes.estimator.fine_tuning import (
    check_soft_targets,
    make_checkpoint,
    prepare_fine_tuning,
    run_fine_tuning,
)
from comes.estimator.finishing import finish_fit
from comes.estimator.fit_checks import warn_of
from comes.estimator.heads import (
    ShownPictures,
    choose_features,
    has_views,
    needs_features,
    train_head_alone,
)
from comes.estimator.predictions import PredictsFromScores, keeping_earlier_fit
from comes.estimator.preparation import Training
from comes.estimator.pretrained import pretrained_backbone
from comes.estimator.reading_answers import choose_method, read_answers
from comes.estimator.settings import check_image_settings, share_seed
from comes.estimator.view_heads import train_view_head
from comes.metrics import mean_average_precision
from comes.models import Backbone
from comes.models.backbones import place_network
from comes.training import History, predict_scores
from comes.training.pixels import PixelRows
from comes.training.processes import join_processes, process_number
from comes.training.rows import choose_device

FloatArray = npt.NDArray[np.floating]


class ImageClassifier(PredictsFromScores, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-label classifier of images, trained on answers, candidates or complementary labels.

    Parameters
    ----------
    method, variant, class_prior, exclude_rate, no_rate, yes_rate, mistake_rate, uses_maybe,
    prior_weight, flip_rate, reduction, normaliser, flood_level, threshold
        As in `CandidateClassifier`. What is not given is estimated from the features.
    backbone : str or module
        "resnet50" (also 101, 152), "timm:NAME", "torchvision:NAME", "folder:PATH" (saved by timm or
        transformers), or a module that maps normalised images to features.
    weights : str or path, optional
        "imagenet" downloads them. Or a file, safetensors or a state dict of torch. None keeps the
        weights of your own module, or takes random ones.
    image_size : int, optional
        Height and width of what the network sees; by default its own, 224 for the built-in ones.
    centre_crop : bool
        Show the network the centre of a picture, not all of it, stretched: edges have labels, too.
    features : {"auto", "all", "both", "classes", "clusters", "pooled"}
        What the head reads: ``classes`` that the network was trained on, ``clusters`` of pictures,
        ``both``, ``all``, which adds the ``pooled`` features of its last layer, or these alone:
        for "likelihood" any, "comes-hl" classes or pooled, others pooled. ``auto``: the most.
    standard_errors : float
        How far above chance evidence for the weight of a class or cluster must be to leave zero.
    temperature : float
        Divides the scores of classes before they become probabilities.
    probe_epochs : int, optional
        Of the head on the frozen network: by default 60, for "comes-hl" on ``classes`` 30. With 0
        fine-tuning starts from a head of zeros that reads the pooled features as they are.
    epochs, batch_size : int
        Of fine-tuning, network and head together; 0 epochs leave the network unchanged.
    learning_rate, backbone_learning_rate : float
        Of Adam in fine-tuning, for the head and for the network.
    weight_decay, cosine
        As in `CandidateClassifier`, in fine-tuning.
    augment : {"flip", "crop", "mixup", "none"}
        In fine-tuning: mirror half of the pictures, also cut out a random part, also mix pairs.
    soft_targets : bool, optional
        Fine-tune on what head and answers together say; by default where "likelihood" has a head.
    freezes_statistics : bool
        Freeze batch normalisation in fine-tuning; else parts and processes are no longer exact.
    early_stopping, validation_share, patience
        As in `CandidateClassifier`, for the probe and for fine-tuning, on the same held-out rows.
    part_size : int, optional
        Put this many pictures through the network at a time, if a batch does not fit into memory.
    precision : {"auto", "bfloat16", "float32"}
        Of the network; ``auto`` is bfloat16 on a GPU.
    device, random_state, progress
        As in `CandidateClassifier`. Under torchrun each process takes its GPU and share of batches.

    Attributes
    ----------
    label_names_, classes_, class_prior_, flip_rate_, transition_, score_offset_, threshold_
        As in `CandidateClassifier`.
    network_ : ImageNetwork
    history_ : History
        Of the last training: fine-tuning, or the probe.
    is_frozen_ : bool
        Whether the network has the weights that it came with.

    Examples
    --------
    >>> from comes.models import ResNet
    >>> rng = np.random.default_rng(0)
    >>> images = rng.integers(0, 255, size=(40, 32, 32, 3), dtype=np.uint8)
    >>> candidates = rng.random((40, 2)) < 0.4
    >>> network = ResNet((1, 1, 1, 1), width=4)
    >>> clf = ImageClassifier(backbone=network, weights=None, image_size=32, class_prior=[0.3, 0.3])
    >>> clf.fit(images, candidates).predict(images).shape
    (40, 2)
    """

    def __init__(
        self,
        method: str | None = None,
        *,
        variant: str | None = None,
        class_prior: npt.ArrayLike | None = None,
        exclude_rate: npt.ArrayLike | None = None,
        no_rate: npt.ArrayLike | None = None,
        yes_rate: npt.ArrayLike | None = None,
        mistake_rate: float = 0.0,
        uses_maybe: bool = True,
        prior_weight: float | None = None,
        flip_rate: npt.ArrayLike | str | None = None,
        backbone: str | nn.Module = "resnet50",
        weights: str | Path | None = "imagenet",
        image_size: int | None = None,
        centre_crop: bool = False,
        features: str = "auto",
        standard_errors: float = 2.0,
        temperature: float = 2.0,
        probe_epochs: int | None = None,
        epochs: int = 0,
        batch_size: int = 64,
        learning_rate: float = 1e-4,
        backbone_learning_rate: float = 1e-5,
        weight_decay: float = 0.0,
        cosine: bool = True,
        augment: str = "flip",
        soft_targets: bool | None = None,
        freezes_statistics: bool = True,
        reduction: str = "auto",
        normaliser: str = "dataset",
        flood_level: float | Literal["auto"] = "auto",
        threshold: str = "auto",
        early_stopping: bool = False,
        validation_share: float = 0.2,
        patience: int | None = None,
        part_size: int | None = None,
        precision: str = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        progress: bool | None = None,
    ) -> None:
        self.method = method
        self.variant = variant
        self.class_prior = class_prior
        self.exclude_rate = exclude_rate
        self.no_rate = no_rate
        self.yes_rate = yes_rate
        self.mistake_rate = mistake_rate
        self.uses_maybe = uses_maybe
        self.prior_weight = prior_weight
        self.flip_rate = flip_rate
        self.backbone = backbone
        self.weights = weights
        self.image_size = image_size
        self.centre_crop = centre_crop
        self.features = features
        self.standard_errors = standard_errors
        self.temperature = temperature
        self.probe_epochs = probe_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.backbone_learning_rate = backbone_learning_rate
        self.weight_decay = weight_decay
        self.cosine = cosine
        self.augment = augment
        self.soft_targets = soft_targets
        self.freezes_statistics = freezes_statistics
        self.reduction = reduction
        self.normaliser = normaliser
        self.flood_level = flood_level
        self.threshold = threshold
        self.early_stopping = early_stopping
        self.validation_share = validation_share
        self.patience = patience
        self.part_size = part_size
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        images: Any,
        y: Any = None,
        *,
        candidates: Any = None,
        complementary: Any = None,
        answers: Answers | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on answers or candidate labels.

        Parameters
        ----------
        images : comes.datasets.Images, or sequence of uint8 arrays of shape (height, width, 3)
        y, candidates, complementary, answers : arrays, DataFrames or Answers (n_samples, n_labels)
            As in `CandidateClassifier.fit`: one of them, or y as the truth beside another.
        label_names : sequence of n_labels str, optional
            For candidates without column names.
        checkpoint : path, optional
            A file that keeps the state of fine-tuning after every epoch; if it exists, training
            goes on from there, to the same weights. It stays: delete it when the model is saved.

        Returns
        -------
        self : ImageClassifier
        """
        check_image_settings(self)
        given = read_answers(y, candidates, complementary, answers, label_names)
        device = join_processes(choose_device(self.device))
        with keeping_earlier_fit(self), explaining_memory(self):
            self.method_ = choose_method(self.method)
            check_soft_targets(self)
            self._fit(as_pictures(images), given, device, checkpoint)
            warn_of(self.history_)
        return self

    def _fit(
        self,
        images: Any,
        answers: Answers,
        device: torch.device,
        checkpoint: str | Path | None,
    ) -> None:
        seed = share_seed(self.random_state)
        given = self.backbone, self.weights, images, self.image_size, device
        backbone = pretrained_backbone(*given, centre_crop=self.centre_crop)
        backbone.temperature = self.temperature
        start = weights_hash(backbone) if self.epochs and checkpoint is not None else ""
        training = self._train_probe(backbone, images, answers, seed, device)
        self.is_frozen_ = self.epochs == 0 or self.history_.interrupted
        if not self.is_frozen_:
            self._fine_tune(images, training, device, checkpoint, start)

    def _train_probe(
        self,
        backbone: Backbone,
        images: Any,
        answers: Answers,
        seed: int,
        device: torch.device,
    ) -> Training:
        """Train a head on the frozen network and put it on top; return how it was trained."""
        kind, classes = choose_features(self, backbone), backbone.classifier
        train_head = train_view_head if has_views(self.method_, kind) else train_head_alone
        if kind == "pooled" or train_head is train_view_head:
            backbone.classifier = None  # the features are those below it
        if needs_features(self):
            X = features_of(backbone, images, None, device, **in_parts(self, device, cache=True))
        else:
            X = np.zeros((len(images), backbone.count_features()), np.float32)
        shown = ShownPictures(X, backbone, classes, kind)
        self.network_, probe, training = train_head(self, shown, answers, seed, device)
        self.label_names_, self.classes_ = probe.label_names_, probe.classes_
        self.rates_, self.history_, self.calibration_ = probe.rates_, History(), None
        self.trained_on_ = {"rows": len(answers), "kind": answers.kind}
        if self.probe_epochs != 0:
            self.history_ = probe.history_
            self.score_offset_, self.threshold_ = probe.score_offset_, probe.threshold_
        return training

    def _fine_tune(
        self,
        images: Any,
        probed: Training,
        device: torch.device,
        checkpoint: str | Path | None,
        start: str,
    ) -> None:
        """Train network and head together; ``start`` is the hash of the weights it came with."""
        precision, state = choose_precision(self, device), None
        if checkpoint is not None:
            state = make_checkpoint(self, checkpoint, images, probed, start, precision)
        training = prepare_fine_tuning(self, images, probed, device, precision, state)
        finish_fit(self, training, run_fine_tuning(self, training, probed))

    def decision_function(self, images: Any, *, cache: bool = False) -> FloatArray:
        """Return raw scores, higher for more relevant: one array of shape (n_samples, n_labels).

        With ``cache``, features of a frozen network by name are kept on disk, as in `fit`.
        """
        check_is_fitted(self)
        images = as_pictures(images)
        device = choose_device(self.device)
        network = place_network(self.network_, device)
        with explaining_memory(self), torch.no_grad():
            how = in_parts(self, device, cache)
            if self.is_frozen_:
                parts = stream_features(network.backbone, images, device, **how)
                scores = torch.cat([network.score_features(part).cpu() for part in parts])
            else:
                pixels = PixelRows(images, network.backbone.preprocessing, device, keep="nowhere")
                scores = predict_scores(network, pixels, how["at_once"], how["precision"])
        return np.asarray(scores.cpu().numpy())

    def score(self, images: Any, y: Any, sample_weight: None = None) -> float:
        """Return the mean average precision (mAP) against true labels."""
        relevant = self._read_truth(y, sample_weight)
        return mean_average_precision(self.decision_function(images), relevant)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder, as safetensors and json, replacing one there."""
        check_is_fitted(self)
        if process_number() == 0:
            image_storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path, backbone: nn.Module | None = None) -> Self:
        """Read a fitted model from a folder; ``backbone`` is needed if it was one of your own."""
        return image_storage.load(cls, path, backbone)
