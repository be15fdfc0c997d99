"""`comes split`: nothing lost, nothing in both files, lines as they were."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from comes.answers import Answers
from comes.datasets import Dataset, ReadOptions, make_scenes, open_dataset, write_dataset
from comes.errors import ComesError, ComesWarning
from comes.workflows.split import draw_test_rows, link_rows, split_data
from command_line import Run, command_runner

RNG = np.random.default_rng(0)
READING = ReadOptions(labels=["labels"], item="id")
TEXTS = ["sky;sea", "sea", '"NA"', "(none)", '"a ""b"";sky"', '"two\nlines"']


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return command_runner(monkeypatch, capsys)


def files_of(split: dict[str, Any]) -> list[Path]:
    return [Path(split[side]["file"]) for side in ("train", "test")]


def rows_of(split: dict[str, Any]) -> list[int]:
    return [split[side]["rows"] for side in ("train", "test")]


def write_photos(path: Path, n: int = 60, end: str = "\r\n") -> list[str]:
    """Write a csv with quotes, line ends in cells, and numbers written in odd ways."""
    rows = [f"p{k:03},{k}.50,{'1e-3' if k % 2 else '.001'},{TEXTS[k % 6]}" for k in range(n)]
    path.write_bytes(("\ufeff" + end.join(["id,red,blue,labels", *rows]) + end).encode())
    return rows


def test_lines_are_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    rows = write_photos(path)
    before = path.read_bytes()
    split = split_data(path, test_share=0.25, reading=READING)
    train, test = files_of(split)
    assert (train.name, test.name) == ("photos-train.csv", "photos-test.csv")
    assert rows_of(split) == [45, 15] and path.read_bytes() == before
    texts = [file.read_bytes().decode("utf-8-sig") for file in files_of(split)]
    found = []
    for text in texts:
        head, *records = text.split("\r\n")
        assert head == "id,red,blue,labels" and records.pop() == ""
        found += records
    assert sorted(found) == sorted(rows)
    whole = open_dataset(path, READING)
    for file in files_of(split):
        part = open_dataset(file, READING)
        assert part.items is not None and whole.items is not None
        place = [whole.items.index(name) for name in part.items]
        assert place == sorted(place)  # in the order of the file
        own = whole.take(place).known_candidates()
        columns = [whole.label_names.index(name) for name in part.label_names]
        np.testing.assert_array_equal(part.known_candidates(), own[:, columns])


def test_lines_end_as_they_did_and_are_packed_alike(tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        rows = [f"p{k:03},{k}.50,caf\u00e9\u2028" for k in range(20)]
        path = tmp_path / f"photos{len(end)}{ord(end[0])}.csv"
        path.write_bytes(end.join(["id,red,labels", *rows]).encode())
        split = split_data(path, reading=READING)
        parts = [file.read_bytes().decode().split(end)[1:] for file in files_of(split)]
        found = [row.strip("\n") for part in parts for row in part if row]
        assert sorted(found) == rows, repr(end)
    packed = tmp_path / "photos.csv.gz"
    packed.write_bytes(gzip.compress("\n".join(["id,red,labels", *rows]).encode()))
    texts = []
    for number in (1, 2):
        split = split_data(packed, tmp_path / f"{number}.csv.gz", reading=READING)
        texts.append(files_of(split)[1].read_bytes())
    assert texts[0] == texts[1]


def test_a_stray_quotation_mark_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("\n".join(["id,red,labels", *(f'p{k},{k},sea 5"' for k in range(9))]))
    with pytest.raises(ComesError, match=r"has 9 rows in 5 lines. Convert it to .parquet"):
        split_data(path, reading=READING)
    assert [file.name for file in tmp_path.iterdir()] == ["photos.csv"]


def test_the_same_seed_splits_alike_and_another_does_not(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    write_photos(path)
    texts = []
    for number, seed in enumerate((0, 0, 1)):
        (tmp_path / str(number)).mkdir()
        split_data(path, tmp_path / str(number), seed=seed, reading=READING)
        texts.append((tmp_path / str(number) / "photos-test.csv").read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_groups_and_copies_stay_together(tmp_path: Path) -> None:
    n = 200
    table = pd.DataFrame({"red": RNG.normal(size=n), "person": [f"p{k % 40}" for k in range(n)]})
    table["has_sky"] = RNG.integers(0, 2, n)
    table.loc[5, "person"] = None  # a group of its own
    table.loc[[7, 8], "red"] = 0.5  # links p7 with p8
    table.to_parquet(tmp_path / "visits.parquet")
    reading = ReadOptions(labels=["has_sky"])
    with pytest.warns(ComesWarning, match="'person' is empty in 1 rows"):
        split = split_data(tmp_path / "visits.parquet", groups="person", reading=reading)
    train, test = (pq.read_table(file).to_pandas() for file in files_of(split))
    assert not set(train["person"].dropna()) & set(test["person"].dropna())
    assert not set(train["red"]) & set(test["red"])
    assert {"p7", "p8"} <= set(train["person"]) or {"p7", "p8"} <= set(test["person"])
    both, order = pd.concat([train, test]), ["red", "person"]
    both, table = (t.sort_values(order, ignore_index=True) for t in (both, table))
    pd.testing.assert_frame_equal(both, table)
    assert split["train"]["groups"] + split["test"]["groups"] == 40 and split["copies"] == 1
    assert abs(split["test"]["rows"] - 40) <= 5


def test_answers_about_an_item_stay_together(tmp_path: Path) -> None:
    lines = [f"i{k // 3},l{k % 3},{('no', 'yes', 'maybe')[k % 3]},anna" for k in range(90)]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["item,label,answer,person", *lines]))
    split = split_data(path, test_share=0.3)
    parts = [file.read_text().split()[1:] for file in files_of(split)]
    assert sorted(parts[0] + parts[1]) == sorted(lines)
    assert rows_of(split) == [21, 9] and [len(part) for part in parts] == [63, 27]
    items = [{line.split(",")[0] for line in part} for part in parts]
    assert not items[0] & items[1]


def list_pairs(dataset: Dataset) -> list[tuple[bytes, bytes]]:
    """Return the features and answers of every row."""
    codes = dataset.known_answers().codes
    return [(x.tobytes(), said.tobytes()) for x, said in zip(dataset.X, codes, strict=True)]


def test_answers_of_every_kind_survive_in_archives(tmp_path: Path) -> None:
    for ending, n_codes in ((".npz", 4), (".mat", 3)):
        codes = RNG.integers(0, n_codes, (40, 3)).astype(np.int8)
        said = Answers.from_codes(codes, "answers", ["a", "b", "c"])
        whole = Dataset(RNG.normal(size=(40, 2)), ["a", "b", "c"], answers=said)
        path = tmp_path / f"data{ending}"
        write_dataset(whole, path)
        split = split_data(path)
        parts = [open_dataset(file) for file in files_of(split)]
        found = [pair for part in parts for pair in list_pairs(part)]
        assert sorted(found) == sorted(list_pairs(open_dataset(path))), ending


def test_lines_of_libsvm_keep_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    lines = [f"{k % 3} 0:{k} 1:1" for k in range(20)]
    path.write_text("\n".join(["20 5 3", *lines, ""]))
    split = split_data(path, test_share=0.25)
    train, test = files_of(split)
    assert test.read_text().startswith("5 5 3\n")
    assert open_dataset(train).X.shape == (15, 5)


def test_packed_tables_and_spreadsheets_are_split(tmp_path: Path) -> None:
    rows = [f"00{k};{k},5;{('sea', 'sky/sea')[k % 2]}" for k in range(20)]
    packed = tmp_path / "photos.csv.gz"
    packed.write_bytes(gzip.compress("\n".join(["id;red;labels", *rows]).encode()))
    reading = ReadOptions(labels=["labels"], item="id", separator="/")
    split = split_data(packed, reading=reading)
    assert files_of(split)[1].name == "photos-test.csv.gz"
    parts = [gzip.decompress(file.read_bytes()).decode().split() for file in files_of(split)]
    assert sorted(parts[0][1:] + parts[1][1:]) == sorted(rows)
    sheet = tmp_path / "photos.xlsx"
    table = pd.DataFrame({"id": [f"00{k}" for k in range(20)], "red": np.arange(20) / 3})
    table["labels"] = [TEXTS[k % 2] for k in range(20)]
    table.to_excel(sheet, index=False)
    split = split_data(sheet, reading=ReadOptions(labels=["labels"], item="id"))
    both = [open_dataset(file, labels=["labels"], item="id") for file in files_of(split)]
    names = [name for part in both for name in part.items or ()]
    assert sorted(names) == sorted(table["id"])
    assert pd.read_excel(files_of(split)[1])["red"].dtype == float
    values = dict(zip(names, [x for part in both for x in part.X["red"]], strict=True))
    np.testing.assert_allclose([values[name] for name in table["id"]], table["red"])


def test_numbers_link_rows_directly_or_by_others() -> None:
    copies = np.array([0, 1, 1, 2, 3, 4])
    linked = link_rows(copies, [(0, "x"), (1, "x"), (3, "y"), (4, "y")])
    assert linked[0] == linked[1] == linked[2] and linked[3] == linked[4]
    assert len(set(linked.tolist())) == 3


def test_every_row_may_be_drawn_and_the_share_is_met() -> None:
    together = np.repeat(np.arange(50), RNG.integers(1, 6, 50))
    counts = np.zeros(len(together))
    for seed in range(400):
        rows = draw_test_rows(together, 0.2, seed)
        assert abs(len(rows) - 0.2 * len(together)) <= 2
        assert not set(together[rows]) & set(np.delete(together, rows))
        counts[rows] += 1
    assert counts.min() > 40 and counts.max() < 130  # 80 expected


def test_two_groups_make_two_files_and_one_cannot_be_split() -> None:
    for sizes in ((9, 1), (1, 9), (5, 5)):
        assert 0 < len(draw_test_rows(np.repeat([0, 1], sizes), 0.5, seed=0)) < 10, sizes
    with pytest.raises(ComesError, match="all 4 rows belong together"):
        draw_test_rows(np.zeros(4, dtype=int), 0.5, seed=0)


def test_features_elsewhere_need_names_of_items(tmp_path: Path) -> None:
    labels = pd.DataFrame({"has_sky": [0, 1] * 10})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    np.savez(tmp_path / "X.npz", X=np.repeat(RNG.normal(size=(10, 2)), 2, axis=0))
    reading = ReadOptions(labels=["has_sky"], features=tmp_path / "X.npz")
    with pytest.raises(ComesError, match="matched with their features by position"):
        split_data(tmp_path / "labels.csv", reading=reading)
    items = np.array([f"i{k}" for k in range(20)])
    labels.insert(0, "item", items)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    pairs = np.repeat(RNG.normal(size=(10, 2)), 2, axis=0)  # every row has a copy
    np.savez(tmp_path / "X.npz", X=pairs, items=items)
    split = split_data(tmp_path / "labels.csv", reading=reading)
    assert split["copies"] == 10 and rows_of(split) == [16, 4]
    assert len(open_dataset(files_of(split)[1], reading).X) == 4


def test_a_name_is_split_into_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("comes.datasets.split.open_dataset", lambda *_: make_scenes(n=50))
    split = split_data("scenes:train")
    train, test = files_of(split)
    assert train.name == "scenes-train-train.npz" and rows_of(split) == [40, 10]
    assert len(open_dataset(test)) == 10


def test_the_command_says_what_went_where(run: Run, tmp_path: Path) -> None:
    table = pd.DataFrame({"red": RNG.normal(size=50), "place": [k % 10 for k in range(50)]})
    table["is_sky"], table["is_rare"] = (
        [k // 10 % 2 for k in range(50)],
        [int(k == 7) for k in range(50)],
    )
    table.to_csv(tmp_path / "visits.csv", index=False)
    command = ("split", "visits.csv", "--relevant", "is_*", "--groups", "place")
    shown = run(*command)
    assert "train: 40 rows, 8 groups: " in shown.stdout
    assert "is_sky 16 + 4" in " ".join(shown.stdout.split())
    assert "Relevant in no row of the t" in shown.stderr and "'is_rare'" in shown.stderr
    assert "--ignore" in shown.stdout
    assert "exists already" in run(*command, code=1).stderr
    found = json.loads(run(*command, "--json", "-o", "a").stdout)
    assert found["train"]["rows"] == 40 and found["test"]["file"].endswith("a-test.csv")
    assert json.loads(run(*command, "--json", "-o", "a.csv").stdout) == found
    assert len(run(*command, "-o", "a").stdout.splitlines()) <= 12
    assert found["labels"][0] == {"label": "is_sky", "relevant in train": 16, "relevant in test": 4}


def test_what_cannot_be_split_says_why(run: Run, tmp_path: Path) -> None:
    write_photos(tmp_path / "photos.csv")
    before = (tmp_path / "photos.csv").read_bytes()
    for options, message in (
        (("--test-share", "1"), "must lie between 0 and 1; got 1"),
        (("--groups", "person"), "there is no column 'person'"),
        (("-o", "b.parquet"), "must end in .csv"),
        (("-o", "no/"), "no is not a folder"),
    ):
        command = ("split", "photos.csv", "--labels", "labels", "--item", "id", *options)
        assert message in run(*command, code=1).stderr, options
        assert [file.name for file in tmp_path.iterdir()] == ["photos.csv"], options
    assert (tmp_path / "photos.csv").read_bytes() == before
    (tmp_path / "a.arff").write_text("@relation x\n")
    with pytest.raises(ComesError, match=r"read, but not written. Convert it to .npz"):
        split_data(tmp_path / "a.arff")
    (tmp_path / "a.svm").write_text("0 1:1\n1 1:2\n")
    with pytest.raises(ComesError, match="groups are a column of a table; got 'person'"):
        split_data(tmp_path / "a.svm", groups="person")
