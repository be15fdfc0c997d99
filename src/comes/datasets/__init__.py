"""Data sets: what they are, files of one's own, and the embedded scenes."""

from comes.datasets.archive import write_npz
from comes.datasets.dataset import Dataset
from comes.datasets.files import read_dataset, read_features
from comes.datasets.scenes import make_scenes
from comes.datasets.tables import check_table_name, prediction_table, write_table

__all__ = [
    "Dataset",
    "check_table_name",
    "make_scenes",
    "prediction_table",
    "read_dataset",
    "read_features",
    "write_npz",
    "write_table",
]
