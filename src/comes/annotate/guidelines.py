"""Guidelines: what counts as a class, in a text and example pictures of a folder.

The folder has CLASS.md or CLASS.txt, and pictures CLASS/*.jpg or CLASS-*.jpg. Files are found by
listing the folder, and served by the number of the class: no path comes from a request.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comes.errors import ComesError

TEXTS = (".md", ".txt")
PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp")
LONGEST_TEXT = 50_000  # characters
LARGEST_FILE = 20 * 2**20  # bytes
MOST_PIXELS = 50_000_000
SHOWN_SIZE = 1000  # pixels of the longer side
MOST_PICTURES = 24


@dataclass(frozen=True)
class Guideline:
    """What there is about a class.

    Attributes
    ----------
    text : str
    is_markdown : bool
    pictures : list of Path
    """

    text: str
    is_markdown: bool
    pictures: list[Path]


def find_guideline(folder: Path, name: str) -> Guideline:
    """Return what a folder has about a class; nothing of it lies outside of the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "boat.md").write_text("Everything that *floats*.")
    >>> find_guideline(folder, "boat")
    Guideline(text='Everything that *floats*.', is_markdown=True, pictures=[])
    >>> find_guideline(folder, "../boat").text
    ''
    """
    home = folder.resolve()
    listed = _list_files(home, home)
    text = next(
        (path for path in listed if path.suffix.lower() in TEXTS and path.stem == name), None
    )
    pictures = [path for path in listed if path.stem.startswith(f"{name}-")]
    inside = [path for path in _list_folders(home) if path.name == name]
    pictures += [path for place in inside for path in _list_files(place, home)]
    return Guideline(
        _read_text(text) if text else "",
        text is not None and text.suffix.lower() == ".md",
        [path for path in pictures if path.suffix.lower() in PICTURES][:MOST_PICTURES],
    )


def check_guidelines(folder: Path, names: Sequence[str]) -> None:
    """Raise if a folder has guidelines for none of the classes."""
    if not folder.is_dir():
        raise ComesError(f"the guidelines must be in a folder; {folder} is none. Correct the path.")
    found = [find_guideline(folder, name) for name in names]
    if not any(guide.text or guide.pictures for guide in found):
        raise ComesError(
            f"{folder} must have guidelines named after classes, such as {names[0]}.md or "
            f"{names[0]}-1.jpg; it has none. Rename them."
        )


def read_picture(path: Path) -> bytes:
    """Return an example picture as a JPEG of moderate size."""
    from PIL import Image, ImageOps

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError
        with Image.open(path) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise ValueError
            opened.draft("RGB", (SHOWN_SIZE, SHOWN_SIZE))
            shown = ImageOps.exif_transpose(opened).convert("RGB")
            shown.thumbnail((SHOWN_SIZE, SHOWN_SIZE))
        file = io.BytesIO()
        shown.save(file, "JPEG", quality=85)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise ComesError(f"{path.name} cannot be read as a picture. Replace it.") from None
    return file.getvalue()


def _list_files(folder: Path, home: Path) -> list[Path]:
    """Return the files of a folder, sorted; a link out of the home is left out."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []
    return [path for path in found if path.resolve().is_relative_to(home)]


def _list_folders(home: Path) -> list[Path]:
    try:
        found = sorted(path for path in home.iterdir() if path.is_dir())
    except OSError:
        return []
    return [path for path in found if path.resolve().is_relative_to(home)]


def _read_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(LONGEST_TEXT)
    except OSError:
        return ""
