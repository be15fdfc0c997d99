"""Rows from many files, in blocks, are those that one file in memory would give."""

import gzip
import io
import itertools
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pickle import dumps, loads

import fsspec
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse

from comes.answers import Answers, State
from comes.datasets import (
    Dataset,
    Images,
    ShardedDataset,
    open_shards,
    read_dataset,
    sparse_marks,
    write_dataset,
)
from comes.datasets import sharded as sharded_module
from comes.errors import ComesWarning
from refusals import refused

N = 50


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    return tmp_path / "parts"


def drawn_table(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return rows with two numbers and a column of candidates; every fifth has a quote in it."""
    rng = np.random.default_rng(seed)
    names = np.array(["sea", "sky", "tree", "sun"])
    sets = [names[rng.random(4) < 0.6] for _ in range(n)]
    return pd.DataFrame(
        {
            "red": rng.normal(1e6, 1.0, n),
            "blue": rng.normal(size=n),
            "candidates": [";".join(s) or "(none)" for s in sets],
        }
    )


def write_parts(table: pd.DataFrame, folder: Path, ending: str, n_parts: int = 3) -> None:
    """Write a table as several files."""
    for number, rows in enumerate(np.array_split(np.arange(len(table)), n_parts)):
        part, path = table.iloc[rows], folder / f"part-{number}{ending}"
        if ending == ".parquet":
            part.to_parquet(path, index=False, row_group_size=7)
        elif ending.startswith(".jsonl"):
            part.to_json(path, orient="records", lines=True)
        else:
            part.to_csv(path, index=False, sep="\t" if ending.startswith(".tsv") else ",")


def joined(shards: ShardedDataset) -> tuple[object, Answers]:
    """Return the rows of all blocks together."""
    blocks = [shards.read(block) for block in range(len(shards.blocks))]
    X = [features for features, _ in blocks]
    states = sparse.vstack([answers.states for _, answers in blocks], "csr")
    said = Answers.from_codes(states, blocks[0][1].kind, shards.label_names)
    if isinstance(X[0], pd.DataFrame):
        return pd.concat(X, ignore_index=True), said
    return sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X), said


def test_blocks_of_tables_are_the_rows_of_one_table(folder: Path) -> None:
    table = drawn_table()
    table.to_csv(folder / "whole.csv", index=False)
    whole = read_dataset(folder / "whole.csv")
    assert whole.answers is not None
    endings = (".parquet", ".csv", ".csv.gz", ".tsv", ".jsonl", ".jsonl.gz")
    for ending, rows_at_once in itertools.product(endings, (4, 1000)):
        case = f"{ending}, {rows_at_once} at once"
        (folder / case).mkdir()
        write_parts(table, folder / case, ending)
        shards = open_shards(folder / case, rows_at_once=rows_at_once)
        assert sum(shards.sizes) == N and max(shards.sizes) <= rows_at_once, case
        assert shards.label_names == ["sea", "sky", "sun", "tree"], case
        assert shards.feature_names == ["red", "blue"], case
        X, answers = joined(shards)
        assert isinstance(X, np.ndarray) and X.dtype == np.float32, case
        np.testing.assert_array_equal(X, whole.X.to_numpy().astype(np.float32), case)
        np.testing.assert_array_equal(answers.codes, whole.answers.codes, case)
        assert answers.kind == whole.answers.kind, case


def test_stored_numbers_are_prepared_before_they_are_rounded(folder: Path) -> None:
    table = drawn_table()
    write_parts(table, folder, ".csv", 1)
    X, _ = open_shards(folder).prepared(lambda X: X - 1e6).read(0)
    np.testing.assert_allclose(X[:, 0], table["red"] - 1e6, atol=1e-9)


def test_answers_in_words_keep_their_kind_in_every_block(folder: Path) -> None:
    (folder / "a.csv").write_text("red,sky,sea\n1.5,no,yes\n2.5,,maybe\n")
    (folder / "b.csv").write_text("red,sky,sea\n3.5,no,\n4.5,no,no\n")
    shards = open_shards(folder, labels=["sky", "sea"])
    assert shards.kind == "answers"
    _, answers = shards.read(1)
    assert answers.kind == "answers"
    assert answers.codes.tolist() == [[1, 0], [1, 1]]


def test_a_first_block_without_yes_is_an_error_where_yes_comes(folder: Path) -> None:
    (folder / "a.csv").write_text("red,sky,sea\n1.5,no,no\n2.5,,no\n")
    (folder / "b.csv").write_text("red,sky,sea\n3.5,no,yes\n")
    shards = open_shards(folder, labels=["sky", "sea"])
    with refused("b.csv: the labels are answers here, and candidates"):
        shards.read(1)


def test_line_breaks_in_quotes_do_not_cut_rows(folder: Path) -> None:
    texts = [f'a "word"\nand, {k}\n\nmore' if k % 2 else f"plain {k}" for k in range(9)]
    table = pd.DataFrame(
        {"text": texts, "positives": ["sky" if k % 3 else "sea" for k in range(9)]}
    )
    table.to_csv(folder / "a.csv", index=False)
    shards = open_shards(folder, rows_at_once=2, text=["text"], separator=";")
    assert shards.sizes == (2, 2, 2, 2, 1) and shards.features == "table"
    X, answers = joined(shards)
    assert isinstance(X, pd.DataFrame)
    assert X["text"].tolist() == texts
    assert answers.kind == "positives"


def test_features_that_are_no_numbers_come_as_tables(folder: Path) -> None:
    table = drawn_table().assign(colour=np.array(["red", "7", None, "blue", "008"] * 10))
    write_parts(table, folder, ".csv")
    X, _ = joined(open_shards(folder, rows_at_once=5))
    assert isinstance(X, pd.DataFrame)
    assert X["colour"].isna().sum() == 10
    assert X["colour"].dropna().tolist()[:4] == ["red", "7", "blue", "008"]
    assert X["red"].dtype == np.float64


def test_a_block_that_disagrees_names_file_row_and_column(folder: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("x", "got 'x' at row 1. If it is a category"),
        ("", "got nothing at row 1. Fill it in"),
    ]
    for cell, words in cases:
        (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
        (folder / "b.csv").write_text(f"red,candidates\n1.5,sky\n{cell},sea\n")
        shards = open_shards(folder, separator=";")
        shards.read(0)
        with refused(f"column 'red' of b.csv must hold numbers.* {words}"):
            shards.read(1)


def test_a_later_shard_that_differs_is_named(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
    (folder / "b.csv").write_text("red,blue,candidates\n1.5,1,sky\n")
    with refused("b.csv has the columns 'blue', which the first"):
        open_shards(folder, separator=";").read(1)

    (folder / "more").mkdir()
    write_parts(drawn_table(), folder / "more", ".parquet")
    drawn_table().drop(columns="blue").to_parquet(folder / "more" / "part-3.parquet")
    with refused("part-3.parquet: there is no column 'blue'"):
        list(open_shards(folder / "more"))


def test_a_label_that_is_not_listed_names_the_shard(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
    (folder / "b.csv").write_text("red,candidates\n1.5,moon\n")
    with refused("b.csv: label 'moon' occurs in a set but is not one"):
        open_shards(folder, label_names=["sky", "sea"]).read(1)


def write_lines(folder: Path, n: int = 20, is_sized: bool = False) -> list[str]:
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(n):
        labels = sorted(rng.choice(30, rng.integers(0, 4), replace=False).tolist())
        places = sorted(rng.choice(np.arange(1, 9), 3, replace=False).tolist())
        lines.append(f"{','.join(map(str, labels))} " + " ".join(f"{j}:{j / 4}" for j in places))
    for k in range(2):
        part = lines[k * n // 2 : (k + 1) * n // 2]
        head = [f"{len(part)} 12 30"] if is_sized else []
        (folder / f"{k}.txt").write_text("\n".join([*head, *part]) + "\n")
    return lines


def test_blocks_of_libsvm_files_are_the_rows_of_one(folder: Path) -> None:
    for is_sized in (False, True):
        lines = write_lines(folder, is_sized=is_sized)
        head = [f"{len(lines)} 12 30"] if is_sized else []
        whole_path = folder.parent / "whole.txt"
        whole_path.write_text("\n".join([*head, *lines]) + "\n")
        whole = read_dataset(whole_path, labels_are="complementary")
        shards = open_shards(str(folder / "*.txt"), labels_are="complementary", rows_at_once=3)
        assert shards.sizes == (3, 3, 3, 1) * 2
        X, answers = joined(shards)
        assert sparse.issparse(X) and whole.answers is not None
        np.testing.assert_array_equal(X.toarray(), whole.X.toarray())  # type: ignore[attr-defined]
        np.testing.assert_array_equal(answers.codes, whole.answers.codes)
        assert shards.label_names == whole.label_names
        if not is_sized:
            truth = open_shards(folder, rows_at_once=3)
            assert truth.kind is None
            n_marked = sum(int(block.known_relevant().sum()) for block in truth)
            assert n_marked == int(whole.answers.excluded.sum())
            with refused("candidates or complementary labels are needed"):
                truth.read(0)


def test_npz_shards_are_blocks(folder: Path) -> None:
    rng = np.random.default_rng(0)
    parts = [
        Dataset(
            sparse.random_array((n, 6), density=0.4, rng=rng, format="csr"),
            ["a", "b", "c"],
            answers=Answers.from_codes(rng.integers(0, 4, (n, 3))),
        )
        for n in (4, 9)
    ]
    for number, part in enumerate(parts):
        write_dataset(part, folder / f"{number}.npz")
    shards = open_shards(folder)
    assert shards.sizes == (4, 9) and shards.features == "sparse" and shards.n_features == 6
    X, answers = shards.read(1)
    np.testing.assert_allclose(X.toarray(), parts[1].X.toarray(), rtol=1e-6)
    assert parts[1].answers is not None
    np.testing.assert_array_equal(answers.codes, parts[1].answers.codes)


def test_npz_shards_find_their_features_by_name(folder: Path) -> None:
    X = pd.DataFrame({"red": [1.5, 2.5], "blue": [0.25, 0.5]})
    relevant = np.array([[True], [False]])
    write_dataset(Dataset(X, ["sky"], relevant=relevant), folder / "0.npz")
    write_dataset(Dataset(X[["blue", "red"]], ["sky"], relevant=relevant), folder / "1.npz")
    shards = open_shards(folder, labels_are="positives")
    assert shards.feature_names == ["red", "blue"] and shards.features == "numbers"
    np.testing.assert_array_equal(shards.read(1)[0], X)
    write_dataset(Dataset(X[["red"]], ["sky"], relevant=relevant), folder / "2.npz")
    with refused("2.npz: there is no column 'blue'"):
        open_shards(folder, labels_are="positives").read(2)


def write_tar(path: Path, samples: list[tuple[str, dict[str, bytes]]]) -> None:
    with tarfile.open(path, "w") as archive:
        for key, files in samples:
            for ending, content in files.items():
                member = tarfile.TarInfo(f"{key}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def make_picture(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (shade, 0, 0)).save(file, "png")
    return file.getvalue()


def test_pictures_of_tar_files_come_with_what_stands_beside_them(folder: Path) -> None:
    for number in range(2):
        rows = range(number * 5, number * 5 + 5)
        samples = [
            (
                f"deep/{'long' * 40 if k == 3 else ''}{k:03d}",
                {
                    "png": make_picture(k),
                    "json": json.dumps({"no": ["sea"], "yes": ["sky"] if k % 2 else []}).encode(),
                },
            )
            for k in rows
        ]
        write_tar(folder / f"{number}.tar", samples)
    shards = open_shards(folder, labels=["no", "yes"], rows_at_once=2)
    assert shards.sizes == (2, 2, 1) * 2 and shards.features == "images"
    for block in range(6):
        images, answers = shards.read(block)
        assert isinstance(images, Images) and len(images) == len(answers)
        first = [0, 2, 4, 5, 7, 9][block]
        assert [int(images[k][0, 0, 0]) for k in range(len(images))] == list(
            range(first, first + len(images))
        )
        assert images[[0]].names[0].startswith("deep/")
        assert answers.confirmed[:, 1].tolist() == [
            k % 2 == 1 for k in range(first, first + len(answers))
        ]
    assert shards.label_names == ["sea", "sky"]
    items = shards.load(5).items
    assert items == ["deep/009"]


def test_classes_of_tar_files_are_the_truth(folder: Path) -> None:
    write_tar(
        folder / "a.tar",
        [(f"{k}", {"png": make_picture(k), "cls": b"%d" % (k % 3)}) for k in range(6)],
    )
    shards = open_shards(folder)
    assert shards.kind is None and shards.label_names == ["0", "1", "2"]
    assert open_shards(folder, relevant=["cls"], labels_are="candidates").kind == "candidates"


def test_shards_at_an_address_are_read_as_those_in_a_folder(folder: Path) -> None:
    system = fsspec.filesystem("memory")
    for ending in (".parquet", ".csv.gz", ".jsonl"):
        write_parts(drawn_table(), folder, ending)
        for path in folder.glob(f"*{ending}"):
            system.pipe(f"/many{ending}/{path.name}", path.read_bytes())
        here = joined(open_shards(str(folder / f"*{ending}"), rows_at_once=6))
        shards = open_shards(f"memory://many{ending}", rows_at_once=6)
        there = joined(shards)
        np.testing.assert_array_equal(np.asarray(here[0]), np.asarray(there[0]))
        np.testing.assert_array_equal(here[1].codes, there[1].codes)
        assert len(open_shards(f"memory://many{ending}/*-1{ending}").files) == 1
    with refused("memory://nothing has no shards"):
        open_shards("memory://nothing")


def test_blocks_may_be_read_by_threads_and_by_other_processes(folder: Path) -> None:
    write_parts(drawn_table(), folder, ".parquet")
    shards = loads(dumps(open_shards(folder)))
    wanted = [shards.read(block) for block in range(len(shards.blocks))]
    with ThreadPoolExecutor(4) as pool:
        for (X, answers), (X_again, again) in zip(
            wanted * 3, pool.map(shards.read, list(range(len(wanted))) * 3), strict=True
        ):
            np.testing.assert_array_equal(X, X_again)
            np.testing.assert_array_equal(answers.codes, again.codes)


def test_one_pass_is_kept_until_a_file_changes(folder: Path, own_cache: Path) -> None:
    write_parts(drawn_table(), folder, ".csv", 1)
    first = open_shards(folder, rows_at_once=8)
    [kept] = (own_cache / "shards").glob("*.json")
    content = json.loads(kept.read_text())
    content["content"]["label_names"] = ["sea", "sky", "sun", "tree", "moon"]
    kept.write_text(json.dumps(content))
    assert open_shards(folder, rows_at_once=8).label_names == first.label_names  # damaged
    before = kept.stat().st_mtime_ns
    assert open_shards(folder, rows_at_once=8).sizes == first.sizes
    assert kept.stat().st_mtime_ns == before
    with (folder / "part-0.csv").open("a") as file:
        file.write("1.5,2.5,moon\n")
    again = open_shards(folder, rows_at_once=8)
    assert again.n_rows == N + 1 and "moon" in again.label_names


def test_a_file_that_has_changed_since_is_an_error(folder: Path) -> None:
    write_parts(drawn_table(20), folder, ".jsonl", 1)
    shards = open_shards(folder)
    write_parts(drawn_table(19), folder, ".jsonl", 1)
    with refused("part-0.jsonl has 19 rows where 20 were counted"):
        shards.read(0)


def test_many_labels_are_sparse_in_every_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded_module, "MANY_PAIRS", 50)
    monkeypatch.setattr(sparse_marks, "MANY_PAIRS", 50)
    monkeypatch.setattr(sharded_module, "FEW", 0.5)
    monkeypatch.setattr(sparse_marks, "FEW", 0.5)
    write_lines(folder)
    shards = open_shards(folder, labels_are="positives", rows_at_once=9)
    assert shards.is_sparse and shards.sizes == (9, 1, 9, 1)
    for block in range(4):
        _, answers = shards.read(block)
        assert answers.is_sparse and set(answers.states.data.tolist()) <= {State.YES}


def test_bad_shards_are_one_sentence(folder: Path) -> None:
    damaged = gzip.compress(b"red,candidates\n1,sky\n")[:-9]
    cases: list[tuple[dict[str, str | bytes], str]] = [
        ({"a.doc": "x"}, "has no shards; expected files that end in .parquet"),
        (
            {"a.csv": "x", "b.jsonl": "x"},
            "files of several formats, '.csv', '.jsonl'; expected one",
        ),
        ({"a.csv": "item,label,answer\np,sky,no\n"}, "a.csv has a row for every answer"),
        ({"a.csv.gz": damaged}, "a.csv.gz cannot be read"),
        ({"a.csv": ""}, "the shards 'a.csv' are empty"),
        ({"a.csv": "red,candidates\n"}, "a.csv has no rows"),
        ({"a.parquet": "not parquet"}, "a.parquet cannot be read: "),
        ({"a.npz": "not npz"}, "a.npz cannot be read: "),
        ({"a.tar": "not tar"}, "a.tar cannot be read: "),
        ({"a.jsonl": "[1]\n"}, "row 0 of a.jsonl must be an object"),
        ({"a.jsonl": "{\n"}, "row 0 of a.jsonl is not json"),
        (
            {"a.csv": "red,candidates\n1,2,sky\n3,4,sea\n"},
            "a.csv has a row of 3 cells and 2 columns",
        ),
        ({"a.svm": "1 x:2\n"}, "a.svm, from row 0 on, cannot be read as LIBSVM"),
    ]
    for k, (files, message) in enumerate(cases):
        (folder / str(k)).mkdir()
        for name, content in files.items():
            content = content.encode() if isinstance(content, str) else content
            (folder / str(k) / name).write_bytes(content)
        with refused(message):
            open_shards(folder / str(k))
    write_tar(folder / "a.tar", [("a", {"cls": b"1"})])
    with refused("needs one picture, and has 0: a.cls"):
        open_shards(str(folder / "*.tar"))


def test_fields_that_do_not_apply_are_refused(folder: Path) -> None:
    write_lines(folder)
    with refused("'item' does not apply to shards of .txt"):
        open_shards(folder, item="x")
    with refused("rows_at_once must be at least 1; got 0"):
        open_shards(folder, rows_at_once=0)


def test_nearly_equal_names_are_told_once(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky;Sky\n2.5,sky\n")
    with pytest.warns(ComesWarning, match="case or blanks"):
        shards = open_shards(folder)
    shards.read(0)
