"""`ImageClassifier`: a pretrained network with a head that learns from answers or candidates.

First a head is trained on the features of the frozen network (the probe), then, if asked, network
and head together (fine-tuning). With few answers the probe gives most of what can be learned.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import nn

from comes.answers import AnswerRates, Answers
from comes.errors import ComesError
from comes.estimator.base import BaseCandidateClassifier, FloatArray
from comes.estimator.checks import warn_of
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.corrected import CorrectedClassifier
from comes.estimator.inputs import per_label, read_answers
from comes.estimator.prepare import LEARNED_THRESHOLDS, Training, draw_seed, prepare
from comes.estimator.rates import read_rates
from comes.files import expanded
from comes.images import storage
from comes.images.backbones import Backbone, make_backbone, place_network
from comes.images.features import as_pictures, compute_features, stream_features
from comes.images.fine_tuning import FineTuning
from comes.images.heads import (
    Evidence,
    class_head,
    cross_score,
    fit_view_head,
    pooled_head,
    view_probe,
)
from comes.images.network import ImageNetwork, make_views, power_normalised
from comes.methods import BEST_PUBLISHED, DEFAULT, Method, find_method, publish
from comes.metrics import mean_average_precision
from comes.priors import estimate_class_prior
from comes.training import History, predict_scores
from comes.training.checkpoint import weights_hash
from comes.training.pixels import AUGMENTATIONS, PixelRows
from comes.training.processes import join_processes, process_number
from comes.training.rows import choose_device

AT_ONCE = 256  # pictures, where no gradient is needed


class ImageClassifier(BaseCandidateClassifier):
    """Multi-label classifier of images, trained on answers, candidates or complementary labels.

    Parameters
    ----------
    method, class_prior, rates, threshold
        As in `CandidateClassifier`. What is not given is estimated from the features.
    backbone : str or module
        "resnet50" (also 101, 152), "timm:NAME", "torchvision:NAME", or a module that maps
        normalised images to features.
    weights : str or path, optional
        "imagenet" downloads them. Or a file, safetensors or a state dict of torch. None keeps the
        weights of your own module, or takes random ones.
    image_size : int, optional
        Height and width of what the network sees; by default its own, 224 for ResNets.
    features : {"auto", "all", "pooled"}
        What the head reads: ``pooled`` features of the last layer; ``all`` adds which classes of
        the network, and which clusters of pictures, a picture belongs to, for "likelihood".
        ``auto`` is the most that the method can read; for "comes-hl" the classes alone, where the
        network has some.
    probe_epochs : int, optional
        Of the head on the frozen network: by default 60, for "comes-hl" on classes 30. With 0
        fine-tuning starts from a head of zeros that reads the pooled features as they are.
    epochs, batch_size : int
        Of fine-tuning, network and head together; 0 epochs leave the network unchanged.
    learning_rate, backbone_learning_rate : float
        Of Adam in fine-tuning, for the head and for the network.
    weight_decay : float, in fine-tuning
    optimizer : dict, optional
        What is rarely changed in fine-tuning: ``cosine``, True: the learning rates fall to zero
        along a half cosine; ``freezes_statistics``, True: batch normalisation keeps its statistics
        (else parts and processes are no longer exact).
    augment : {"flip", "crop", "mixup", "none"}
        In fine-tuning: mirror half of the pictures, also cut out a random part, also mix pairs.
    soft_targets : bool, optional
        Fine-tune on what head and answers together say; by default where "likelihood" has a head.
    early_stopping, patience
        As in `CandidateClassifier`, for the probe and for fine-tuning, on the same held-out rows.
    part_size : int, optional
        Put this many pictures through the network at a time, if a batch does not fit into memory.
    precision : {"auto", "bfloat16", "float32"}
        Of the network; ``auto`` is bfloat16 on a GPU.
    device, random_state, verbose
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
    >>> colours = np.random.default_rng(0).integers(0, 255, size=(40, 1, 1, 3), dtype=np.uint8)
    >>> images, candidates = np.tile(colours, (1, 32, 32, 1)), colours[:, 0, 0, :2] > 127
    >>> settings = {"weights": None, "image_size": 32, "class_prior": [0.5, 0.5]}
    >>> clf = ImageClassifier(backbone=nn.AvgPool2d(8), **settings)
    >>> clf.fit(images, candidates).predict(images).shape
    (40, 2)
    """

    COUNTS: ClassVar[dict[str, int]] = {
        **{"epochs": 0, "batch_size": 1, "image_size": 8, "probe_epochs": 0, "part_size": 1},
        **{"patience": 1, "verbose": -1},
    }
    CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {
        **BaseCandidateClassifier.CHOICES,
        "features": ("auto", "all", "pooled"),
        "precision": ("auto", "bfloat16", "float32"),
        "augment": AUGMENTATIONS,
        "soft_targets": (None, True, False),
    }
    OPTIMIZER_SETTINGS: ClassVar[tuple[str, ...]] = ("cosine", "freezes_statistics")

    network_: ImageNetwork
    is_frozen_: bool

    def __init__(
        self,
        method: str | Method = DEFAULT,
        *,
        class_prior: npt.ArrayLike | None = None,
        rates: dict[str, Any] | AnswerRates | None = None,
        backbone: str | nn.Module = "resnet50",
        weights: str | Path | None = "imagenet",
        image_size: int | None = None,
        features: str = "auto",
        probe_epochs: int | None = None,
        epochs: int = 0,
        batch_size: int = 64,
        learning_rate: float = 1e-4,
        backbone_learning_rate: float = 1e-5,
        weight_decay: float = 0.0,
        optimizer: dict[str, Any] | None = None,
        augment: str = "flip",
        soft_targets: bool | None = None,
        threshold: str = "auto",
        early_stopping: bool | float = False,
        patience: int | None = None,
        part_size: int | None = None,
        precision: str = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.class_prior = class_prior
        self.rates = rates
        self.backbone = backbone
        self.weights = weights
        self.image_size = image_size
        self.features = features
        self.probe_epochs = probe_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.backbone_learning_rate = backbone_learning_rate
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.augment = augment
        self.soft_targets = soft_targets
        self.threshold = threshold
        self.early_stopping = early_stopping
        self.patience = patience
        self.part_size = part_size
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_published(cls, method: str = BEST_PUBLISHED, **changes: Any) -> Self:
        """Return a classifier that trains as the paper does, but for ``changes``.

        The paper says: a ResNet-50 with weights of ImageNet, 30 epochs of Adam at a learning rate
        of 1e-4. It leaves open, and this takes: network and head trained from the start, the head
        at zero, batches of 64, mirrored pictures, no schedule, batch normalisation that learns, the
        sum over labels (for COMES-RL over pairs, divided by the number of labels), the last epoch,
        no flood (beta is 0), and cuts at a probability of one half. These are the settings of
        experiments/images-paper.toml. The paper also gives the class priors of all training rows:
        pass ``class_prior``, or they are estimated.

        Parameters
        ----------
        method : str
            A name of comes.methods.METHODS.
        **changes
            Other parameters.

        Returns
        -------
        classifier : ImageClassifier

        Examples
        --------
        >>> ImageClassifier.as_published("comes-rl").method
        COMESRL(flood_level=0.0)
        """
        settings = {
            "features": "pooled",
            "probe_epochs": 0,
            "epochs": 30,
            "learning_rate": 1e-4,
            "backbone_learning_rate": 1e-4,
            "optimizer": {"cosine": False, "freezes_statistics": False},
            "soft_targets": False,
            "threshold": "half",
        }
        return cls(publish(method), **{**settings, **changes})

    def _check_settings(self) -> None:
        """Raise an error unless all parameters are valid; this is quick."""
        if self.features in ("both", "classes", "clusters"):
            raise ComesError(
                f"features={self.features!r} was removed after version 1.0.0; what was stored with "
                "it stays readable. Take 'auto', 'all' or 'pooled'."
            )
        super()._check_settings()
        method = find_method(self.method)
        if self.probe_epochs == self.epochs == 0:
            raise ComesError("probe_epochs and epochs are both 0: nothing would be learned.")
        for name in ("learning_rate", "backbone_learning_rate", "weight_decay"):
            value: Any = getattr(self, name)
            if not (isinstance(value, int | float | np.floating) and 0 <= value < np.inf):
                raise ComesError(f"{name} must be a finite number of at least 0; got {value!r}.")
        if not (self.optimizer is None or isinstance(self.optimizer, dict)):
            raise ComesError(
                "optimizer of images must be None or a dict such as {'cosine': False}; got "
                f"{self.optimizer!r}."
            )
        if self.threshold in LEARNED_THRESHOLDS and self.epochs and not self.early_stopping:
            raise ComesError(
                f"threshold={self.threshold!r} of a fine-tuned network is learned on held-out "
                "pictures: set early_stopping=True."
            )
        if self.soft_targets and not (method.reads_views and self._is_probed):
            raise ComesError(
                "soft_targets must go with method 'likelihood' and a probe, which give them; got "
                f"{method.name!r} and probe_epochs={self.probe_epochs}. Leave it out."
            )
        if self.augment == "mixup" and not self._uses_soft_targets:
            raise ComesError(
                "augment='mixup' must go with soft targets, which can be mixed; got answers. Take "
                "method 'likelihood' with a probe, or augment='crop'."
            )

    @property
    def _is_probed(self) -> bool:
        """Whether a head is trained on the frozen network."""
        return self.probe_epochs != 0

    @property
    def _uses_soft_targets(self) -> bool:
        """Whether fine-tuning learns probabilities, by default where a head can give them."""
        if self.soft_targets is not None:
            return self.soft_targets
        return find_method(self.method).reads_views and self._is_probed

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
        self._check_settings()
        read = read_answers(y, candidates, complementary, answers, label_names)
        device = join_processes(choose_device(self.device))
        with self._keeping_earlier_fit(), self._explaining_memory():
            images = as_pictures(images)
            if len(images) != len(read):
                raise ComesError(
                    "images and answers must have the same number of rows; got "
                    f"{len(images)} and {len(read)}."
                )
            seed = self.random_state
            if not isinstance(seed, int | np.integer):
                seed = draw_seed(seed, is_shared=True)
            backbone = make_backbone(
                self.backbone, self.weights, images, size=self.image_size, device=device
            )
            begun = weights_hash(backbone) if self.epochs and checkpoint is not None else ""
            probed = self._train_head(backbone, images, read, int(seed), device)
            self.is_frozen_ = self.epochs == 0 or self.history_.interrupted
            if not self.is_frozen_:
                tuning = FineTuning(self, images, probed, device)
                if checkpoint is not None:
                    tuning.keep_state(checkpoint, begun)
                self._keep(tuning.training, tuning.run())
            warn_of(self.history_)
        return self

    def _train_head(
        self, backbone: Backbone, images: Any, answers: Answers, seed: int, device: torch.device
    ) -> Training:
        """Train a head on the frozen network and put it on top; return how it was trained."""
        method, classes, is_probed = find_method(self.method), backbone.classifier, self._is_probed
        kind = self._choose_features(method, has_classes=classes is not None)
        if kind != "classes":
            backbone.classifier = None  # the features are those below it
        needs_estimates = method.needs_transition or method.needs_flip_rate or method.needs_rates
        if is_probed or self.class_prior is None or needs_estimates:
            X = compute_features(backbone, images, device=device, **self._in_parts(device, True))
        else:
            X = np.zeros((len(images), backbone.count_features()), np.float32)
        probe, views, history = self._make_probe(kind, X, answers, seed, device), None, History()
        if kind == "all":
            views = make_views(X, classes, backbone.temperature, seed)
            views.requires_grad_(False)  # fine-tuning leaves them as they are
            evidence = Evidence.of(views, X, answers, device)
            _, training, history = fit_view_head(probe, evidence)
            crossed = partial(cross_score, probe, evidence, training.rates, seed)
            training = replace(training, cross_score=crossed)
        else:
            if kind == "pooled" and is_probed:
                X = power_normalised(torch.from_numpy(np.asarray(X))).numpy()
            training = prepare(probe, probe._learn_features(X), answers)
            if is_probed:
                history = training.run()
        shift, scale = (
            None if numbers is None else torch.as_tensor(numbers, dtype=torch.float32)
            for numbers in (training.scaling.shift, training.scaling.scale)
        )
        network = ImageNetwork(
            backbone,
            training.network,
            shift,
            scale,
            power=kind == "pooled" and is_probed,
            freezes_statistics=(self.optimizer or {}).get("freezes_statistics", True),
            views=views,
        )
        self.network_, self.history_ = place_network(network, device), history
        if is_probed:
            probe._keep(training, history)
            self.method_ = clone(method)  # the probe's may name a reduction
            self.rates_, self.calibration_ = probe.rates_, None
            self.label_names_, self.classes_ = probe.label_names_, probe.classes_
            self.history_, self.trained_on_ = probe.history_, probe.trained_on_
            self.score_offset_, self.threshold_ = probe.score_offset_, probe.threshold_
        return replace(training, method=method)

    def _make_probe(
        self, kind: str, X: Any, answers: Answers, seed: int, device: torch.device
    ) -> CandidateClassifier:
        """Return the classifier of features, to be prepared, that becomes the head."""
        names = ("threshold", "early_stopping", "patience", "verbose", "class_prior", "rates")
        settings = {name: getattr(self, name) for name in names}
        settings |= {"random_state": seed, "device": str(device)}
        if self.probe_epochs:
            settings["epochs"] = self.probe_epochs
        if kind == "all":
            return view_probe(self.method, **settings)
        if kind == "classes":
            settings["class_prior"] = self._find_prior(X, answers, seed)
            candidates = answers.without_chosen().candidates
            return class_head(X, candidates, method=self.method, **settings)
        if not self._is_probed:
            settings |= {"scale": None, "epochs": None}
        return pooled_head(self.method, **settings)

    def _choose_features(self, method: Method, *, has_classes: bool) -> str:
        """Return what the head reads: what was asked for, or the best that is possible."""
        can_be_sparse = method.reduction in ("auto", "sum") and self._is_probed
        if self.features == "all" and not (method.reads_views and can_be_sparse):
            reason = f"method {method.name!r} trains no such head"
            if method.reads_views:
                reason = "reduction is not 'sum'" if self._is_probed else "probe_epochs is 0"
            raise ComesError(f"features='all' is not possible here: {reason}. Take 'pooled'.")
        if self.features == "pooled" or not can_be_sparse:
            return "pooled"
        if method.reads_views:
            return "all"
        return "classes" if method.reads_classes and has_classes else "pooled"

    def _find_prior(self, X: Any, answers: Answers, seed: int) -> npt.NDArray[np.float64]:
        """Return the class prior that a sparse head starts from: given, or estimated."""
        names = list(answers.label_names or ())
        if self.class_prior is not None:
            return per_label(self.class_prior, "class_prior", names)
        rate = read_rates(self.rates, answers.kind).get("exclude")
        estimate = estimate_class_prior(
            X,
            answers,
            exclude_rate=None if rate is None else per_label(rate, "exclude_rate", names),
            random_state=seed,
            label_names=names,
        )
        return np.asarray(estimate.class_prior)

    def _in_parts(self, device: torch.device, cache: bool) -> dict[str, Any]:
        """Return how features are computed; those of a network of one's own are not kept."""
        return {
            "precision": self._choose_precision(device),
            "cache": cache and isinstance(self.backbone, str),
            "at_once": self.part_size or AT_ONCE,
        }

    def _choose_precision(self, device: torch.device) -> torch.dtype | None:
        """Return the precision of the network; None is that of its weights."""
        by_itself = self.precision == "auto" and device.type == "cuda"
        return torch.bfloat16 if self.precision == "bfloat16" or by_itself else None

    @contextmanager
    def _explaining_memory(self) -> Iterator[None]:
        """Turn an error for lack of memory into one that says what to do."""
        try:
            yield
        except (torch.OutOfMemoryError, MemoryError):
            at_once = self.part_size or max(self.batch_size, AT_ONCE)
            size = self.image_size
            of_size = "" if size is None else f" of {size} x {size}"
            raise ComesError(
                f"there is not enough memory for {at_once} pictures{of_size} at once. Set "
                "part_size (--part-size) to a quarter of that, or lower image_size."
            ) from None

    def decision_function(self, images: Any, *, cache: bool = False) -> Any:
        """Return raw scores, higher for more relevant: one array of shape (n_samples, n_labels).

        With ``cache``, features of a frozen network by name are kept on disk, as in `fit`.
        """
        return self._as_output(images, self._raw_scores(images, cache=cache))

    def _raw_scores(self, images: Any, *, cache: bool = False) -> FloatArray:
        """Return raw scores, always as an array."""
        check_is_fitted(self)
        images, device = as_pictures(images), choose_device(self.device)
        network = place_network(self.network_, device)
        with self._explaining_memory(), torch.no_grad():
            how = self._in_parts(device, cache)
            if self.is_frozen_:
                parts = stream_features(network.backbone, images, device=device, **how)
                scores = torch.cat([network.score_features(part).cpu() for part in parts])
            else:
                pixels = PixelRows(images, network.backbone.preprocessing, device, keep="nowhere")
                scores = predict_scores(network, pixels, how["at_once"], how["precision"])
        return np.asarray(scores.cpu().numpy())

    def score(self, images: Any, y: Any, sample_weight: None = None) -> float:
        """Return the mean average precision (mAP) against true labels.

        Of `Answers` the log-likelihood per answer, as `CandidateClassifier.score` has it.
        """
        return self._score_labels(images, y, sample_weight, mean_average_precision)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder, as safetensors and json, replacing one there."""
        check_is_fitted(self)
        if process_number() == 0:
            storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path, backbone: nn.Module | None = None) -> Self:
        """Read a fitted model from a folder; ``backbone`` is needed if it was one of your own."""
        return storage.load(cls, path, backbone)


def load_model(path: str | Path) -> CandidateClassifier | CorrectedClassifier | ImageClassifier:
    """Read a fitted model of any kind.

    Parameters
    ----------
    path : path
        A folder that ``save`` or ``comes fit`` wrote, or the file of a `CorrectedClassifier`.

    Returns
    -------
    model : CandidateClassifier, CorrectedClassifier or ImageClassifier

    Examples
    --------
    >>> import tempfile
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     load_model(f"{folder}/model").method
    'bce'
    """
    if expanded(path).is_file():
        return CorrectedClassifier.load(path)
    is_of_images = storage.holds_images(path)
    return (ImageClassifier if is_of_images else CandidateClassifier).load(path)
