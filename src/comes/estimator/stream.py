"""Rows that lie in blocks on disk: one pass of statistics, then epochs over the blocks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import keep_one_excluded
from comes.datasets import Dataset, ShardedDataset, open_shards
from comes.errors import ComesError
from comes.estimator.inputs import CountedAnswers, add_rows, remember_rows
from comes.estimator.prepare import Training, choose_settings, draw_seed
from comes.estimator.scaling import ScaleFold, Scaling, fit_scaling
from comes.methods import Method, Rates, find_method
from comes.priors.pooled import AnswerCounts
from comes.tables import ColumnEncoder
from comes.tables.columns import needs_encoding
from comes.tables.encoder import SAMPLE_ROWS, EncoderFold
from comes.training.label_chunks import SparseTargetRows
from comes.training.processes import join_processes
from comes.training.rows import StreamedRows, choose_device, to_device

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

ROWS_TO_CHECK = 2048
BLOCKS_FOR_SAMPLES = 16
LARGEST_DENSE_BLOCK = 2**28  # pairs of a block that a method may have as a matrix


class ShardStream:
    """Rows on disk, and what was learned of them in the first pass."""

    def __init__(
        self,
        classifier: "CandidateClassifier",
        source: ShardedDataset | str | Path,
        buffer_rows: int,
        is_shared: bool,
    ) -> None:
        shards = open_shards(source) if isinstance(source, str | Path) else source
        if shards.features == "none" or shards.kind is None:
            raise ComesError(
                f"a stream needs rows with features and answers; got {shards}. Name the columns of "
                "the answers (--labels), and write columns of features beside them."
            )
        is_small = max(shards.sizes) * len(shards.label_names) <= LARGEST_DENSE_BLOCK
        if is_small and not find_method(classifier.method).has_sparse_targets:
            shards = replace(shards, is_sparse=False)
        if is_shared:
            join_processes(choose_device(classifier.device))
        self.seed = draw_seed(classifier.random_state, is_shared=is_shared)
        scale = choose_settings(classifier, find_method(classifier.method))["scale"]
        learned = gather_statistics(shards, scale=scale, encoder=classifier.encoder, seed=self.seed)
        self.encoder, self.scaling, self.buffer = learned.encoder, learned.scaling, buffer_rows
        self.answers = CountedAnswers(
            learned.counts, learned.kind, list(shards.label_names), shards.is_sparse
        )
        self.shards = shards.prepared(learned.prepare)
        self.n_features = int(self.shards.read(0)[0].shape[1])

    def rows(self, method: Method, rates: Rates, device: torch.device) -> StreamedRows:
        """Return the rows as training reads them, with the targets of a method."""

        def read(block: int) -> tuple[Any, Any]:
            X, answers = self.shards.read(block)
            return X, self.make_targets(method, rates, answers, device, self.seed + block)

        return StreamedRows(self.shards.sizes, self.buffer, read, device)

    def make_targets(
        self, method: Method, rates: Rates, answers: Answers, device: torch.device, seed: int
    ) -> Any:
        """Return what the risk takes of some answers."""
        if method.ignores_maybe and self.answers.has(State.YES):
            answers = answers.without_maybe()  # even where nobody says yes in this block
        if self.shards.is_sparse:
            return SparseTargetRows(*method.sparse_targets(answers), device)
        targets = method.targets(answers, rates)
        if method.keeps_one_excluded:
            targets = keep_one_excluded(targets, seed)
        return torch.tensor(targets)

    def sample(self, n: int) -> tuple[Any, Answers]:
        """Return scaled features and answers of about n rows, drawn from a few blocks."""
        rng, sizes = np.random.default_rng(self.seed), self.shards.sizes
        chosen = rng.permutation(len(sizes))[:BLOCKS_FOR_SAMPLES]
        share = n / sum(sizes[block] for block in chosen)
        features, states = [], []
        for block in map(int, chosen):
            X, answers = self.shards.read(block)
            rows = np.flatnonzero(rng.random(len(answers)) < share)
            rows = rows if len(rows) else np.arange(1)
            features.append(X[rows])
            states.append(answers[rows].states)
        X = sparse.vstack(features, "csr") if sparse.issparse(X) else np.concatenate(features)
        codes = sparse.vstack(states, "csr")
        codes = codes if self.shards.is_sparse else codes.toarray()
        return X, Answers.from_codes(codes, self.answers.kind, self.answers.label_names)

    def sampled(self, training: Training) -> Training:
        """Return the training with some of its rows in memory, to check its result on."""
        X, answers = self.sample(min(ROWS_TO_CHECK, len(self.answers)))
        device = next(training.network.parameters()).device
        targets = self.make_targets(training.method, training.rates, answers, device, self.seed)
        targets = targets.to(device) if isinstance(targets, torch.Tensor) else targets
        on_device = to_device(X, device)
        return replace(training, X=on_device, targets=targets, features=X, answers=answers)

    def remember_rows(self) -> Any:
        """Return the numbers by which rows of the first blocks are recognised."""
        numbers = None
        for block in range(min(BLOCKS_FOR_SAMPLES, len(self.shards.sizes))):
            X = self.shards.load(block).X
            X = X if self.encoder is None else self.encoder.transform(X)
            X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
            numbers = add_rows(numbers, remember_rows(X))
        return numbers


@dataclass(frozen=True, eq=False)
class StreamStatistics:
    """The result of one pass over blocks of rows, before training."""

    kind: Any
    counts: AnswerCounts
    encoder: ColumnEncoder | None  # what makes a matrix of a table; None where X is one
    scaling: Scaling

    def prepare(self, X: Any) -> Any:
        """Return features as the network takes them: float32, a matrix or CSR."""
        return self.scaling(X if self.encoder is None else self.encoder.transform(X))


def gather_statistics(
    blocks: Iterable[Dataset],
    *,
    scale: str | None = "columns",
    encoder: ColumnEncoder | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
) -> StreamStatistics:
    """Count answers and learn how to scale features from all rows, in one pass over blocks of them.

    A table of numbers, words and dates is encoded, and scaled, by a sample of its rows; its texts
    are counted in every row.
    """
    counts, kind = None, None
    features: ScaleFold | EncoderFold | None = None
    for block in blocks:
        answers = block.known_answers()
        kind = kind or answers.kind
        if answers.kind != kind:
            raise ComesError(
                f"the labels must be of one kind in every block; got {kind} and {answers.kind}. "
                "Read all of them alike."
            )
        new = AnswerCounts.of(answers)
        if counts is not None and counts.n_rows.sum() % 2:  # the block begins with an odd row
            new = AnswerCounts(new.n_rows[::-1], new.no[::-1], new.yes[::-1], new.maybe[::-1])
        counts = new if counts is None else counts + new
        X = block.X
        if features is None:
            features = ScaleFold(scale, sparse.issparse(X))
            if isinstance(X, pd.DataFrame) and (encoder is not None or needs_encoding(X)):
                features = EncoderFold(encoder, sample_rows, seed)
        features.add(X)
    if counts is None:
        raise ComesError("statistics need rows; got no block. Open shards that hold some.")
    scaling, fitted = Scaling(), None
    if isinstance(features, ScaleFold):
        scaling = features.finish()
    elif features is not None:
        fitted = features.finish()
        scaling = fit_scaling(fitted.transform(features.sample()), scale)
    return StreamStatistics(kind, counts, fitted, scaling)
