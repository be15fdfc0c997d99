"""OpenML, by a server on this machine that answers as OpenML does."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scipy import sparse

from comes.datasets import open_dataset, openml
from comes.files import cache_folder
from refusals import refused
from serving import Server

DENSE = """@relation r
@attribute size numeric
@attribute colour {red,blue,green}
@attribute sky {FALSE,TRUE}
@attribute sea {FALSE,TRUE}
@data
1.5,red,TRUE,FALSE
2.5,green,TRUE,TRUE
"""
SPARSE = """@relation r
@attribute a numeric
@attribute b numeric
@attribute sky {0,1}
@attribute sea {0,1}
@data
{1 2.5, 2 1}
{0 1}
{3 1}
"""


@pytest.fixture
def site(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, in the place of OpenML; data set 1 is dense, 2 sparse, 3 has one target."""
    monkeypatch.setenv("COMES_CACHE", str(tmp_path))
    monkeypatch.setattr(openml, "ADDRESS", server.address("api/v1/json/data/"))
    server.pages = {}
    for number, text, n_targets in ((1, DENSE, 2), (2, SPARSE, 2), (3, DENSE, 1)):
        server.pages.update(pages(server, number, text, n_targets))
    found = {"data": {"dataset": [{"did": 1, "status": "active", "version": 1}]}}
    search = "/api/v1/json/data/list/data_name/photos/limit/2/status/active/"
    server.pages[search] = json.dumps(found).encode()
    return server


def pages(server: Server, number: int, text: str, n_targets: int) -> dict[str, bytes]:
    attributes = [line.split(maxsplit=2) for line in text.splitlines() if line[:5] == "@attr"]
    features = [
        {
            "index": str(k),
            "name": name,
            "data_type": "numeric" if kind == "numeric" else "nominal",
            "is_target": str(k >= len(attributes) - n_targets).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for k, (_, name, kind) in enumerate(attributes)
    ]
    description = {
        "id": str(number),
        "md5_checksum": hashlib.md5(text.encode()).hexdigest(),
        "url": server.address(f"data/v1/download/{number}/photos.arff"),
    }
    api: dict[str, Any] = {
        f"{number}": {"data_set_description": description},
        f"features/{number}": {"data_features": {"feature": features}},
    }
    answers = {
        f"/api/v1/json/data/{path}": json.dumps(answer).encode() for path, answer in api.items()
    }
    return {**answers, f"/data/v1/download/{number}/photos.arff": text.encode()}


def test_a_dense_set_by_number_or_name_and_then_offline(site: Server) -> None:
    for which in ("openml:1", "openml:Photos"):
        for status in (200, 500):
            site.status = status
            dataset = open_dataset(which)
            assert dataset.label_names == ["sky", "sea"], which
            assert dataset.known_relevant().tolist() == [[True, False], [True, True]]
            assert dataset.X.to_numpy().tolist() == [[1.5, 1, 0, 0], [2.5, 0, 0, 1]]
        shutil.rmtree(cache_folder())


def test_a_sparse_set_stays_sparse(site: Server) -> None:
    dataset = open_dataset("openml:2")
    assert sparse.issparse(dataset.X)
    assert dataset.X.toarray().tolist() == [[0, 2.5], [1, 0], [0, 0]]
    assert dataset.known_relevant().tolist() == [[True, False], [False, False], [False, True]]


def test_what_cannot_be_had_is_one_sentence(site: Server) -> None:
    with refused("'3' has 1 targets; expected several labels"):
        open_dataset("openml:3")
    with refused("OpenML has no such data set.*404"):
        open_dataset("openml:9")
    with refused(r"'../up' cannot be the name of a data set of OpenML"):
        open_dataset("openml:../up")
    assert site.pages is not None
    site.pages["/api/v1/json/data/8"] = b"<html>"
    with refused("the answer of OpenML is not JSON"):
        open_dataset("openml:8")
    site.pages["/data/v1/download/1/photos.arff"] = b"something else"
    with refused("checksum differs"):
        open_dataset("openml:1")


def test_what_openml_says_is_no_feature_is_none(site: Server) -> None:
    assert site.pages is not None
    page = "/api/v1/json/data/features/1"
    for mark in ("is_ignore", "is_row_identifier"):
        content = json.loads(site.pages[page])
        content["data_features"]["feature"][0][mark] = "true"
        site.pages["/api/v1/json/data/features/4"] = json.dumps(content).encode()
        site.pages["/api/v1/json/data/4"] = site.pages["/api/v1/json/data/1"]
        shutil.rmtree(cache_folder() / "openml" / "4", ignore_errors=True)
        assert "size" not in open_dataset("openml:4").X.columns


def test_a_bad_answer_is_not_kept(site: Server) -> None:
    assert site.pages is not None
    site.pages["/api/v1/json/data/8"] = b"<html>"
    with refused("not JSON"):
        open_dataset("openml:8")
    site.pages["/api/v1/json/data/8"] = site.pages["/api/v1/json/data/1"]
    site.pages["/api/v1/json/data/features/8"] = site.pages["/api/v1/json/data/features/1"]
    assert len(open_dataset("openml:8")) == 2
