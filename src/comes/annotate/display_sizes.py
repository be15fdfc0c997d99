"""Pictures in the sizes that a page shows, decoded within bounds of memory.

This file is also a program, which makes display sizes for a server: what decodes files of others
has its own process, with less priority and a limit on memory. So it imports Pillow and nothing of
ours, to start in a tenth of a second. It reads a line of json and the bytes of a picture, writes
how much memory that takes, waits for a line that lets it go on, and writes the display size.
"""

import ctypes
import io
import json
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NamedTuple

WIDTHS = (160, 640, 1600)  # of display sizes; a picture that is narrower is not enlarged
TALLEST = 4  # times its width is the most that the height of a display size may be
SHOWN = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # of a camera that appends a second image
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
SMALL_FILE = 300_000  # bytes; a smaller file that fits its display size is sent as it is
FEW_PIXELS = 250_000  # that a lossless format may hold
MOST_MEMORY = 400 << 20  # bytes that all decoding together may take: 100 megapixels in colour
NICE = 10  # answers go first; at 19 a busy machine would keep people waiting for pictures
OWN_MEMORY = 1 << 30  # bytes of address space that the program has beside it
BYTES = {"L": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}  # per pixel; others have 4


class Display(NamedTuple):
    """A picture to send; without content, the file itself is sent."""

    kind: str
    content: bytes | None = None


class UnshownError(ValueError):
    """Why a picture cannot be shown."""


def expect_large_pictures() -> None:
    """Let our own limit stand in for Pillow's warning of large pictures."""
    from PIL import Image

    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


def make_display(
    file: IO[bytes], width: int | None, reserve: Callable[[int], object] = lambda _: None
) -> Display:
    """Return a picture in a width, or (None) in full size, in a format that browsers show.

    Large JPEGs are decoded at a fraction of their size. What would take more memory than is allowed
    is refused before it is decoded; `reserve` is told how much it takes.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            return _convert(image, file, width, reserve)
    except Image.DecompressionBombError:
        raise UnshownError("has too many pixels") from None
    except MemoryError:
        raise UnshownError("takes too much memory") from None
    except (OSError, SyntaxError, EOFError, ValueError) as error:
        if isinstance(error, UnshownError):
            raise
        is_other = isinstance(error, UnidentifiedImageError)
        reason = "is not an image" if is_other else f"cannot be read: {error}"
        raise UnshownError(reason.split(" <_io")[0]) from None


def _convert(
    image: Any, file: IO[bytes], width: int | None, reserve: Callable[[int], object]
) -> Display:
    from PIL import ImageOps

    kind, is_photo = SHOWN.get(image.format), image.format in ("JPEG", "MPO")
    box = _box_of(image, width)
    fits = image.width <= box[0] and image.height <= box[1]
    if width is None and kind and _count_bytes(image) <= MOST_MEMORY:
        return Display(kind)
    is_small = fits and kind is not None and _count_file(file) <= SMALL_FILE
    reserve(_draft(image, box))
    image.load()
    if is_small:
        return Display(kind or "")
    if image.mode in ("P", "1"):  # which are not smoothed
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if not fits:
        image.thumbnail(box, reducing_gap=3.0)
    is_exact = fits and not is_photo and image.width * image.height <= FEW_PIXELS
    return _encode(ImageOps.exif_transpose(image), is_exact)


def refuse_large(image: Any) -> None:
    """Raise if the largest display size of a picture takes too much memory to make."""
    _draft(image, _box_of(image, WIDTHS[-1]))


def _draft(image: Any, box: tuple[int, int]) -> int:
    """Let a JPEG be decoded small; return how many bytes decoding takes, or raise if too many."""
    pixels = image.width * image.height
    # A progressive JPEG keeps all its coefficients, however small it is decoded.
    kept = 3 * pixels if image.info.get("progressive") else 0
    scale = min(box[0] / image.width, box[1] / image.height)
    if image.format in ("JPEG", "MPO") and scale < 1:
        image.draft(None, (int(scale * image.width) or 1, int(scale * image.height) or 1))
    needed = _count_bytes(image) + kept
    if needed > MOST_MEMORY:
        raise UnshownError(f"has {pixels / 1e6:.0f} megapixels, too many to be shown")
    return needed


def _encode(image: Any, is_exact: bool) -> Display:
    """Return a picture as JPEG, or without any loss as PNG."""
    from PIL import Image

    profile = image.info.get("icc_profile")
    if image.mode.startswith("I;16"):
        image = image.point(lambda level: level / 256).convert("L")
    if image.mode in ("I", "F"):
        raise ValueError(f"pixels of 32 bits, mode {image.mode}; save it with 8 or 16")
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


def _count_bytes(image: Any) -> int:
    """Return about how many bytes the pixels take, in colour where they are converted."""
    return int(image.width * image.height * BYTES.get(image.mode, 4))


def _count_file(file: IO[bytes]) -> int:
    at = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(at)
    return size


def answer_requests(inlet: IO[bytes], outlet: IO[bytes]) -> None:
    """Make display sizes until nobody asks any more."""

    def say(content: bytes = b"", **words: Any) -> None:
        outlet.write(json.dumps(words).encode() + b"\n" + content)
        outlet.flush()

    def reserve(needed: int) -> None:
        say(needs=needed)
        if not inlet.readline():
            sys.exit()

    while line := inlet.readline():
        asked = json.loads(line)
        packed = io.BytesIO(inlet.read(asked["size"])) if asked["path"] is None else None
        try:
            with packed or open(asked["path"], "rb") as file:
                made = make_display(file, asked["width"], reserve)
        except UnshownError as error:
            say(error=str(error))
        except OSError as error:
            say(error=f"cannot be read: {error.strerror}")
        else:
            size = None if made.content is None else len(made.content)
            say(made.content or b"", kind=made.kind, size=size)
        give_back_memory()


def give_back_memory() -> None:
    """Return the memory of pixels to the system, where its library can."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def main() -> None:
    """Run as a program of its own, behind all others."""
    with suppress(ImportError):  # Windows has no limits
        import resource

        limit = MOST_MEMORY + OWN_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if hasattr(os, "nice"):
        os.nice(NICE)
    expect_large_pictures()
    with suppress(ImportError):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    answer_requests(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
