"""Files on disk: written whole or not at all, downloads, and the folders that hold them."""

from comes.files.downloading import download, unpack_tar
from comes.files.folders import cache_folder, data_folder, expanded
from comes.files.locking import locked
from comes.files.protecting import refuse_inputs, refuse_same
from comes.files.replacing import (
    check_file_target,
    check_folder_target,
    replacing_file,
    replacing_folder,
)

__all__ = [
    "cache_folder",
    "check_file_target",
    "check_folder_target",
    "data_folder",
    "download",
    "expanded",
    "locked",
    "refuse_inputs",
    "refuse_same",
    "replacing_file",
    "replacing_folder",
    "unpack_tar",
]
