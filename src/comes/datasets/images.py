"""Images in a folder or a zip archive, opened one at a time when they are asked for."""

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, overload
from warnings import warn

import numpy as np
import numpy.typing as npt

from comes.datasets.image_formats import HEIC, HEIC_ENDINGS, PICTURE_ENDINGS, import_pillow
from comes.errors import ComesError, ComesWarning, listed
from comes.files import expanded
from comes.progress import progress_bar


class Images:
    """A row of images, read lazily: ``images[i]`` is an array of shape (height, width, 3).

    Parameters
    ----------
    source : str or Path, or one for each name
        A folder, or a .zip archive, which is read in place.
    names : sequence of str
        File names inside it, "/" between folders. None may lead outside.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (5, 4), "red").save(folder / "red.png")
    >>> images = Images(folder, ["red.png"])
    >>> images[0].shape, images[0][0, 0].tolist()
    ((4, 5, 3), [255, 0, 0])
    """

    def __init__(self, source: str | Path | Sequence[Path], names: Sequence[str]):
        self.names = list(names)
        if isinstance(source, (str, Path)):
            source = [Path(source)] * len(self.names)
        self.sources = list(source)
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._owner = -1

    @property
    def shape(self) -> tuple[int]:
        """The number of images; the size of each is known when it is opened."""
        return (len(self.names),)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, rows: int) -> npt.NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> "Images": ...
    def __getitem__(self, rows: Any) -> Any:
        if not isinstance(rows, (int, np.integer)):
            index = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
            sources = [self.sources[row] for row in index]
            return Images(sources, [self.names[row] for row in index])
        return self.read_reduced(int(rows), None)

    def read_reduced(self, row: int, least: int | None) -> npt.NDArray[np.uint8]:
        """Return an image; a large JPEG smaller, but no side shorter than ``least``.

        It is decoded at a half, a quarter or an eighth of its size, which takes a fraction of the
        time and memory.
        """
        Image = import_pillow()
        try:
            with Image.open(io.BytesIO(self.read_bytes(row))) as image:
                if least is not None:
                    image.draft(None, (least, least))
                return _convert_to_rgb(image)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            reason = str(error).split(" <_io")[0]
            raise ComesError(
                f"the image {self.names[row]!r} cannot be read ({reason}). Replace it, or leave "
                "broken images out (--skip-broken on the command line)."
            ) from None

    def read_bytes(self, row: int) -> bytes:
        """Return the file as it is stored."""
        name, source = self.names[row], self.sources[row]
        try:
            if not _is_zip(source):
                return (source / name).read_bytes()
            if self._owner != os.getpid():  # a forked handle shares its position
                self._archives, self._owner = {}, os.getpid()
            if source not in self._archives:
                self._archives[source] = zipfile.ZipFile(source)
            return self._archives[source].read(name)
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
            raise ComesError(
                f"the image {name!r} in {source.name} cannot be read: {error}. Replace it, or "
                "leave broken images out (--skip-broken on the command line)."
            ) from None

    def fingerprint(self) -> str:
        """Return a hash of names, sizes and checksums (in a folder: times of last change)."""
        found = hashlib.sha256()
        for state in self.states():
            found.update(state)
        return found.hexdigest()

    def states(self) -> Iterator[bytes]:
        """Give what tells each image from a changed one: what `fingerprint` hashes."""
        known: dict[tuple[Path, str], tuple[int, int]] = {}
        for source in filter(_is_zip, dict.fromkeys(self.sources)):
            with zipfile.ZipFile(source) as archive:
                for member in archive.infolist():
                    known[source, member.filename] = member.CRC, member.file_size
        for place in zip(self.sources, self.names, strict=True):
            state = known.get(place) or _read_state(*place)
            yield repr((place[1], state)).encode()

    @staticmethod
    def joined(parts: Sequence["Images"]) -> "Images":
        """Return the images of several, one after the other."""
        sources = [source for part in parts for source in part.sources]
        return Images(sources, [name for part in parts for name in part.names])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_archives": {}, "_owner": -1}


def _read_state(source: Path, name: str) -> tuple[int, int]:
    """Return when an image in a folder was last changed, and its size."""
    try:
        stat = os.stat(source / name)
    except OSError as error:
        raise ComesError(
            f"the image {name!r} in {source.name} cannot be read: {error.strerror}. Replace it, or "
            "leave broken images out (--skip-broken on the command line)."
        ) from None
    return stat.st_mtime_ns, stat.st_size


def _convert_to_rgb(image: Any) -> npt.NDArray[np.uint8]:
    """Return the pixels as a person sees them: turned upright, 16 bits as 8."""
    from PIL import ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        grey = (np.asarray(image) >> 8).astype(np.uint8)
        return np.stack([grey] * 3, axis=2)
    if image.mode in ("I", "F"):
        raise ValueError(f"pixels of 32 bits, mode {image.mode}; save it with 8 or 16")
    if "transparency" in image.info:
        image = image.convert("RGBA")
    return np.asarray(image.convert("RGB"))


def open_images(
    source: str | Path, names: Sequence[str], skip_broken: bool = False
) -> tuple[Images, npt.NDArray[np.int64]]:
    """Return the images that are there, and their rows among ``names``.

    Parameters
    ----------
    source : str or Path
        A folder, or a .zip archive.
    names : sequence of str
        File names inside it. One that leads outside is an error.
    skip_broken : bool
        Open every image once, and leave out those that are missing or cannot be read, with a
        warning that names them. Otherwise a missing file is an error.

    Returns
    -------
    images : Images
    rows : int array of shape (n_images,)
        Where the images are among ``names``.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (5, 4), "red").save(folder / "red.png")
    >>> images, rows = open_images(folder, ["red.png"])
    >>> images.names, rows.tolist()
    (['red.png'], [0])
    """
    source = expanded(source)
    _check_inside(names)
    folder = _find_only_folder(source, names)
    names = [folder + name for name in names]
    missing = _find_missing(source, names)
    if not missing:
        images, kept = Images(source, names), np.arange(len(names))
    elif not skip_broken:
        shown = listed([names[row] for row in missing], 3)
        raise ComesError(
            f"{len(missing)} of {len(names)} images are not in {source.name}: {shown}. Add them, "
            "or leave their rows out (--skip-broken on the command line)."
        )
    else:
        kept = np.setdiff1d(np.arange(len(names)), missing)
        images = Images(source, [names[row] for row in kept])
    if skip_broken:
        kept = np.delete(kept, find_broken(images))
        if len(kept) < len(names):
            shown = listed([names[row] for row in np.setdiff1d(np.arange(len(names)), kept)], 3)
            left_out = len(names) - len(kept)
            warn(f"{left_out} images cannot be read and are left out: {shown}.", ComesWarning, 2)
        images = Images(source, [names[row] for row in kept])
    if not len(kept):
        raise ComesError(f"none of the {len(names)} images in {source.name} can be read.")
    return images, kept


def image_names(source: Path) -> list[str]:
    """Return the names of all pictures in a folder and the folders in it, or in a .zip archive.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "2024").mkdir()
    >>> for name in ("b.png", "2024/a.jpg", "notes.txt"):
    ...     (folder / name).touch()
    >>> image_names(folder)
    ['2024/a.jpg', 'b.png']
    """
    if _is_zip(source):
        try:
            with zipfile.ZipFile(source) as archive:
                names = [name for name in archive.namelist() if not _is_litter(name)]
        except (OSError, zipfile.BadZipFile) as error:
            raise ComesError(f"{source.name} cannot be read as zip: {error}.") from None
    else:
        found = (path for path in source.rglob("*") if path.is_file())
        names = [path.relative_to(source).as_posix() for path in found]
    pictures = sorted(
        name
        for name in names
        if name.lower().endswith(PICTURE_ENDINGS) and not name.rpartition("/")[2].startswith(".")
    )
    _check_heic(pictures)
    if not pictures:
        raise ComesError(
            f"{source} has no pictures; expected files that end in {', '.join(PICTURE_ENDINGS)}."
        )
    return pictures


def _check_heic(names: Sequence[str]) -> None:
    """Raise if a picture is HEIC, and nothing here can open that."""
    of_phones = [name for name in names if name.lower().endswith(HEIC_ENDINGS)]
    if of_phones and HEIC not in import_pillow().MIME:
        raise ComesError(
            f"{listed(of_phones, 3)}: HEIC pictures need pillow-heif, which is not installed: pip "
            "install 'comes[images]'. Or convert them to JPEG."
        )


def find_broken(images: Images) -> list[int]:
    """Open every image and return the rows of those that cannot be read."""
    broken = []
    bar = progress_bar(len(images), "opening images")
    with ThreadPoolExecutor(os.cpu_count()) as pool, bar as advance:
        states = pool.map(partial(_is_broken, images), range(len(images)))
        for row, is_broken in enumerate(states):
            if is_broken:
                broken.append(row)
            advance()
    return broken


def _is_broken(images: Images, row: int) -> bool:
    """Return whether an image cannot be opened."""
    try:
        return images[row].size == 0
    except ComesError:
        return True


def _is_zip(source: Path) -> bool:
    """Return whether images lie in an archive rather than a folder."""
    return source.suffix.lower() == ".zip"


def _find_only_folder(source: Path, names: Sequence[str]) -> str:
    """Return the one folder that an archive of a folder consists of, unless names include it."""
    if not _is_zip(source) or not zipfile.is_zipfile(source):
        return ""
    with zipfile.ZipFile(source) as archive:
        there = [name for name in archive.namelist() if not _is_litter(name)]
    folders = {name.partition("/")[0] for name in there if "/" in name}
    inside = len(folders) == 1 and all("/" in name for name in there)
    folder = f"{next(iter(folders))}/" if inside else ""
    return "" if any(name.startswith(folder) for name in names) else folder


def _is_litter(name: str) -> bool:
    """Return whether a member of an archive is what a Mac puts there."""
    return name.startswith("__MACOSX/") or name.endswith(".DS_Store")


def _find_missing(source: Path, names: Sequence[str]) -> list[int]:
    """Return the rows of the names that are not there."""
    if _is_zip(source):
        try:
            with zipfile.ZipFile(source) as archive:
                there = set(archive.namelist())
        except (OSError, zipfile.BadZipFile) as error:
            raise ComesError(f"{source.name} cannot be read as zip: {error}.") from None
        return [row for row, name in enumerate(names) if name not in there]
    if not os.path.isdir(source):
        raise ComesError(f"{source} is neither a folder nor a .zip file of images.")
    return [row for row, name in enumerate(names) if not os.path.isfile(source / name)]


def _check_inside(names: Sequence[str]) -> None:
    """Raise if a name leads out of its folder: a file of labels is not trusted."""
    for row, name in enumerate(names):
        path = PurePosixPath(name.replace("\\", "/"))
        inside = path.parts and not path.is_absolute() and ".." not in path.parts
        if not inside or ":" in path.parts[0] or "\0" in name:
            raise ComesError(
                f"the image {name!r} (row {row}) is not a name inside the folder of images. Write "
                "names relative to that folder."
            )
