"""Images in a folder or a zip archive, opened one at a time when they are asked for."""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, listed, reading_as, warn_user
from comes.files import expanded
from comes.progress import progress_bar

HEIC_ENDINGS = (".heic", ".heif")  # of telephones; Pillow opens them with pillow-heif
OTHER_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
PICTURE_ENDINGS = (*OTHER_ENDINGS, *HEIC_ENDINGS)
HEIC = "HEIF"  # what Pillow then calls the format


def import_pillow() -> Any:
    """Return the module that opens images; HEIC too, where pillow-heif is installed."""
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
        self._archives: dict[tuple[int, Path], zipfile.ZipFile] = {}

    @property
    def shape(self) -> tuple[int]:
        """The number of images; the size of each is known when it is opened."""
        return (len(self.names),)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: Any) -> Any:
        if not isinstance(rows, (int, np.integer)):
            index = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
            return Images([self.sources[i] for i in index], [self.names[i] for i in index])
        return self.read_reduced(int(rows), None)

    def read_reduced(self, row: int, least: int | None) -> npt.NDArray[np.uint8]:
        """Return an image; a JPEG at a half to an eighth, which is faster, no side under least."""
        Image = import_pillow()
        content = io.BytesIO(self.read_bytes(row))
        with _naming(self.names[row]), Image.open(content) as image:
            if least is not None:
                image.draft(None, (least, least))
            return _convert_to_rgb(image)

    def read_bytes(self, row: int) -> bytes:
        """Return the file as it is stored."""
        name, source = self.names[row], self.sources[row]
        with _naming(name):
            if not _is_zip(source):
                return (source / name).read_bytes()
            key = os.getpid(), source  # a forked handle would share its position
            if key not in self._archives:
                self._archives[key] = zipfile.ZipFile(source)
            return self._archives[key].read(name)

    def fingerprint(self) -> str:
        """Return a hash of names, sizes and checksums (in a folder: times of last change)."""
        return hashlib.sha256(b"".join(self.states())).hexdigest()

    def states(self) -> Iterator[bytes]:
        """Give what tells each image from a changed one: what `fingerprint` hashes."""
        members = {source: _list_members(source) for source in set(self.sources) if _is_zip(source)}
        for source, name in zip(self.sources, self.names, strict=True):
            state = members.get(source, {}).get(name)
            if state is None:
                with _naming(name):
                    stat = os.stat(source / name)
                state = stat.st_mtime_ns, stat.st_size
            yield repr((name, state)).encode()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_archives": {}}


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Let any error in the block name the image; a damaged one makes Pillow raise almost all."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).split(" <_io")[0]
        raise ComesError(
            f"the image {name!r} cannot be read ({reason}). Replace it, or leave broken images "
            "out (--skip-broken on the command line)."
        ) from None


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
    for row, name in enumerate(names):  # a file of labels is not trusted
        path = PurePosixPath(name.replace("\\", "/"))
        inside = path.parts and not path.is_absolute() and ".." not in path.parts
        if not inside or ":" in path.parts[0] or "\0" in name:
            raise ComesError(
                f"the image {name!r} (row {row}) is not a name inside the folder of images. Write "
                "names relative to that folder."
            )
    if _is_zip(source):
        members = _list_members(source)
        tops = {member.partition("/")[0] if "/" in member else "" for member in members}
        folder = f"{tops.pop()}/" if len(tops) == 1 else "/"
        if folder != "/" and not any(name.startswith(folder) for name in names):
            names = [folder + name for name in names]  # the archive of a folder
        is_there = [name in members for name in names]
    elif os.path.isdir(source):
        is_there = [os.path.isfile(source / name) for name in names]
    else:
        raise ComesError(f"{source} is neither a folder nor a .zip file of images.")
    missing = [name for name, there in zip(names, is_there, strict=True) if not there]
    if missing and not skip_broken:
        raise ComesError(
            f"{len(missing)} of {len(names)} images are not in {source.name}: {listed(missing, 3)}."
            " Add them, or leave their rows out (--skip-broken on the command line)."
        )
    kept = np.flatnonzero(is_there)
    if skip_broken:
        kept = np.delete(kept, find_broken(Images(source, names)[kept]))
        lost = np.delete(np.array(names, dtype=object), kept).tolist()
        if lost:
            warn_user(f"{len(lost)} images cannot be read and are left out: {listed(lost, 3)}.")
    if not len(kept):
        raise ComesError(f"none of the {len(names)} images in {source.name} can be read.")
    return Images(source, names)[kept], kept


def image_names(source: Path) -> list[str]:
    """Return the names of all pictures in a folder and the folders in it, or in a .zip archive."""
    if _is_zip(source):
        names = list(_list_members(source))
    else:
        files = (path for path in source.rglob("*") if path.is_file())
        names = [path.relative_to(source).as_posix() for path in files]
    pictures = sorted(
        name
        for name in names
        if name.lower().endswith(PICTURE_ENDINGS) and not name.rpartition("/")[2].startswith(".")
    )
    if not pictures:
        raise ComesError(
            f"{source} has no pictures; expected files that end in {', '.join(PICTURE_ENDINGS)}."
        )
    heic = [name for name in pictures if name.lower().endswith(HEIC_ENDINGS)]
    if heic and HEIC not in import_pillow().MIME:
        raise ComesError(
            f"{listed(heic, 3)}: HEIC pictures need pillow-heif, which is not installed: pip "
            "install 'comes[images]'. Or convert them to JPEG."
        )
    return pictures


def find_broken(images: Images) -> list[int]:
    """Open every image and return the rows of those that cannot be read."""
    bar = progress_bar(len(images), "opening images")
    with ThreadPoolExecutor(os.cpu_count()) as pool, bar as advance:

        def is_broken(row: int) -> bool:
            try:
                images[row]
            except ComesError:
                return True
            finally:
                advance()
            return False

        return np.flatnonzero(list(pool.map(is_broken, range(len(images))))).tolist()


def _is_zip(source: Path) -> bool:
    return source.suffix.lower() == ".zip"


def _list_members(source: Path) -> dict[str, tuple[int, int]]:
    """Return checksum and size of what is in an archive by its name, without what a Mac adds."""
    with reading_as("zip", source.name), zipfile.ZipFile(source) as archive:
        members = archive.infolist()
    return {
        member.filename: (member.CRC, member.file_size)
        for member in members
        if not member.filename.startswith("__MACOSX/") and not member.filename.endswith(".DS_Store")
    }
