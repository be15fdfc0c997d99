"""Files on disk, for comes itself: written whole or not at all, caches, downloads, and signals."""

from comes.files.cache import cache_folder as cache_folder
from comes.files.cache import data_folder as data_folder
from comes.files.cache import download as download
from comes.files.cache import unpack_tar as unpack_tar
from comes.files.signals import defer_from_here as defer_from_here
from comes.files.signals import deferring_interrupts as deferring_interrupts
from comes.files.signals import end_with_parent as end_with_parent
from comes.files.signals import no_longer_defer as no_longer_defer
from comes.files.signals import run_interruptible as run_interruptible
from comes.files.writing import check_file_target as check_file_target
from comes.files.writing import check_folder_target as check_folder_target
from comes.files.writing import expanded as expanded
from comes.files.writing import refuse_inputs as refuse_inputs
from comes.files.writing import refuse_same as refuse_same
from comes.files.writing import replacing_file as replacing_file
from comes.files.writing import replacing_folder as replacing_folder
