"""Rows from many files, in blocks, are those that one file in memory would give."""

import gzip
import itertools
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from pickle import dumps, loads

import fsspec
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers, State
from comes.datasets import ShardedDataset, open_dataset, open_shards
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
    blocks = [shards.read(block) for block in range(len(shards.sizes))]
    X = [features for features, _ in blocks]
    states = sparse.vstack([answers.states for _, answers in blocks], "csr")
    said = Answers.from_codes(states, blocks[0][1].kind, shards.label_names)
    if isinstance(X[0], pd.DataFrame):
        return pd.concat(X, ignore_index=True), said
    return sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X), said


def test_blocks_of_tables_are_the_rows_of_one_table(folder: Path) -> None:
    table = drawn_table()
    table.to_csv(folder / "whole.csv", index=False)
    whole = open_dataset(folder / "whole.csv")
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


def test_a_truth_may_be_read_as_candidates(folder: Path) -> None:
    (folder / "a.csv").write_text("red,relevant\n1.5,sky\n2.5,sea\n")
    truth = open_shards(folder, separator=";")
    assert truth.kind is None and [block.known_relevant().sum() for block in truth] == [2]
    with refused("candidates or complementary labels are needed"):
        truth.read(0)
    shards = open_shards(folder, separator=";", labels_are="candidates", relevant=["relevant"])
    assert shards.kind == "candidates" and shards.read(0)[1].excluded.sum() == 2


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
        ("x", "got 'x' at row 3. If it is a category"),
        ("", "got nothing at row 3. Fill it in"),
        ("inf", "got inf at row 3. Fill it in"),
    ]
    for cell, words in cases:
        (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
        (folder / "b.csv").write_text(f"red,candidates\n1.5,sky\n{cell},sea\n")
        with refused(f"b.csv: column 'red' must hold numbers.* {words}"):
            open_shards(folder, separator=";").read(1)
    for k, cells in enumerate(([1.5], ["x"])):
        pd.DataFrame({"red": cells, "candidates": ["sky"]}).to_parquet(folder / f"{k}.parquet")
    with refused("1.parquet: column 'red' must hold numbers.* got (large_)?string"):
        open_shards(str(folder / "*.parquet"))


def test_a_later_shard_that_differs_is_named(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
    (folder / "b.csv").write_text("red,blue,candidates\n1.5,1,sky\n")
    with refused("the columns differ: b.csv has 'blue', unlike the first"):
        open_shards(folder, separator=";")

    (folder / "more").mkdir()
    write_parts(drawn_table(), folder / "more", ".parquet")
    drawn_table().drop(columns="blue").to_parquet(folder / "more" / "part-3.parquet")
    with refused("part-3.parquet lacks 'blue'"):
        open_shards(folder / "more")


def test_a_label_that_is_not_listed_names_the_shard(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky\n2.5,sea\n")
    (folder / "b.csv").write_text("red,candidates\n1.5,moon\n")
    with refused("b.csv: label 'moon' occurs in a set but is not one"):
        open_shards(folder, label_names=["sky", "sea"]).read(1)


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
        assert "1 file," in str(open_shards(f"memory://many{ending}/*-1{ending}"))
    with refused("memory://nothing has no shards"):
        open_shards("memory://nothing")


def test_blocks_may_be_read_by_threads_and_by_other_processes(folder: Path) -> None:
    write_parts(drawn_table(), folder, ".parquet")
    shards = loads(dumps(open_shards(folder)))
    wanted = [shards.read(block) for block in range(len(shards.sizes))]
    with ThreadPoolExecutor(4) as pool:
        for (X, answers), (X_again, again) in zip(
            wanted * 3, pool.map(shards.read, list(range(len(wanted))) * 3), strict=True
        ):
            np.testing.assert_array_equal(X, X_again)
            np.testing.assert_array_equal(answers.codes, again.codes)


def test_a_text_is_copied_once_and_again_when_it_changes(folder: Path, own_cache: Path) -> None:
    write_parts(drawn_table(), folder, ".csv", 1)
    first = open_shards(folder, rows_at_once=8)
    [before] = (own_cache / "shards").glob("*/*.parquet")
    stamp = before.stat().st_mtime_ns
    again = open_shards(folder, rows_at_once=8, labels=["candidates"])
    assert (again.sizes, again.label_names) == (first.sizes, first.label_names)
    assert before.stat().st_mtime_ns == stamp
    open_shards(folder, rows_at_once=8, text=["red"])
    assert len(list((own_cache / "shards").glob("*/*.parquet"))) == 2
    with (folder / "part-0.csv").open("a") as file:
        file.write("1.5,2.5,moon\n")
    again = open_shards(folder, rows_at_once=8)
    assert again.n_rows == N + 1 and "moon" in again.label_names
    assert not before.exists()


def test_a_copy_that_fails_leaves_nothing(folder: Path, own_cache: Path) -> None:
    (folder / "a.jsonl").write_text('{"red": 1, "positives": "sky"}\n' * 9 + "{\n")
    with refused("line 10 of a.jsonl must be an object of json"):
        open_shards(folder, rows_at_once=2)
    assert not list((own_cache / "shards").glob("*/*"))


def test_a_cache_that_cannot_be_written_is_named(folder: Path, own_cache: Path) -> None:
    write_parts(drawn_table(), folder, ".csv", 1)
    own_cache.write_text("a file")
    with refused("part-0.csv is copied to the cache.*Set COMES_CACHE to another folder"):
        open_shards(folder)


def test_processes_that_open_text_together_copy_it_once(folder: Path, own_cache: Path) -> None:
    write_parts(drawn_table(), folder, ".csv", 1)
    with ProcessPoolExecutor(3, get_context("spawn")) as pool:
        assert set(pool.map(count_rows, [folder] * 6)) == {N}
    assert len(list((own_cache / "shards").glob("*/*"))) == 1


def count_rows(folder: Path) -> int:
    return open_shards(folder, rows_at_once=8).n_rows


def test_a_file_that_has_changed_since_is_an_error(folder: Path) -> None:
    for ending in (".jsonl", ".parquet"):
        write_parts(drawn_table(20), folder, ending, 1)
        shards = open_shards(str(folder / f"*{ending}"))
        write_parts(drawn_table(20, seed=1), folder, ending, 1)
        with refused(f"part-0{ending} has changed. Open the shards again"):
            shards.read(0)


def test_many_labels_are_sparse_in_every_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comes.datasets.dataset.MANY_PAIRS", 50)
    monkeypatch.setattr("comes.datasets.dataset.FEW", 0.5)
    table = pd.DataFrame({"red": np.arange(20.0), "positives": [f"l{k % 12}" for k in range(20)]})
    write_parts(table, folder, ".parquet", 2)
    shards = open_shards(folder, rows_at_once=9)
    assert shards.is_sparse and shards.sizes == (7, 3, 7, 3)
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
        ({"a.csv": "red,candidates\n"}, "a.csv has columns but no rows"),
        ({"a.parquet": "not parquet"}, "a.parquet cannot be read: "),
        ({"a.npz": "x"}, "has no shards; .* write LIBSVM and .npz files as Parquet first"),
        ({"a.tar": "x"}, "has no shards; .* turn pictures into features"),
        ({"a.jsonl": "[1]\n"}, "line 1 of a.jsonl must be an object"),
        ({"a.jsonl": "{\n"}, "line 1 of a.jsonl must be an object of json"),
        (
            {"a.jsonl": '{"a": 1, "positives": "y"}\n{"a": "x", "positives": "y"}\n'},
            "a.jsonl cannot be read: .*column a",
        ),
        ({"a.csv": "red,red,positives\n1,2,a\n"}, "a.csv .*: column 'red' occurs more than once"),
        ({"a.csv": "red,candidates\n1,sky\n2\n"}, "'candidates' is empty .first: row 3"),
        (
            {"a.csv": "red,candidates\n1,2,sky\n3,4,sea\n"},
            "a.csv cannot be read as csv: Length of header or names does not match",
        ),
        ({"a.csv": 'red,candidates\n1,sky\n2,"sea\n3,sky\n'}, "EOF inside string"),
        (
            {"a.csv": b"red,candidates\n1,sky\n2,\0\0\n"},
            "a.csv cannot be read as csv: it holds NUL",
        ),
        ({"a.csv": b"red,candidates\n1,s\xe9\n"}, "a.csv is not text in UTF-8"),
    ]
    for k, (files, message) in enumerate(cases):
        (folder / str(k)).mkdir()
        for name, content in files.items():
            content = content.encode() if isinstance(content, str) else content
            (folder / str(k) / name).write_bytes(content)
        with refused(message):
            open_shards(folder / str(k))


def test_fields_that_do_not_apply_are_refused(folder: Path) -> None:
    write_parts(drawn_table(), folder, ".parquet")
    with refused("'n_features' does not apply to shards"):
        open_shards(folder, n_features=3)
    with refused("rows_at_once must be at least 1; got 0"):
        open_shards(folder, rows_at_once=0)


def test_cells_of_csv_files_are_read_as_in_one_table(folder: Path) -> None:
    rows = [
        ("001", "NA", "1,5", "+1.5", "True", "007", " 3 ", "1e-3", "2024-05-01"),
        ("002", "sky", "2,25", "-2", "False", "010", "4", "N/A", "2024-05-02"),
        ("003", "sky;NA", "1.234,5", "", "True", "", "5", "inf", "2024-05-03"),
    ]
    names = ["item", "positives", "comma", "plus", "flag", "code", "blank", "gap", "when"]
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(folder / "a.csv", index=False)
    whole = open_dataset(folder / "a.csv", separator=";")
    shards = open_shards(folder, rows_at_once=2, separator=";")
    X, answers = joined(shards)
    assert shards.label_names == whole.label_names == ["NA", "sky"]
    assert whole.answers is not None and (answers.codes == whole.answers.codes).all()
    assert [item for block in shards for item in block.items or ()] == ["001", "002", "003"]
    pd.testing.assert_frame_equal(X, whole.X, check_dtype=False)  # type: ignore[arg-type]


def test_names_of_columns_may_have_dots_and_an_index_a_name(folder: Path) -> None:
    table = drawn_table().rename(columns={"red": "a.b", "blue": "a"})
    write_parts(table, folder, ".csv")
    text = (folder / "part-0.csv").read_text()
    (folder / "part-0.csv").write_text("\n\n" + text)
    (folder / "parquet").mkdir()
    photos = [f"p{k}" for k in range(N)]
    table.assign(photo=photos).set_index("photo").to_parquet(folder / "parquet/a.parquet")
    for source in (str(folder / "*.csv"), folder / "parquet"):
        shards = open_shards(source, rows_at_once=7, feature_columns=["a.b", "a"])
        X, _ = joined(shards)
        np.testing.assert_array_equal(X, table[["a.b", "a"]].to_numpy(np.float32))
    assert open_shards(folder / "parquet", item="photo").load(0).items == photos


def test_decimal_commas_hold_for_blocks_that_do_not_show_them(folder: Path) -> None:
    cells = ["1,5", "2,5", "1.234", "7", "1.5"]
    table = pd.DataFrame({"size": cells, "candidates": ["sky", "sea"] * 2 + ["sky"]})
    table.to_csv(folder / "a.csv", index=False)
    with refused("a.csv: column 'size' must hold numbers.* got '1.5' at row 6"):
        open_shards(folder, rows_at_once=2)
    table[:4].to_csv(folder / "a.csv", index=False)
    shards = open_shards(folder, rows_at_once=2)
    assert [shards.read(k)[0].ravel().tolist() for k in (0, 1)] == [[1.5, 2.5], [1234.0, 7.0]]


def test_fields_that_come_later_in_a_jsonl_file_are_not_lost(folder: Path) -> None:
    lines = ['{"red": 1, "positives": ["sky"]}', '{"red": 2.5, "positives": []}']
    (folder / "a.jsonl").write_text("\n\n".join(lines))
    X, answers = joined(open_shards(folder, rows_at_once=1))
    assert np.asarray(X).ravel().tolist() == [1.0, 2.5] and answers.count()["yes"].sum() == 1
    (folder / "a.jsonl").write_text("\n".join([*lines, '{"red": 1, "blue": 2}']))
    with refused("a.jsonl has 'blue', unlike the first"):
        open_shards(folder, rows_at_once=1)


def test_nearly_equal_names_are_told_once(folder: Path) -> None:
    (folder / "a.csv").write_text("red,candidates\n1.5,sky;Sky\n2.5,sky\n")
    with pytest.warns(ComesWarning, match="case or blanks"):
        shards = open_shards(folder)
    shards.read(0)
