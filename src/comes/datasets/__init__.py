"""Data sets: what they are, by name, from files of one's own, and the embedded scenes."""

from comes.datasets.archive import write_npz
from comes.datasets.catalogue import KNOWN
from comes.datasets.checks import check_dataset
from comes.datasets.dataset import Dataset, join_rows
from comes.datasets.files import open_dataset, read_dataset, read_features, read_images
from comes.datasets.images import Images
from comes.datasets.known import load_dataset
from comes.datasets.label_columns import prediction_table
from comes.datasets.scenes import make_scenes
from comes.datasets.tables import check_table_name, write_table
from comes.datasets.writing import check_writable, write_dataset

__all__ = [
    "KNOWN",
    "Dataset",
    "Images",
    "check_dataset",
    "check_table_name",
    "check_writable",
    "join_rows",
    "load_dataset",
    "make_scenes",
    "open_dataset",
    "prediction_table",
    "read_dataset",
    "read_features",
    "read_images",
    "write_dataset",
    "write_npz",
    "write_table",
]
