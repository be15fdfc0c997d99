"""Items of a new project: tables of many kinds, columns by name, addresses and data sets."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from starlette.testclient import TestClient

from annotation_site import HERE, decoding_in_threads
from comes.annotate import ItemSource, create_project, make_app
from comes.annotate.items import read_items
from comes.datasets.images import image_names
from comes.errors import ComesError

ROWS = [
    {"item": "001", "text": "Ä rain", "body": "long"},
    {"item": "002", "text": "NA", "body": "short"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows in the format that the name says."""
    table = pd.DataFrame(rows)
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    elif path.name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    elif path.suffix == ".tsv":
        table.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".xlsx":
        table.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return path


def test_tables_of_every_kind_hold_texts(tmp_path: Path) -> None:
    for ending in ("csv", "tsv", "csv.gz", "xlsx", "parquet", "jsonl"):
        path = write(tmp_path / f"items.{ending}", ROWS)
        read = read_items(ItemSource(path), tmp_path / "copies")
        assert (read.names, read.texts) == (["001", "002"], ["Ä rain", "NA"]), ending
        read = read_items(ItemSource(path, text_column="body"), tmp_path / "copies")
        assert (read.names, read.texts) == (["001", "002"], ["long", "short"]), ending


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", ROWS)
    with pytest.raises(ComesError, match="'boddy', it has 'item', 'text', 'body'"):
        read_items(ItemSource(path, text_column="boddy"), tmp_path)
    with pytest.raises(ComesError, match="needs a table"):
        read_items(ItemSource(tmp_path, text_column="body"), tmp_path)


def test_items_without_names_are_numbered_and_gaps_are_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "items.jsonl", [{"review": "good"}, {"review": "bad", "stars": 1}])
    read = read_items(ItemSource(path, text_column="review"), tmp_path)
    assert (read.names, read.texts) == (["1", "2"], ["good", "bad"])
    rows: list[dict[str, Any]] = [{"id": 1, "text": ["a", "ä"]}, {"id": 2, "text": None}, {"id": 3}]
    read = read_items(ItemSource(write(tmp_path / "items.jsonl", rows)), tmp_path)
    assert (read.names, read.texts) == (["1", "2", "3"], ['["a", "ä"]', "", ""])


def test_a_column_that_could_name_items_may_hold_their_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", [{"name": "a", "id": "x"}, {"name": "b", "id": "y"}])
    read = read_items(ItemSource(path, text_column="name"), tmp_path)
    assert (read.names, read.texts) == (["x", "y"], ["a", "b"])


def test_a_line_or_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    for line, reason in (
        (b"{not json", "Expecting"),
        (b"[1]", "not an object"),
        (b"\xff", "utf-8"),
    ):
        path.write_bytes(b'{"text": "a"}\n' + line + b"\n")
        message = f"line [12] of items.jsonl cannot be read: .*{reason}"
        with pytest.raises(ComesError, match=message):
            read_items(ItemSource(path), tmp_path)
    (tmp_path / "items.docx").touch()
    with pytest.raises(ComesError, match=r"\.jsonl"):
        read_items(ItemSource(tmp_path / "items.docx"), tmp_path)


# Addresses


@pytest.fixture
def memory() -> Any:
    """A file system in memory, with pictures in it."""
    import fsspec

    system = fsspec.filesystem("memory")
    for name in ("red", "deep/green"):
        with system.open(f"/bucket/photos/{name}.png", "wb") as file:
            Image.new("RGB", (5, 4), name.rpartition("/")[2]).save(file, "PNG")
    with system.open("/bucket/photos/notes.txt", "wb") as file:
        file.write(b"no picture")
    with system.open("/bucket/texts.csv", "wb") as file:
        file.write(b"item,body\na,rain\n")
    yield system
    system.rm("/bucket", recursive=True)


def test_pictures_at_an_address_are_copied_once(memory: Any, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    read = read_items(ItemSource("memory://bucket/photos"), copies)
    assert (read.names, read.images) == (["deep/green.png", "red.png"], copies)
    first = {path: path.stat().st_mtime_ns for path in copies.rglob("*.png")}
    (copies / "red.png").write_bytes(b"half")  # a copy that is not whole is made again
    read_items(ItemSource("memory://bucket/photos"), copies)
    assert Image.open(copies / "red.png").getpixel((0, 0)) == (255, 0, 0)
    green = copies / "deep" / "green.png"
    assert green.stat().st_mtime_ns == first[green]
    assert not [path for path in copies.rglob(".*")]


def test_a_table_at_an_address_is_read(memory: Any, tmp_path: Path) -> None:
    source = ItemSource("memory://bucket/texts.csv", text_column="body")
    read = read_items(source, tmp_path / "copies")
    assert (read.names, read.texts) == (["a"], ["rain"])


def test_an_address_of_this_machine_works_too(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (5, 4)).save(tmp_path / "photos" / "a.png")
    read = read_items(ItemSource(f"file://{tmp_path}/photos"), tmp_path / "copies")
    assert read.names == ["a.png"]


def test_an_address_without_pictures_is_an_error(memory: Any, tmp_path: Path) -> None:
    for address, reason in (
        ("memory://bucket/nothing", "has no pictures"),
        ("nosuch://bucket/photos", "cannot be read: Protocol not known"),
    ):
        with pytest.raises(ComesError, match=reason):
            read_items(ItemSource(address), tmp_path / "copies")


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Any
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(ComesError, match=r"pip install 'comes\[remote\]'"):
        read_items(ItemSource("s3://bucket/photos"), tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ComesError, match=r"pip install 'comes\[hub\]'"):
        read_items(ItemSource("hf:imdb"), tmp_path)


# Data sets of Hugging Face


@pytest.mark.needs("datasets")
def test_a_saved_data_set_of_texts(tmp_path: Path) -> None:
    import datasets

    data = datasets.Dataset.from_dict({"body": ["rain", "sun"], "stars": [1, 2]})
    datasets.DatasetDict({"train": data, "test": data.select([1])}).save_to_disk(tmp_path / "data")
    with pytest.raises(ComesError, match="neither pictures nor a column 'text'; it has 'body'"):
        read_items(ItemSource(tmp_path / "data"), tmp_path / "copies")
    read = read_items(ItemSource(tmp_path / "data", text_column="body"), tmp_path / "copies")
    assert (read.names, read.texts) == (["1", "2"], ["rain", "sun"])


@pytest.mark.needs("datasets")
def test_a_saved_data_set_of_pictures(tmp_path: Path) -> None:
    import datasets

    pictures = [Image.new("RGB", (5, 4), colour) for colour in ("red", "green")]
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    data = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1]}, features=kinds)
    data.save_to_disk(tmp_path / "data")
    read = read_items(ItemSource(tmp_path / "data"), tmp_path / "copies")
    assert read.names == ["0000001.png", "0000002.png"] and read.images == tmp_path / "copies"
    assert Image.open(tmp_path / "copies" / "0000002.png").getpixel((0, 0)) == (0, 128, 0)


# HEIC


def test_heic_pictures_need_a_package_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "phone.HEIC").touch()
    monkeypatch.setitem(__import__("sys").modules, "pillow_heif", None)
    monkeypatch.delitem(Image.MIME, "HEIF", raising=False)
    with pytest.raises(ComesError, match=r"HEIC pictures need pillow-heif.*'comes\[images\]'"):
        image_names(tmp_path)


@pytest.mark.needs("pillow_heif")
def test_heic_pictures_are_read_and_shown_as_jpeg(tmp_path: Path) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    (tmp_path / "photos").mkdir()
    (tmp_path / "classes.txt").write_text("boat\n")
    Image.new("RGB", (1000, 800), "red").save(tmp_path / "photos" / "phone.heic")
    project = create_project(tmp_path / "p", tmp_path / "photos", tmp_path / "classes.txt", rate=1)
    assert project.item_names == ["phone.heic"]
    with decoding_in_threads(), TestClient(make_app(project), base_url=HERE) as client:
        for path in ("/items/1?width=640", "/items/1/full"):
            reply = client.get(path)
            assert (reply.status_code, reply.headers["content-type"]) == (200, "image/jpeg")
    project.engine.dispose()
