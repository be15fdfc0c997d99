"""Formats of pictures, and the module that opens them."""

from contextlib import suppress
from typing import Any

from comes.errors import ComesError

HEIC_ENDINGS = (".heic", ".heif")  # of telephones; Pillow opens them with pillow-heif
PICTURE_ENDINGS = (
    *(".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    *HEIC_ENDINGS,
)
HEIC = "HEIF"  # what Pillow then calls the format


def import_pillow() -> Any:
    """Return the module that opens images; HEIC too, where pillow-heif is installed.

    Examples
    --------
    >>> import_pillow().new("RGB", (5, 4)).size
    (5, 4)
    """
    try:
        from PIL import Image
    except ImportError:
        raise ComesError(
            "images need Pillow, which is not installed: pip install 'comes[images]'."
        ) from None
    if HEIC not in Image.MIME:
        with suppress(ImportError):
            from pillow_heif import register_heif_opener

            register_heif_opener()
    return Image
