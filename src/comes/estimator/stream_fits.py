"""Fits on more rows than memory holds: statistics in one pass, then epochs over blocks on disk."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

from comes.answers import Answers, State
from comes.answers.convert import keep_one_excluded
from comes.datasets import ShardedDataset, open_shards
from comes.errors import ComesError
from comes.estimator.counted_answers import CountedAnswers
from comes.estimator.features import weights_hash
from comes.estimator.finishing import finish_fit
from comes.estimator.fit_checks import warn_of
from comes.estimator.many_labels import check_many_labels, chunk_labels, sparse_targets
from comes.estimator.preparation import Training
from comes.estimator.reading_answers import check_can_learn, choose_method, warn_of_idle_labels
from comes.estimator.row_checkpoints import describe_settings
from comes.estimator.row_risks import Counts, make_risk, show_answers
from comes.estimator.row_training import (
    Start,
    determine_rates,
    guess_prior,
    make_module,
    make_options,
    start_at_prior,
)
from comes.estimator.seen_rows import add_rows, remember_rows
from comes.estimator.settings import (
    LEARNED_THRESHOLDS,
    check_row_settings,
    draw_seed,
    find_settings,
)
from comes.estimator.stream_statistics import StreamStatistics, gather_statistics
from comes.estimator.table_inputs import name_inputs
from comes.methods import Method, Rates, find_method
from comes.models import Ensemble
from comes.models.tabular import EnsembleRisk, find_label_head
from comes.training import History, train
from comes.training.checkpoint import Checkpoint
from comes.training.processes import broadcast_from_first, gather_objects, join_processes
from comes.training.rows import StreamedRows, choose_device, to_device
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

ROWS_FOR_PRIORS = 20_000  # that class priors of few labels are estimated on
ROWS_TO_CHECK = 2048
BLOCKS_FOR_SAMPLES = 16
LARGEST_DENSE_BLOCK = 2**28  # pairs of a block that a method may have as a matrix


@dataclass(frozen=True, eq=False)
class _Stream:
    """Rows on disk, and what was learned of them in the first pass."""

    classifier: "CandidateClassifier"
    method: Method
    shards: ShardedDataset  # prepared
    answers: CountedAnswers
    device: torch.device
    seed: int

    def read(self, block: int) -> tuple[Any, Any]:
        """Return the features of a block, and what the risk sees of it."""
        X, answers = self.shards.read(block)
        return X, self.see(answers, block)

    def see(self, answers: Answers, block: int = 0) -> Any:
        """Return what the risk sees of some answers."""
        if self.method.ignores_maybe and self.answers.has(State.YES):
            answers = answers.without_maybe()  # even where nobody says yes in this block
        if self.shards.is_sparse:
            return sparse_targets(self.classifier, self.method, answers, self.device)
        seen = show_answers(self.classifier, self.method, answers)
        if self.method.keeps_one_excluded:
            seen = keep_one_excluded(seen, self.seed + block)
        return torch.tensor(seen)

    def remember(self) -> Any:
        """Return the numbers by which rows of the first blocks are known again."""
        encoder, found = getattr(self.classifier, "encoder_", None), None
        for block in range(min(BLOCKS_FOR_SAMPLES, len(self.shards.sizes))):
            X = self.shards.load(block).X
            X = X if encoder is None else encoder.transform(X)
            X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
            found = add_rows(found, remember_rows(X))
        return found

    def sample(self, n: int) -> tuple[Any, Answers]:
        """Return features and answers of about n rows, drawn from a few blocks."""
        rng, n_blocks = np.random.default_rng(self.seed), len(self.shards.sizes)
        chosen = rng.permutation(n_blocks)[:BLOCKS_FOR_SAMPLES]
        share = n / sum(self.shards.sizes[block] for block in chosen)
        features, states = [], []
        for block in map(int, chosen):
            X, answers = self.shards.read(block)
            rows = np.flatnonzero(rng.random(len(answers)) < share)
            rows = rows if len(rows) else np.arange(1)
            features.append(X[rows])
            states.append(answers[rows].states)
        is_sparse = sparse.issparse(features[0])
        X = sparse.vstack(features, "csr") if is_sparse else np.concatenate(features)
        said = sparse.vstack(states, "csr")
        kind, names = self.answers.kind, self.answers.label_names
        if self.shards.is_sparse:
            return X, Answers.from_codes(said, kind, names)
        return X, Answers.from_codes(said.toarray(), kind, names)


def fit_shards(
    classifier: "CandidateClassifier",
    source: ShardedDataset | str | Path,
    *,
    buffer_rows: int,
    checkpoint: str | Path | None,
    checkpoint_every: float,
    is_shared: bool,
) -> None:
    """Train a classifier on rows that lie in blocks on disk."""
    method = _check_settings(classifier)
    shards = open_shards(source) if isinstance(source, str | Path) else source
    if shards.features in ("images", "none") or shards.kind is None:
        raise ComesError(
            f"a stream needs rows with features and answers; got {shards}. Turn pictures into "
            "features first (comes features)."
        )
    shards = _choose_form(classifier, method, shards)
    device = choose_device(classifier.device)
    device = join_processes(device) if is_shared else device
    seed = draw_seed(classifier.random_state)
    seed = int(gather_objects(seed)[0]) if is_shared else seed
    found = gather_statistics(shards, scale=classifier.scale, encoder=classifier.encoder, seed=seed)
    counted = CountedAnswers(found.counts, found.kind, shards.label_names, shards.is_sparse)
    check_can_learn(counted, method, str(classifier.method_))
    warn_of_idle_labels(counted, method)
    ready = shards.prepared(found.prepare)
    stream = _Stream(classifier, method, ready, counted, device, seed)
    d = int(ready.read(0)[0].shape[1])
    _keep_inputs(classifier, shards, found, d)
    rows = StreamedRows(shards.sizes, buffer_rows, stream.read, device)
    options = make_options(classifier, method, counted, seed)
    with seeded(seed, device):
        classifier.module_ = make_module(classifier, d, len(shards.label_names)).to(device)
    if shards.is_sparse:
        find_label_head(classifier.module_)  # or say so, before anything takes long
    classifier.rates_ = broadcast_from_first(lambda: _determine_rates(stream))
    settings = find_settings(classifier, classifier.method_)
    if isinstance(classifier.model, str) and settings["starts_at_prior"]:
        prior = guess_prior(method, classifier.rates_, counted)
        start_at_prior(classifier.module_, prior)
    risk = _make_risk(stream, options.batch_size)
    kept = None
    if checkpoint is not None:
        kept = Checkpoint(Path(checkpoint), _fingerprint(stream), checkpoint_every, at_ends=False)
    history = train(
        classifier.module_,
        rows,
        None,
        risk,
        options,
        checkpoint=kept,
        distributed=is_shared,
    )
    _finish(stream, risk, options, history)


def _choose_form(
    classifier: "CandidateClassifier", method: Method, shards: ShardedDataset
) -> ShardedDataset:
    """Return the shards with answers in the form that the method takes: sparse or a matrix."""
    if not shards.is_sparse:
        return shards
    largest = max(shards.sizes) * len(shards.label_names)
    if not method.has_sparse_targets and largest <= LARGEST_DENSE_BLOCK:
        return replace(shards, is_sparse=False)
    check_many_labels(classifier, method, Start())
    return shards


def _check_settings(classifier: "CandidateClassifier") -> Method:
    """Return the method; raise an error if a setting needs all rows at once."""
    classifier.method_ = choose_method(classifier.method)
    method = find_method(classifier.method_, classifier.variant)
    check_row_settings(classifier)
    if classifier.early_stopping or classifier.threshold in LEARNED_THRESHOLDS:
        raise ComesError(
            "fit_stream can neither hold rows out nor learn thresholds; got early_stopping="
            f"{classifier.early_stopping} and threshold={classifier.threshold!r}. Set them to "
            "False and 'auto'."
        )
    if classifier.warm_start:
        raise ComesError("fit_stream starts anew; got warm_start=True. Leave it out.")
    return method


def _keep_inputs(
    classifier: "CandidateClassifier", shards: ShardedDataset, found: StreamStatistics, d: int
) -> None:
    """Keep what a fitted classifier knows of its features and labels."""
    classifier.label_names_ = list(shards.label_names)
    classifier.classes_ = np.arange(len(shards.label_names))
    classifier.scaling_ = found.scaling
    for name in ("encoder_", "feature_names_in_", "stream_"):
        classifier.__dict__.pop(name, None)  # of an earlier fit
    classifier.n_features_in_ = d
    if found.encoder is not None:
        classifier.encoder_ = found.encoder
        name_inputs(classifier)
    elif shards.feature_names is not None:
        classifier.feature_names_in_ = np.array(shards.feature_names, dtype=object)


def _determine_rates(stream: _Stream) -> Rates:
    """Return what the method must know: of many labels from counts, of few from a sample."""
    classifier, method, seed = stream.classifier, stream.method, stream.seed
    if stream.shards.is_sparse:
        counted: Any = stream.answers
        return determine_rates(classifier, method, None, None, counted, seed, Start())
    X, answers = stream.sample(ROWS_FOR_PRIORS)
    return determine_rates(classifier, method, X, X, answers, seed, Start())


def _make_risk(stream: _Stream, batch_size: int) -> Any:
    """Return the risk, with the counts of all rows."""
    classifier, method, device = stream.classifier, stream.method, stream.device
    answers: Any = stream.answers
    counts = Counts.of(answers)
    risk = make_risk(classifier, method, answers, device, counts=counts)
    if stream.shards.is_sparse:
        return chunk_labels(classifier, risk, batch_size, device)
    return EnsembleRisk(risk) if isinstance(classifier.module_, Ensemble) else risk


def _fingerprint(stream: _Stream) -> str:
    """Return a hash of settings and of what the first pass counted."""
    classifier, counts = stream.classifier, stream.answers.counts
    scaling, model = classifier.scaling_, classifier.model
    network = weights_hash(model) if isinstance(model, nn.Module) else repr(classifier.module_)
    encoder = repr(getattr(classifier, "encoder_", None))
    given = describe_settings(classifier), stream.seed, stream.shards.sizes, network, encoder
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode())
    for array in (counts.no, counts.yes, counts.maybe, scaling.shift, scaling.scale):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _finish(stream: _Stream, risk: Any, options: Any, history: History) -> None:
    """Keep the results, checked on some of the rows."""
    classifier = stream.classifier
    X, answers = stream.sample(min(ROWS_TO_CHECK, len(stream.answers)))
    seen = stream.see(answers)
    training = Training(
        method=stream.method,
        module=classifier.module_,
        X=to_device(X, stream.device),
        seen=seen if stream.shards.is_sparse else seen.to(stream.device),
        risk=risk,
        options=options,
        is_ours=False,
        raw=(X, answers),
    )
    classifier.seen_rows_ = stream.remember()
    finish_fit(classifier, training, history)
    classifier.trained_on_ = {"rows": len(stream.answers), "kind": stream.answers.kind}
    warn_of(classifier.history_)
