"""The files of pictures, and the display sizes that a page shows of them.

Workers of the server import this module to decode files of others, so it loads nothing large.
"""

import faulthandler
import hashlib
import io
import os
import signal
import threading
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from comes.errors import ComesError, first_line, listed, warn_user
from comes.files import end_with_parent
from comes.progress import progress_bar

WIDTHS = (160, 640, 1600)  # of display sizes; a picture that is narrower is not enlarged
TALLEST = 4  # times its width is the most that the height of a display size may be
SHOWN_AS = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # of a camera that appends a second image
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
SMALL_FILE = 300_000  # bytes; a smaller file that fits its display size is sent as it is
FEW_PIXELS = 250_000  # that a lossless format may hold
MOST_PIXELS = 100_000_000  # that are decoded: 400 MB in colour
MEMORY = (1024 + 400) << 20  # bytes of address space that a worker may have
LONGEST = 60.0  # seconds that a picture may take
NICE = 10  # answers go first; at 19 a busy machine would keep people waiting for pictures


class Display(NamedTuple):
    """A picture to send; without content, the file itself is sent."""

    kind: str
    content: bytes | None = None


class UnshownError(ValueError):
    """Why a picture cannot be shown."""


def prepare_worker(server: int) -> None:
    """Let this process decode pictures: behind all others, and with a limit on memory."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    end_with_parent(server)
    with suppress(ImportError):  # Windows has no limits, and no such priorities
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.nice(NICE)
    expect_large_pictures()
    with suppress(ImportError):
        from pillow_heif import register_heif_opener

        register_heif_opener()


def make_in_worker(picture: Path | bytes, width: int | None, longest: float = LONGEST) -> Display:
    """Return `make_display` of a file; the process ends if that takes too long."""
    faulthandler.dump_traceback_later(longest, exit=True, file=2)  # standard error
    try:
        with open_picture(picture) as file:
            return make_display(file, width)
    finally:
        faulthandler.cancel_dump_traceback_later()


def expect_large_pictures() -> None:
    """Let our own limit stand in for Pillow's warning of large pictures."""
    from PIL import Image

    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[Any]:
    """Open a picture; say why if it cannot be shown."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            yield image
    except UnshownError:
        raise
    except (Image.DecompressionBombError, MemoryError):
        raise UnshownError("has too many pixels to be shown") from None
    except UnidentifiedImageError:
        raise UnshownError("is not an image") from None
    except Exception as error:  # what a decoder raises at a broken file is not known
        raise UnshownError(f"cannot be read: {first_line(error)}".split(" <_io")[0]) from None


def make_display(file: IO[bytes], width: int | None) -> Display:
    """Return a picture in a width, or (None) in full size, in a format that browsers show."""
    from PIL import ImageOps

    with _opened(file) as image:
        kind = SHOWN_AS.get(image.format)
        box = _box_of(image, width)
        fits = image.width <= box[0] and image.height <= box[1]
        refuse_large(image, box)
        if kind is not None and width is None:
            return Display(kind)
        image.load()
        if kind is not None and fits and file.seek(0, io.SEEK_END) <= SMALL_FILE:
            return Display(kind)
        if image.mode in ("P", "1"):  # which are not smoothed
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        if not fits:
            image.thumbnail(box, reducing_gap=3.0)
        is_small = fits and image.width * image.height <= FEW_PIXELS
        return _encode(ImageOps.exif_transpose(image), is_small and kind != "image/jpeg")


def refuse_large(image: Any, box: tuple[int, int]) -> None:
    """Let a JPEG be decoded no larger than a box needs; raise if pixels are too many even so."""
    pixels = image.width * image.height
    scale = min(box[0] / image.width, box[1] / image.height)
    if scale < 1:
        image.draft(None, (max(int(scale * image.width), 1), max(int(scale * image.height), 1)))
    if image.width * image.height > MOST_PIXELS:
        raise UnshownError(f"has {pixels / 1e6:.0f} megapixels, too many to be shown")


def _encode(image: Any, is_exact: bool) -> Display:
    """Return a picture as JPEG, or without any loss as PNG."""
    from PIL import Image

    profile = image.info.get("icc_profile")
    if image.mode.startswith("I;16"):
        image = image.point(lambda level: level / 256).convert("L")
    if image.mode in ("I", "F"):
        raise UnshownError(f"has pixels of 32 bits, mode {image.mode}; save it with 8 or 16")
    if "A" in image.getbands() or "transparency" in image.info:
        flat = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(flat, mask=flat)
    image, file = image.convert("RGB"), io.BytesIO()
    if is_exact:
        image.save(file, "PNG")
        return Display("image/png", file.getvalue())
    image.save(file, "JPEG", quality=85, icc_profile=profile)
    return Display("image/jpeg", file.getvalue())


def _box_of(image: Any, width: int | None) -> tuple[int, int]:
    """Return width and height that a picture must fit into, as it is stored."""
    if width is None:
        return image.size  # type: ignore[no-any-return]
    from PIL import Image

    # A PNG's own method decodes the picture, to look for metadata behind its pixels.
    is_turned = Image.Image.getexif(image).get(0x0112, 1) >= 5  # its orientation
    return (TALLEST * width, width) if is_turned else (width, TALLEST * width)


LARGEST_MEMBER = 128 << 20  # bytes of a picture in a .zip, unpacked
LEADS_OUT = "is a link out of its folder"


def read_state(source: Path, name: str) -> str:
    """Return a digest that changes when a file does: of its name, its time and its size."""
    if is_archive(source):
        member = _find_member(source, name)[1]
        found = (member.CRC, member.file_size)
    else:
        stat = os.stat(_check_path(source, name))
        found = (stat.st_mtime_ns, stat.st_size)
    return hashlib.sha256(repr((name, found)).encode()).hexdigest()[:24]


def find_picture(source: Path, name: str) -> Path | bytes:
    """Return where a picture of a folder lies, or what one in a .zip archive holds."""
    if not is_archive(source):
        return _check_path(source, name)
    archive, member = _find_member(source, name)
    try:
        return archive.read(member)  # no more than the size that was checked
    except Exception as error:  # of zipfile, of zlib, or of another compression
        raise UnshownError(f"cannot be unpacked ({first_line(error)})") from None


def _find_member(source: Path, name: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo]:
    """Return an archive, and a picture in it."""
    stat = os.stat(source)
    try:
        archive = _open_archive(source, (stat.st_mtime_ns, stat.st_size))
        member = archive.getinfo(name)
    except zipfile.BadZipFile as error:
        raise UnshownError(f"lies in {source.name}, which is no .zip now ({error})") from None
    except KeyError:
        raise UnshownError(f"is no longer in {source.name}") from None
    if member.file_size > LARGEST_MEMBER:
        size, most = member.file_size >> 20, LARGEST_MEMBER >> 20
        raise UnshownError(f"has {size} MB unpacked; at most {most} are read")
    return archive, member


@lru_cache(8)
def _open_archive(source: Path, _: tuple[int, int]) -> zipfile.ZipFile:
    """Open an archive once, and again when its time or its size has changed."""
    return zipfile.ZipFile(source)


def open_picture(picture: Path | bytes) -> IO[bytes]:
    """Open what `find_picture` returns."""
    return io.BytesIO(picture) if isinstance(picture, bytes) else picture.open("rb")


def _check_path(folder: Path, name: str) -> Path:
    """Return the path of a picture; refuse one that leads out of its folder by links."""
    root = os.path.realpath(folder)
    if os.path.commonpath((root, os.path.realpath(os.path.join(root, name)))) != root:
        raise UnshownError(LEADS_OUT)
    return folder / name


def is_archive(source: Path) -> bool:
    """Return whether pictures lie in an archive rather than a folder."""
    return source.suffix.lower() == ".zip"


THREADS = 8  # a disk, and more so a network, answers several at once
ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82"}  # what a whole file has near its end
ONE_AT_A_TIME = threading.Lock()  # is decoded whole
NAMED = 3  # names in a message
TAIL = 65_536  # bytes; cameras write more behind the picture


def keep_good_pictures(source: Path, names: list[str], skip_broken: bool) -> list[str]:
    """Return the names of pictures to ask about; say which cannot be shown.

    Links that lead out of the folder are not accepted, since whoever annotates could read any file
    of this machine through them. Broken pictures are kept with a warning, or left out.
    """
    unshown = find_unshown(source, names)
    links = [names[row] for row, reason in unshown.items() if reason == LEADS_OUT]
    if links and not skip_broken:
        raise ComesError(
            f"pictures must lie in {source.name}; {len(links)} of {len(names)} are links out of "
            f"it: {listed(links, NAMED)}. Copy the files there, or leave them out (--skip-broken "
            "on the command line)."
        )
    good = [name for row, name in enumerate(names) if row not in unshown]
    reasons = [f"{names[row]} ({reason})" for row, reason in unshown.items()]
    shown = ", ".join(reasons[:NAMED])
    if not good:
        raise ComesError(
            f"none of the {len(names)} pictures in {source.name} can be shown: {shown}."
        )
    if reasons:
        more = f" and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
        fate = (
            "They are left out."
            if skip_broken
            else "People will be shown that they are broken; leave them out with --skip-broken."
        )
        warn_user(f"{len(reasons)} of {len(names)} pictures cannot be shown: {shown}{more}. {fate}")
    return good if skip_broken else names


def find_unshown(source: Path, names: Sequence[str]) -> dict[int, str]:
    """Return the rows of pictures that cannot be shown, and why.

    It reads the header of every picture, and decodes those whose end looks cut off.
    """
    from comes.datasets.images import import_pillow

    import_pillow()
    expect_large_pictures()
    found = {}
    bar = progress_bar(len(names), "looking at pictures")
    with ThreadPoolExecutor(THREADS) as pool, bar as advance:
        for row, reason in enumerate(pool.map(partial(_explain, source), names)):
            if reason is not None:
                found[row] = reason
            advance()
    return found


def _explain(source: Path, name: str) -> str | None:
    """Return why a picture cannot be shown; None if it can."""
    try:
        with open_picture(find_picture(source, name)) as file:
            with _opened(file) as image:
                refuse_large(image, _box_of(image, WIDTHS[-1]))
                ending = ENDS.get(image.format, b"")
            file.seek(max(0, file.seek(0, io.SEEK_END) - TAIL))
            if ending not in file.read():
                file.seek(0)
                with ONE_AT_A_TIME:
                    make_display(file, WIDTHS[0])
    except UnshownError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None
