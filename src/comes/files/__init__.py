"""Files on disk: written whole or not at all, or growing; downloads, and the folders of them.

`Features` are rows of float32 numbers, as a `GrowingFile` holds them.
"""

from comes.files.downloading import download, unpack_tar
from comes.files.folders import cache_folder, data_folder, expanded
from comes.files.growing import Features, GrowingFile, read_features
from comes.files.interruptions import (
    Terminated,
    defer_from_here,
    deferring_interrupts,
    end_at_once,
    end_like_ctrl_c,
    end_with_parent,
    no_longer_defer,
)
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
    "Terminated",
    "cache_folder",
    "check_file_target",
    "check_folder_target",
    "data_folder",
    "defer_from_here",
    "deferring_interrupts",
    "download",
    "end_at_once",
    "end_like_ctrl_c",
    "end_with_parent",
    "expanded",
    "locked",
    "no_longer_defer",
    "read_features",
    "refuse_inputs",
    "refuse_same",
    "replacing_file",
    "replacing_folder",
    "unpack_tar",
]
