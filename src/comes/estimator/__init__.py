"""The scikit-learn estimators: of rows of features, and of images."""

from comes.estimator.choosing import choose_classifier, choose_each
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.contests import Choice, Contest, estimate_shared_prior
from comes.estimator.cross_fitting import CrossFitted, cross_fit
from comes.estimator.evidence_places import evidence_maps, lay_over
from comes.estimator.features import features_of
from comes.estimator.heads import sparse_head
from comes.estimator.image_classifier import ImageClassifier
from comes.estimator.inputs import per_label
from comes.estimator.loading import load_model
from comes.estimator.model_cards import write_card
from comes.estimator.onnx_files import export_onnx, measure_onnx
from comes.estimator.picture_views import Evidence, make_views, show_views
from comes.estimator.pretrained import pretrained_backbone
from comes.estimator.seen_rows import count_seen_rows
from comes.estimator.storage import check_model_target
from comes.estimator.stream_statistics import StreamStatistics, gather_statistics
from comes.estimator.together import fit_together
from comes.estimator.top_predictions import TopPredictions
from comes.estimator.variations import vary_settings
from comes.estimator.view_heads import ViewHead, cross_score, fit_view_head, view_probe

__all__ = [
    "CandidateClassifier",
    "Choice",
    "Contest",
    "CrossFitted",
    "Evidence",
    "ImageClassifier",
    "StreamStatistics",
    "TopPredictions",
    "ViewHead",
    "check_model_target",
    "choose_classifier",
    "choose_each",
    "count_seen_rows",
    "cross_fit",
    "cross_score",
    "estimate_shared_prior",
    "evidence_maps",
    "export_onnx",
    "features_of",
    "fit_together",
    "fit_view_head",
    "gather_statistics",
    "lay_over",
    "load_model",
    "make_views",
    "measure_onnx",
    "per_label",
    "pretrained_backbone",
    "show_views",
    "sparse_head",
    "vary_settings",
    "view_probe",
    "write_card",
]
