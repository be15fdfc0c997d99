"""Data sets: what they are, files of one's own, and the embedded scenes."""

from comes.datasets.dataset import Dataset
from comes.datasets.files import read_dataset, read_features
from comes.datasets.scenes import make_scenes

__all__ = ["Dataset", "make_scenes", "read_dataset", "read_features"]
