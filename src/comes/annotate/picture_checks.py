"""Pictures looked at once, before people are asked about them: which cannot be shown, and why."""

import io
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any

from comes.annotate.display_sizes import (
    UnshownError,
    expect_large_pictures,
    make_display,
    refuse_large,
)
from comes.annotate.picture_files import PictureFiles, find_links_out
from comes.datasets import Images
from comes.datasets.images import import_pillow
from comes.errors import ComesError, ComesWarning, first_line, listed
from comes.progress import progress_bar

THREADS = 8  # a disk, and more so a network, answers several at once
ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82"}  # what a whole file has near its end
ONE_AT_A_TIME = threading.Lock()  # is decoded whole
SHOWN = 3  # names in a message
TAIL = 65_536  # bytes; cameras write more behind the picture


def keep_good_pictures(source: Path, names: list[str], skip_broken: bool) -> list[str]:
    """Return the names of pictures to ask about; say which cannot be shown.

    Links that lead out of the folder are not accepted, since whoever annotates could read any file
    of this machine through them. Broken pictures are kept with a warning, or left out.
    """
    links = find_links_out(source, names)
    if links and not skip_broken:
        shown = listed([names[row] for row in links], 3)
        raise ComesError(
            f"pictures must lie in {source.name}; {len(links)} of {len(names)} are links out of "
            f"it: {shown}. Copy the files there, or leave them out (--skip-broken on the command "
            "line)."
        )
    left = [name for row, name in enumerate(names) if row not in set(links)]
    broken = find_unshown(source, left)
    kept = [name for row, name in enumerate(left) if row not in broken]
    if not kept:
        first = f" ({left[0]}: {broken[0]})" if left else ""
        raise ComesError(f"none of the {len(names)} pictures in {source.name} can be shown{first}.")
    if broken or links:
        reasons = [f"{left[row]} ({reason})" for row, reason in broken.items()]
        reasons += [f"{names[row]} (links out of the folder)" for row in links]
        _warn_of_broken(reasons, len(names), skip_broken)
    return kept if skip_broken else left


def find_unshown(source: Path, names: Sequence[str]) -> dict[int, str]:
    """Return the rows of pictures that cannot be shown, and why.

    It reads the header of every picture, and decodes those whose end looks cut off.
    """
    expect_large_pictures()
    files, found = PictureFiles(Images(source, names)), {}
    bar = progress_bar(len(names), "looking at pictures")
    with ThreadPoolExecutor(THREADS) as pool, bar as advance:
        for row, reason in enumerate(pool.map(partial(_explain, files), range(len(names)))):
            if reason is not None:
                found[row] = reason
            advance()
    return found


def _explain(files: PictureFiles, row: int) -> str | None:
    """Return why a picture cannot be shown; None if it can."""
    Image = import_pillow()
    try:
        with files.open(row) as file:
            with Image.open(file) as image:
                refuse_large(image)
                kind = image.format
            if _looks_cut_off(files, row, kind):
                with ONE_AT_A_TIME, files.open(row) as again:
                    make_display(again, 160)
    except UnshownError as error:
        return str(error)
    except ComesError as error:
        return first_line(error).removeprefix("this picture ")
    except Image.DecompressionBombError:
        return "has too many pixels"
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        known = "cannot identify image file" in str(error)
        return "is not an image" if known else first_line(error).split(" <_io")[0]
    return None


def _looks_cut_off(files: PictureFiles, row: int, kind: Any) -> bool:
    """Return whether a JPEG or PNG lacks its last bytes."""
    if kind not in ENDS:
        return False
    with files.open(row) as file:
        return ENDS[kind] not in _read_tail(file)


def _read_tail(file: IO[bytes]) -> bytes:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - TAIL))
    return file.read()


def _warn_of_broken(shown: Sequence[str], n_pictures: int, skip_broken: bool) -> None:
    fate = (
        "They are left out."
        if skip_broken
        else "People will be shown that they are broken; leave them out with --skip-broken."
    )
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    first = ", ".join(shown[:SHOWN]) + more
    warnings.warn(
        f"{len(shown)} of {n_pictures} pictures cannot be shown: {first}. {fate}",
        ComesWarning,
        stacklevel=4,
    )
