"""Metrics of the k best labels of every row, as extreme classification reports them.

Where there are many thousands of labels, what counts is the head of the ranking: P@k is the share
of the k best labels that is relevant, nDCG@k also counts where they stand. The propensity-scored
variants (Jain, Prabhu and Varma, 2016) give a hit on a rare label more weight, as rare labels are
more often missing from the truth.

A ranking is either a matrix of floats, the scores of all labels, or a matrix of integers, the best
labels themselves, the best first, as `predict_top` of a classifier has them. The truth may be dense
or sparse; a sparse one is never made dense.

- ties between scores are broken by column: the label that comes first wins
- a row without a relevant label counts 0 in P@k and nDCG@k, and adds nothing to either of the two
  means of a propensity-scored metric; `count_empty_rows` counts them
- k may be larger than the number of labels; the labels that are not there are no hits
"""

from comes.top_metrics.gains import ndcg_at_k, precision_at_k
from comes.top_metrics.propensities import (
    label_propensity,
    propensity_ndcg_at_k,
    propensity_precision_at_k,
)
from comes.top_metrics.rankings import count_empty_rows, top_labels
from comes.top_metrics.top_evaluation import evaluate_top

__all__ = [
    "count_empty_rows",
    "evaluate_top",
    "label_propensity",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_ndcg_at_k",
    "propensity_precision_at_k",
    "top_labels",
]
