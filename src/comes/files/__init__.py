"""Files on disk: written whole or not at all, or growing; downloads, and the folders of them.

`Features` are rows of float32 numbers, as a `GrowingFile` holds them.
"""

from comes.files.downloading import download, unpack_tar
from comes.files.folders import cache_folder, data_folder, expanded
from comes.files.growing import Features, GrowingFile, read_features
from comes.files.locking import locked
from comes.files.protecting import refuse_inputs, refuse_same
from comes.files.replacing import (
    check_file_target,
    check_folder_target,
    replacing_file,
    replacing_folder,
)

__all__ = [
    "Features",
    "GrowingFile",
    "cache_folder",
    "check_file_target",
    "check_folder_target",
    "data_folder",
    "download",
    "expanded",
    "locked",
    "read_features",
    "refuse_inputs",
    "refuse_same",
    "replacing_file",
    "replacing_folder",
    "unpack_tar",
]
