"""Data sets: by name, from files of many formats, and embedded scenes of digits.

`KNOWN` holds the data sets that have a name.
"""

from comes.datasets.catalogue import KNOWN, make_scenes
from comes.datasets.checks import check_dataset
from comes.datasets.dataset import Dataset, join_features, join_rows
from comes.datasets.formats import write_dataset
from comes.datasets.images import Images, open_images
from comes.datasets.long import combine_answers
from comes.datasets.opening import open_dataset, read_features, read_images
from comes.datasets.options import ReadOptions
from comes.datasets.shards import ShardedDataset, open_shards

__all__ = [
    "KNOWN",
    "Dataset",
    "Images",
    "ReadOptions",
    "ShardedDataset",
    "check_dataset",
    "combine_answers",
    "join_features",
    "join_rows",
    "make_scenes",
    "open_dataset",
    "open_images",
    "open_shards",
    "read_features",
    "read_images",
    "write_dataset",
]
