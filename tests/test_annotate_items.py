"""Items of a new project: tables of many kinds, columns by name."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from starlette.testclient import TestClient

from annotation_site import HERE, decoding_in_threads
from comes.annotate import create_project
from comes.annotate.items import read_items
from comes.annotate.web.server import make_app
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
        read = read_items(path)
        assert (read.names, read.texts) == (["001", "002"], ["Ä rain", "NA"]), ending
        read = read_items(path, text_column="body")
        assert (read.names, read.texts) == (["001", "002"], ["long", "short"]), ending


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", ROWS)
    with pytest.raises(ComesError, match="'boddy', it has 'item', 'text', 'body'"):
        read_items(path, text_column="boddy")
    with pytest.raises(ComesError, match="needs a table"):
        read_items(tmp_path, text_column="body")


def test_items_without_names_are_numbered_and_gaps_are_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "items.jsonl", [{"review": "good"}, {"review": "bad", "stars": 1}])
    read = read_items(path, text_column="review")
    assert (read.names, read.texts) == (["1", "2"], ["good", "bad"])
    rows: list[dict[str, Any]] = [{"id": 1, "text": ["a", "ä"]}, {"id": 2, "text": None}, {"id": 3}]
    read = read_items(write(tmp_path / "items.jsonl", rows))
    assert (read.names, read.texts) == (["1", "2", "3"], ['["a", "ä"]', "", ""])


def test_a_column_that_could_name_items_may_hold_their_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", [{"name": "a", "id": "x"}, {"name": "b", "id": "y"}])
    read = read_items(path, text_column="name")
    assert (read.names, read.texts) == (["x", "y"], ["a", "b"])


def test_a_line_or_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    for line, reason in (
        (b"{not json", "Expecting"),
        (b"[1]", "not an object"),
        (b"\xff", "utf-8"),
    ):
        path.write_bytes(b'{"text": "a"}\n' + line + b"\n")
        message = rf"line [12] of items.jsonl cannot be read as an object such as .*{reason}"
        with pytest.raises(ComesError, match=message):
            read_items(path)
    (tmp_path / "items.docx").touch()
    with pytest.raises(ComesError, match=r"\.jsonl"):
        read_items(tmp_path / "items.docx")


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
