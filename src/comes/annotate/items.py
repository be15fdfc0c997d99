"""The items and classes of a new project, read from the files that name them."""

import hashlib
import io
import json
import os
import threading
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd

from comes.annotate.asking import check_template
from comes.annotate.display_sizes import (
    UnshownError,
    expect_large_pictures,
    make_display,
    refuse_large,
)
from comes.answers.convert import check_names
from comes.datasets import Images, open_images
from comes.datasets.images import image_names, import_pillow
from comes.datasets.labels import ITEM_COLUMNS
from comes.datasets.table import as_text, is_table_name, read_table
from comes.errors import ComesError, ComesWarning, first_line, listed
from comes.files import expanded
from comes.progress import progress_bar

NAME_COLUMNS = tuple(dict.fromkeys(("item", "id", *ITEM_COLUMNS)))  # the first one counts
JSON_LINES = ".jsonl"
CLASS_COLUMNS = ("class", "label", "name")


@dataclass(frozen=True)
class Items:
    """What a project asks about: texts, or images in a folder or .zip."""

    names: list[str]
    texts: list[str] | None = None
    images: Path | None = None


@dataclass(frozen=True)
class Classes:
    """The classes of a project; a class without a description has an empty one.

    ``questions`` holds templates, None where a class is asked about as the others are.
    """

    names: list[str]
    descriptions: list[str]
    questions: list[str | None]


@dataclass(frozen=True)
class ItemSource:
    """Where the items of a new project come from, and how they are read.

    Parameters
    ----------
    place : path
        A folder or .zip of images; or a table (.csv, .tsv, .csv.gz, .parquet, .xlsx or .jsonl) of
        texts or of names of images.
    images : path, optional
        The folder or .zip of the images that a table names.
    text_column : str, optional
        The column of the texts; by default ``text``.
    skip_broken : bool
        Leave out images that cannot be shown, rather than warn of them.

    Examples
    --------
    >>> ItemSource("reviews.jsonl", text_column="body").text_column
    'body'
    """

    place: str | Path
    images: str | Path | None = None
    text_column: str | None = None
    skip_broken: bool = False


def read_items(source: ItemSource) -> Items:
    """Read the items from a folder or .zip of images, or from a table."""
    place = expanded(source.place)
    if not place.exists():
        raise ComesError(f"{place} does not exist. Correct the path of the items.")
    if place.is_dir() or place.suffix.lower() == ".zip":
        if source.text_column is not None:
            raise ComesError(
                f"a column of texts needs a table; got {place}, which holds images. Leave "
                "--text-column out."
            )
        names = keep_good_pictures(place, image_names(place), source.skip_broken)
        read = Items(names, images=place)
    elif is_table_name(place) or place.suffix.lower() == JSON_LINES:
        read = _read_item_table(place, source)
    else:
        raise ComesError(
            f"items cannot be read from {place}. Give a folder or .zip of images, or a table "
            "(.csv, .tsv, .csv.gz, .parquet, .xlsx or .jsonl)."
        )
    check_characters([*read.names, *(read.texts or ())])
    return read


def read_classes(source: Path) -> Classes:
    """Read the classes from a table, or from a text file with a class per line."""
    read = _read_class_table(source) if is_table_name(source) else _read_class_lines(source)
    if not read.names:
        raise ComesError(f"{source.name} has no class. Write the name of one on every line.")
    check_names(read.names)
    questions = [question for question in read.questions if question]
    check_characters([*read.names, *read.descriptions, *questions])
    for question in questions:
        check_template(question)
    plain = Counter("".join(name.casefold().split()) for name in read.names)
    similar = [name for name in read.names if plain["".join(name.casefold().split())] > 1]
    if similar:
        warnings.warn(
            f"classes {listed(similar)} differ in case or blanks alone, and are asked about as "
            "different ones. If they are the same, keep one.",
            ComesWarning,
            stacklevel=2,
        )
    return read


def _read_item_table(source: Path, how: ItemSource) -> Items:
    """Read a table of texts or, if the place of the images is given, of image names."""
    text_column = how.text_column or "text"
    table = _read_texts(source, (*NAME_COLUMNS, text_column))
    columns = listed([*map(str, table)])
    if how.text_column is not None and how.text_column not in table:
        raise ComesError(
            f"--text-column must be a column of {source.name}; got {how.text_column!r}, it has "
            f"{columns}."
        )
    column = next((name for name in NAME_COLUMNS if name in table and name != text_column), None)
    if how.images is None and text_column in table:
        texts = table[text_column].tolist()
        names = table[column].tolist() if column else [str(k) for k in range(1, len(texts) + 1)]
        return Items(_check_unique(names, source), texts)
    if how.images is None or column is None:
        raise ComesError(
            f"{source.name} has neither a column text (or another: --text-column) nor names of "
            f"images (in a column {', '.join(NAME_COLUMNS)}) with --images DIR; it has {columns}."
        )
    place = expanded(how.images)
    given = _check_unique(table[column].tolist(), source)
    found, _ = open_images(place, given, how.skip_broken)
    return Items(keep_good_pictures(place, list(found.names), how.skip_broken), images=place)


def _read_class_table(source: Path) -> Classes:
    table = _read_texts(source, (*CLASS_COLUMNS, "description", "question"))
    column = next((name for name in CLASS_COLUMNS if name in table), None)
    if column is None:
        raise ComesError(
            f"{source.name} has no column {' or '.join(CLASS_COLUMNS)}; it has "
            f"{listed([*map(str, table)])}."
        )
    nothing = [""] * len(table)
    descriptions = table["description"].tolist() if "description" in table else nothing
    questions = table["question"].tolist() if "question" in table else nothing
    return Classes(
        table[column].tolist(), descriptions, [text.strip() or None for text in questions]
    )


def _read_class_lines(source: Path) -> Classes:
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{source} cannot be read: {error}.") from None
    names = [line.strip() for line in text.splitlines() if line.strip()]
    return Classes(names, [""] * len(names), [None] * len(names))


def _read_texts(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a table, with the named columns as texts."""
    is_lines = path.suffix.lower() == JSON_LINES
    table = _read_json_lines(path) if is_lines else read_table(path, columns)
    kept = [column for column in columns if column in table]
    return table.assign(
        **{
            column: [
                cell if type(cell) is str else as_text(cell) for cell in table[column].tolist()
            ]
            for column in kept
        }
    )


def _read_json_lines(path: Path) -> pd.DataFrame:
    """Read a file with an object in every line."""
    rows: list[dict[str, Any]] = []
    number = 0
    try:
        with path.open("rb") as file:
            for line in file:
                number += 1
                if line.strip():
                    row = json.loads(line.decode("utf-8-sig"))
                    if not isinstance(row, dict):
                        raise ValueError("it is not an object in braces")
                    rows.append({name: _flatten(cell) for name, cell in row.items()})
    except OSError as error:
        raise ComesError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ComesError(
            f"line {number} of {path.name} cannot be read: {error}. Write an object such as "
            '{"item": "a", "text": "..."} on every line.'
        ) from None
    return pd.DataFrame(rows, dtype=object)


def _flatten(cell: Any) -> Any:
    """Return a cell of a table; what has parts is text."""
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else cell


def _check_unique(names: list[str], source: Path) -> list[str]:
    """Return the names; raise if one is empty or occurs twice."""
    repeated = pd.Index(names)[pd.Index(names).duplicated()]
    if len(repeated) or "" in names:
        found = f"{repeated[0]!r} twice" if len(repeated) else "an empty name"
        raise ComesError(f"{source.name} has {found}. Give each item its own name.")
    return names


def check_characters(values: Sequence[str]) -> None:
    """Raise at the first value that a database cannot store: with NUL, or not in UTF-8."""
    try:
        if b"\0" not in "".join(values).encode():
            return
    except UnicodeEncodeError:
        pass  # one of them, which is found now
    for value in values:
        try:
            value.encode()
            is_text = "\0" not in value
        except UnicodeEncodeError:  # the name of a file that is not in UTF-8
            is_text = False
        if not is_text:
            raise ComesError(f"{value[:100]!r} holds bytes that are not text. Rename or remove it.")


LARGEST_MEMBER = 128 << 20  # bytes of a picture in a .zip, unpacked


class PictureFiles:
    """The files of the pictures of a project, in folders or in .zip archives.

    Parameters
    ----------
    images : Images
    """

    def __init__(self, images: Images) -> None:
        self._images = images
        self._archives: dict[Path, tuple[tuple[int, int], zipfile.ZipFile]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._images)

    def name(self, row: int) -> str:
        """Return the name of a picture."""
        return self._images.names[row]

    def state(self, row: int) -> str:
        """Return a digest that changes when the file does: of its name, its time and its size."""
        source, name = self._images.sources[row], self._images.names[row]
        if is_archive(source):
            member = self._member(source, name)[1]
            found = (member.CRC, member.file_size)
        else:
            stat = os.stat(self.path(row))
            found = (stat.st_mtime_ns, stat.st_size)
        return hashlib.sha256(repr((name, found)).encode()).hexdigest()[:24]

    def path(self, row: int) -> Path:
        """Return where a picture of a folder lies; refuse one that lies elsewhere."""
        source, name = self._images.sources[row], self._images.names[row]
        if find_links_out(source, [name]):
            raise ComesError("this picture is a link out of its folder")
        return source / name

    def is_packed(self, row: int) -> bool:
        """Return whether a picture lies in an archive."""
        return is_archive(self._images.sources[row])

    def open(self, row: int) -> IO[bytes]:
        """Open a picture; one in an archive is unpacked into memory."""
        if not self.is_packed(row):
            return self.path(row).open("rb")
        source, name = self._images.sources[row], self._images.names[row]
        archive, member = self._member(source, name)
        try:
            return io.BytesIO(archive.read(member))  # no more than the size that was checked
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
            raise ComesError(f"this picture cannot be unpacked ({error})") from None

    def _member(self, source: Path, name: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo]:
        archive = self._open_archive(source)
        try:
            member = archive.getinfo(name)
        except KeyError:
            raise ComesError(f"this picture is no longer in {source.name}") from None
        if member.file_size > LARGEST_MEMBER:
            raise ComesError(
                f"this picture has {member.file_size >> 20} MB unpacked; at most "
                f"{LARGEST_MEMBER >> 20} are read"
            )
        return archive, member

    def _open_archive(self, source: Path) -> zipfile.ZipFile:
        """Return the archive; opened again if it was replaced."""
        stat = os.stat(source)
        state = stat.st_mtime_ns, stat.st_size
        with self._lock:
            if source not in self._archives or self._archives[source][0] != state:
                try:
                    self._archives[source] = state, zipfile.ZipFile(source)
                except zipfile.BadZipFile as error:
                    raise ComesError(f"{source.name} cannot be read as zip ({error})") from None
            return self._archives[source][1]


def find_links_out(source: Path, names: Sequence[str]) -> list[int]:
    """Return the rows of the names in a folder that lead out of it, by links."""
    if is_archive(source):
        return []
    root = os.path.realpath(source)
    real: dict[str, str] = {}  # of the folders inside: most files share a few
    found = []
    for row, name in enumerate(names):
        folder, _, file = name.rpartition("/")
        if folder not in real:
            real[folder] = os.path.realpath(os.path.join(root, folder))
        path = os.path.join(real[folder], file)
        if os.path.islink(path):
            path = os.path.realpath(path)
        if os.path.commonpath((root, path)) != root:
            found.append(row)
    return found


def is_archive(source: Path) -> bool:
    """Return whether pictures lie in an archive rather than a folder."""
    return source.suffix.lower() == ".zip"


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
