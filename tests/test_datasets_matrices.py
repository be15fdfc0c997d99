"""Matrices in .mat, LIBSVM and ARFF files, in every form that is around."""

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from comes.answers import Answers, State
from comes.answers.matrix import Kind
from comes.datasets import Dataset, open_dataset, read_features, write_dataset
from comes.datasets.matrices import read_label_xml
from refusals import refused

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
CANDIDATES = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 1]])
RELEVANT = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])


def write_v73(path: Path, variables: dict[str, Any]) -> None:
    """Write as MATLAB 7.3 does: HDF5 behind a header, by columns, sparse matrices as groups."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            if sparse.issparse(values):
                columns = sparse.csc_array(values)
                group = file.create_group(name)
                group.attrs["MATLAB_sparse"] = np.uint64(values.shape[0])
                group["jc"] = columns.indptr.astype(np.uint64)
                if columns.nnz:  # MATLAB leaves these out of an empty matrix
                    group["data"], group["ir"] = columns.data, columns.indices.astype(np.uint64)
            else:
                file[name] = np.asarray(values).T
    with path.open("r+b") as handle:
        handle.write(b"MATLAB 7.3 MAT-file")


def test_every_form_of_a_mat_file_gives_the_same_data(tmp_path: Path) -> None:
    names = ("partial_labels", "candidate_labels", "partial_target")
    either = (False, True)
    path = tmp_path / "photos.mat"
    for name, *form in itertools.product(names, either, either, either, either):
        v73, is_sparse, is_transposed, is_signed = form
        target, partial = (
            store(labels, is_sparse, is_transposed, is_signed) for labels in (RELEVANT, CANDIDATES)
        )
        content = {"data": X, "target": target, name: partial}
        write_v73(path, content) if v73 else savemat(path, content)
        dataset = open_dataset(path)
        np.testing.assert_array_equal(dataset.X, X, f"{name} {form}")
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES == 1, f"{name} {form}")
        np.testing.assert_array_equal(dataset.relevant, RELEVANT == 1, f"{name} {form}")
        assert dataset.label_names == ["0", "1", "2", "3"]


def store(labels: np.ndarray, is_sparse: bool, is_transposed: bool, is_signed: bool) -> Any:
    """Return labels as they are stored in a file of one form."""
    values = 2 * labels - 1 if is_signed else labels
    values = (values.T if is_transposed else values).astype(float)
    return sparse.csc_array(values) if is_sparse else values


def test_features_with_few_non_zeros_are_csr(tmp_path: Path) -> None:
    for v73 in (False, True):
        for is_sparse in (False, True):
            data = np.zeros((3, 100))
            data[1, 7], data[2, 99] = 3, 0.5
            content = {"data": sparse.csc_array(data) if is_sparse else data, "target": RELEVANT.T}
            path = tmp_path / "counts.mat"
            write_v73(path, content) if v73 else savemat(path, content)
            dataset = open_dataset(path)
            assert sparse.issparse(dataset.X) and dataset.X.format == "csr" and dataset.X.nnz == 2
            np.testing.assert_array_equal(dataset.X.toarray(), data)
            assert dataset.candidates is None


def test_an_empty_sparse_matrix_of_matlab(tmp_path: Path) -> None:
    nothing = sparse.csc_array((4, 3))
    write_v73(tmp_path / "none.mat", {"data": X, "target": nothing, "partial_labels": RELEVANT.T})
    dataset = open_dataset(tmp_path / "none.mat")
    assert not dataset.known_relevant().any()


def test_a_foreign_mat_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"data": X}, "with the matrices 'data', 'target'.*: it has 'data'"),
        ({"features": X, "target": RELEVANT}, "it has 'features', 'target'"),
        ({"data": X, "target": np.zeros((5, 4))}, r"3 rows of data; .* shape \(5, 4\)"),
        ({"data": X, "target": RELEVANT + 1}, r"0 and 1, or -1 and 1, .*; got \[1, 2\]"),
        ({"data": X, "target": RELEVANT - 0.5}, "must be 0 and 1, or -1 and 1"),
        (
            {"data": X, "partial_labels": CANDIDATES, "candidate_labels": CANDIDATES},
            "both 'partial_labels' and 'candidate_labels'",
        ),
        ({"data": X, "target": RELEVANT, "partial_labels": 1 - CANDIDATES}, "outside their cand"),
        (
            {"data": np.zeros((3, 2, 2)), "target": RELEVANT},
            "bad.mat .*: 'data' is no matrix of numbers",
        ),
        ({"data": X, "target": RELEVANT - (CANDIDATES == 0)}, "must be 0 and 1, or -1 and 1"),
        *(
            ({"data": X, "partial_labels": np.where(CANDIDATES, 1, other).T}, "must be 0 and 1, or")
            for other in (np.nan, 0.5, -5.0)
        ),
    ]
    for v73 in (False, True):
        for content, message in cases:
            path = tmp_path / "bad.mat"
            write_v73(path, content) if v73 else savemat(path, content)
            with refused(message):
                open_dataset(path)


def test_text_in_place_of_numbers_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "text.mat", {"data": "hello", "target": RELEVANT})
    with refused("text.mat .*: 'data' is no matrix of numbers"):
        open_dataset(tmp_path / "text.mat")
    cells = np.array([["a", "b"], ["c", "d"], ["e", "f"]], dtype=object)
    savemat(tmp_path / "cells.mat", {"data": cells, "target": RELEVANT})
    with refused("cells.mat .*: 'data' is no matrix of numbers"):
        open_dataset(tmp_path / "cells.mat")


def test_a_truncated_mat_file_is_one_sentence(tmp_path: Path) -> None:
    for v73 in (False, True):
        path = tmp_path / "short.mat"
        content = {"data": np.random.default_rng(0).random((50, 50)), "target": np.eye(50)}
        write_v73(path, content) if v73 else savemat(path, content)
        whole = path.read_bytes()
        for share in (0.2, 0.5, 0.9):
            path.write_bytes(whole[: int(len(whole) * share)])
            with refused("short.mat"):
                open_dataset(path)


def test_data_is_turned_only_if_it_must_be(tmp_path: Path) -> None:
    savemat(tmp_path / "t.mat", {"data": np.zeros((4, 3)) + 1, "target": np.eye(3, 4)})
    assert open_dataset(tmp_path / "t.mat").X.shape == (4, 3)  # as many features as labels
    savemat(tmp_path / "t.mat", {"data": X.T, "target": RELEVANT, "partial_labels": CANDIDATES})
    np.testing.assert_array_equal(open_dataset(tmp_path / "t.mat").X, X)


def test_names_of_labels_in_every_form(tmp_path: Path) -> None:
    names = ["sky", "sea \xe9", "a", "b"]
    path = tmp_path / "names.mat"
    savemat(path, {"data": X, "target": RELEVANT, "label_names": np.array(names, dtype=object)})
    assert open_dataset(path).label_names == names
    savemat(
        path, {"data": X, "target": RELEVANT, "label_names": np.array(["sky", "a", "b", "c d"])}
    )
    assert open_dataset(path).label_names == ["sky", "a", "b", "c d"]  # a padded matrix of letters
    write_v73(path, {"data": X, "target": RELEVANT})
    with h5py.File(path, "r+") as file:
        cells = file.create_dataset("label_names", (1, 4), dtype=h5py.ref_dtype)
        for j, name in enumerate(names):
            letters = np.frombuffer(name.encode("utf-16-le"), dtype=np.uint16)
            cells[0, j] = file.create_dataset(f"#refs#/{j}", data=letters[:, None]).ref
    assert open_dataset(path).label_names == names
    savemat(path, {"data": X, "target": RELEVANT, "label_names": np.array(names[:2], dtype=object)})
    with refused(r"there are 3 rows and 2 labels, .* got \(3, 4\)"):
        open_dataset(path)


def test_large_counts_keep_their_digits(tmp_path: Path) -> None:
    data = np.zeros((3, 100), dtype=np.int64)
    data[1, 7] = 123456789
    savemat(tmp_path / "counts.mat", {"data": data, "target": RELEVANT})
    assert open_dataset(tmp_path / "counts.mat").X[1, 7] == 123456789


def written(folder: Path, text: str, name: str = "photos.arff") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def libsvm(folder: Path, text: str, name: str = "pages.svm") -> Path:
    return written(folder, text, name)


def test_labels_are_the_truth_named_by_their_numbers(tmp_path: Path) -> None:
    dataset = open_dataset(libsvm(tmp_path, "1,10 1:0.5 3:2 # a comment\n 2:1\n2 3:-1\n"))
    assert sparse.issparse(dataset.X)
    assert dataset.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, -1]]
    assert dataset.label_names == ["1", "2", "10"]
    assert dataset.relevant is not None and dataset.candidates is None
    assert dataset.relevant.astype(int).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_the_list_of_labels_can_be_fixed(tmp_path: Path) -> None:
    path = libsvm(tmp_path, "1,3 1:1\n0 2:1\n")
    dataset = open_dataset(path, label_names=["0", "1", "2", "3"])
    assert dataset.relevant is not None
    assert dataset.relevant.astype(int).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    with refused("'1' occurs in a set but is not one of the label names"):
        open_dataset(path, label_names=["0", "2"])


def test_a_first_line_of_sizes_counts_from_0(tmp_path: Path) -> None:
    """The form of the extreme classification repository."""
    dataset = open_dataset(libsvm(tmp_path, "2 5 4\n0,3 0:1\n1 4:2\n", "train.txt"))
    assert dataset.X.shape == (2, 5)
    assert dataset.X.toarray()[1].tolist() == [0, 0, 0, 0, 2]
    assert dataset.label_names == ["0", "1", "2", "3"]
    with refused("first line of train.txt says 9 rows; got 1"):
        open_dataset(libsvm(tmp_path, "9 5 4\n0 0:1\n", "train.txt"))


def test_labels_can_be_candidates_or_complementary(tmp_path: Path) -> None:
    path = libsvm(tmp_path, "1,2 1:1\n2 1:2\n")
    marked = np.array([[True, True], [False, True]])
    np.testing.assert_array_equal(open_dataset(path, labels_are="candidates").candidates, marked)
    np.testing.assert_array_equal(
        open_dataset(path, labels_are="complementary").candidates, ~marked
    )
    with refused("must be 'candidates', 'complementary' or 'positives'; got 'both'"):
        open_dataset(path, labels_are="both")


def test_a_bad_libsvm_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[str] = ["a,b 1:2\n", "1 2\n", "1 2:x\n", "\x00\x01\n", "1 3:1 2:1:1\n"]
    for text in cases:
        with refused("pages.svm cannot be read as LIBSVM"):
            open_dataset(libsvm(tmp_path, text))

    (tmp_path / "mark.svm").write_bytes(b"\xef\xbb\xbf1 1:2\n")
    assert open_dataset(tmp_path / "mark.svm").label_names == ["1"]
    with refused("cannot be read as LIBSVM"):
        open_dataset(libsvm(tmp_path, "1 99999999999999999999:1\n"))


def test_large_label_numbers_are_not_rounded(tmp_path: Path) -> None:
    dataset = open_dataset(libsvm(tmp_path, "1000001,3 1:0.5\n1000002 1:0.2\n"))
    assert dataset.label_names == ["3", "1000001", "1000002"]


def test_sizes_and_names_that_are_given_come_first(tmp_path: Path) -> None:
    assert open_dataset(libsvm(tmp_path, "1 5 4\n0 0:1\n")).X.shape == (1, 5)
    names = ["0", "1", "2", "3", "4"]
    assert open_dataset(libsvm(tmp_path, "1 5 4\n0 0:1\n"), label_names=names).label_names == names
    dataset = open_dataset(libsvm(tmp_path, "1,2 1:1\n"), n_features=7)
    assert dataset.X.shape == (1, 7)
    assert open_dataset(libsvm(tmp_path, "1 1:1\n"), labels_are="complementary").from_complementary

    assert read_features(libsvm(tmp_path, "1 1:1\n"), n_features=5)[0].shape == (1, 5)


def test_features_are_counted_from_1_unless_the_file_says_how_many(tmp_path: Path) -> None:
    assert open_dataset(libsvm(tmp_path, "1 2:1\n")).X.toarray().tolist() == [[0, 1]]
    with refused("counted from 1 .from 0 after a first line"):
        open_dataset(libsvm(tmp_path, "1 0:1 2:1\n"))


XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="sky"></label><label name="deep sea"><label name="coral"/></label>
</labels>"""
DENSE = """% a comment
@relation photos

@attribute size numeric
@attribute 'deep sea' {0,1}
@attribute sky {0,1}
@attribute coral {0,1}
@attribute count integer
@data
1.5,0,1,0,3
2.5,1,0,1,4
"""
SPARSE = """@relation photos
@attribute size numeric
@attribute sky {0,1}
@attribute 'deep sea' {0,1}
@attribute coral {0,1}
@attribute tall {0,1}
@data
{0 2.5, 1 1}
{}
{2 1, 4 1}
"""


def test_mulan_labels_are_named_by_the_xml_and_in_its_order(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    dataset = open_dataset(written(tmp_path, DENSE))
    assert dataset.label_names == ["sky", "deep sea", "coral"]
    assert dataset.relevant is not None
    assert dataset.relevant.astype(int).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert list(dataset.X.columns) == ["size", "count"]
    assert dataset.X.to_numpy().tolist() == [[1.5, 3.0], [2.5, 4.0]]


def test_sparse_rows_stay_sparse_and_may_be_empty(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    for name in ("photos.arff", "photos-train.arff", "photos-train-sparse.arff"):
        dataset = open_dataset(written(tmp_path, SPARSE, name))
        assert sparse.issparse(dataset.X) and dataset.X.nnz == 2
        assert dataset.X.toarray().tolist() == [[2.5, 0.0], [0.0, 0.0], [0.0, 1.0]]
        assert dataset.relevant is not None
        assert dataset.relevant.astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_meka_counts_the_labels_in_the_relation(tmp_path: Path) -> None:
    for count, names in (("2", ["a", "b"]), ("-1", ["x"])):
        text = f"@relation 'music: -C {count} -split 10'\n"
        text += "".join(f"@attribute {name} {{0,1}}\n" for name in "abx") + "@data\n1,0,1\n0,0,1\n"
        dataset = open_dataset(written(tmp_path, text))
        assert dataset.label_names == names
        assert dataset.X.shape == (2, 3 - len(names))


def test_nominal_values_become_numbers(tmp_path: Path) -> None:
    """An entry that a sparse row leaves out is the first value of its attribute."""
    head = """@relation 'r: -C -2'
@attribute colour {red,green,blue}
@attribute big {NO,YES}
@attribute level {1,0,5}
@attribute tall {FALSE,TRUE}
@attribute wide {yes,no}
@data
"""
    for is_sparse in (False, True):
        rows = (
            "{}\n{0 blue, 1 YES, 2 5, 3 TRUE, 4 no}\n"
            if is_sparse
            else ("red,NO,1,FALSE,yes\nblue,YES,5,TRUE,no\n")
        )
        dataset = open_dataset(written(tmp_path, head + rows))
        X = dataset.X.toarray() if is_sparse else dataset.X.to_numpy()
        assert sparse.issparse(dataset.X) == is_sparse
        assert X.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 1, 5]]
        assert dataset.relevant is not None
        assert dataset.relevant.tolist() == [[False, True], [True, False]]
        if not is_sparse:
            names = ["colour=red", "colour=green", "colour=blue", "big", "level"]
            assert list(dataset.X.columns) == names


def test_labels_can_be_named_and_text_ignored(tmp_path: Path) -> None:
    text = """@relation r
@attribute id string
@attribute size real
@attribute maybe_sky {0,1}
@attribute maybe_sea {0,1}
@data
'one, two',1,1,1
three,2,1,0
"""
    path = written(tmp_path, text)
    options: dict[str, Any] = {"labels": ["maybe_*"]}
    with refused("'id' of photos.arff is of type string.*--ignore"):
        open_dataset(path, **options)
    dataset = open_dataset(path, ignore=["id"], **options)
    assert dataset.relevant is None and dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, True], [True, False]]
    truth = open_dataset(path, ignore=["id"], relevant=["maybe_*"], labels_are="candidates")
    np.testing.assert_array_equal(truth.candidates, dataset.candidates)


def test_old_files_are_not_all_utf8(tmp_path: Path) -> None:
    text = "@relation 'r: -C 1'\n@attribute caf\xe9 {0,1}\n@attribute x numeric\n@data\n1,2\n"
    (tmp_path / "old.arff").write_bytes(text.encode("latin-1"))
    assert open_dataset(tmp_path / "old.arff").label_names == ["caf\xe9"]

    written(tmp_path, XML, "photos.xml")
    (tmp_path / "photos.arff").write_bytes(b"\xef\xbb\xbf" + DENSE.encode())
    assert len(open_dataset(tmp_path / "photos.arff")) == 2


def test_a_bad_arff_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("hello\n", "cannot be read as ARFF: "),
        (DENSE[:60], "cannot be read as ARFF: "),
        (DENSE[:-8], "cannot be read as ARFF: .*row 1"),
        (DENSE.replace("2.5,1", "2.5,7"), "cannot be read as ARFF"),
        (DENSE.replace("1.5", "much"), "cannot be read as ARFF"),
        (DENSE.replace("1.5,0", "1.5,?"), "label 'deep sea' of photos.arff should be 0 or 1"),
        (DENSE.replace("count", "size"), "cannot be read as ARFF: .*name"),
        (DENSE.replace("sky", "sea"), "photos.xml names 1 labels that photos.arff lacks: 'sky'"),
        (DENSE.replace("{0,1}", "{0,2}").replace(",1", ",2"), "should be 0 or 1; got '2' at row 0"),
        (DENSE.replace("sky {0,1}", "sky real").replace("0,1,0", "0,5,0"), "or 1; got 5 at row 0"),
        (DENSE.replace("1.5,0,1,0,3", "1.5,0,1,0,nan"), "cannot be read as ARFF"),
        (DENSE.split("1.5")[0], "at least one row and one column"),
        (SPARSE.replace("{}", "1,0,0,0,0"), "cannot be read as ARFF"),
        (SPARSE.replace("{2 1", "{9 1"), "cannot be read as ARFF"),
    ]
    for text, message in cases:
        written(tmp_path, XML, "photos.xml")
        with refused(message):
            open_dataset(written(tmp_path, text))


def test_without_xml_or_count_the_labels_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, DENSE)
    with refused(r"Put photos.xml beside it, write '-C 6'"):
        open_dataset(path)
    with refused("other.xml cannot be read as XML .*No such file"):
        open_dataset(path, xml=tmp_path / "other.xml")
    with refused("Write the path out"):
        open_dataset(path, xml="~nobody-of-this-name/other.xml")
    assert open_dataset(path, xml=written(tmp_path, XML, "other.xml")).label_names[0] == "sky"
    with refused("which of the 5 attributes.*which is 'p: -C 9'"):
        open_dataset(written(tmp_path, DENSE.replace("photos", "'p: -C 9'")))
    with refused(r"at least one row and one column; got shape \(2, 0\)"):
        open_dataset(
            written(tmp_path, DENSE), relevant=["s*y", "*e?*a", "c*l"], ignore=["*i*", "count"]
        )


def test_an_xml_file_is_not_trusted(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ('<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l><label name="a"/></l>', "type"),
        ("<labels><label name='a'>", "cannot be read as XML"),
        ("<labels><label/><label name='a'/></labels>", "for each label: 'name' is missing"),
        ("<labels><label name='a'/><label name='a'/></labels>", "'a' more than once"),
    ]
    for text, message in cases:
        with refused(message):
            read_label_xml(written(tmp_path, text, "bad.xml"))

    entities = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(9))
    text = f'<!DOCTYPE l [<!ENTITY e0 "ha">{entities}]><l><label name="&e9;"/></l>'
    with refused("declares a document type"):
        read_label_xml(written(tmp_path, text, "bomb.xml"))

    for encoding in ("foo", "utf-7"):
        bad = written(tmp_path, XML.replace("utf-8", encoding), "bad.xml")
        with refused("bad.xml"):
            read_label_xml(bad)


def test_ignored_attributes_are_no_labels_and_labels_no_features(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    path = written(tmp_path, DENSE)
    assert open_dataset(path, ignore=["coral"]).label_names == ["sky", "deep sea"]
    names = ["deep sea", "sky"]
    assert (
        open_dataset(path, relevant=["*e*", "sky"], ignore=["coral", "size"]).label_names == names
    )
    assert open_dataset(path, labels=["sky", "coral"], ignore=["coral"]).label_names == ["sky"]

    written(tmp_path, XML, "photos.xml")
    dataset = open_dataset(written(tmp_path, DENSE), relevant=["sky"])
    assert dataset.label_names == ["sky"] and list(dataset.X.columns) == ["size", "count"]


def test_the_nearest_xml_and_comments_among_the_data(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    written(tmp_path, XML.replace("sky", "tall"), "photos-train.xml")
    text = SPARSE.replace("@data", "@data\n% a comment")
    dataset = open_dataset(written(tmp_path, text, "photos-train.arff"))
    assert dataset.label_names[0] == "tall" and sparse.issparse(dataset.X)


def test_complementary_attributes(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    path = written(tmp_path, DENSE)
    marked = open_dataset(path).known_relevant()
    for labels in (None, ["sky", "deep sea", "coral"]):
        dataset = open_dataset(path, labels_are="complementary", labels=labels)
        assert dataset.from_complementary and dataset.relevant is None
        np.testing.assert_array_equal(dataset.candidates, ~marked)
    np.testing.assert_array_equal(
        open_dataset(path, labels=["sky", "deep sea", "coral"], labels_are="candidates").candidates,
        marked,
    )


def test_numbers_of_sparse_rows_keep_their_digits(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    dataset = open_dataset(written(tmp_path, SPARSE.replace("2.5", "0.123456789012")))
    assert dataset.X[0, 0] == 0.123456789012
    assert open_dataset(written(tmp_path, SPARSE)).X.dtype == np.float32  # nothing is lost


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than twenty pairs count as many, and half of them as few."""
    monkeypatch.setattr("comes.datasets.dataset.MANY_PAIRS", 20)
    monkeypatch.setattr("comes.datasets.dataset.FEW", 0.5)


@pytest.mark.usefixtures("few_are_many")
def test_few_of_many_labels_stay_sparse(tmp_path: Path) -> None:
    names = [f"l{j}" for j in range(9)]
    head = "".join(f"@attribute {name} {{0,1}}\n" for name in ["x", *names])
    rows = "{0 1, 1 1}\n{9 1}\n{}\n"
    path = written(tmp_path, f"@relation 'r: -C -9'\n{head}@data\n{rows}")
    truth = open_dataset(path).relevant
    assert truth is not None and sparse.issparse(truth)
    assert np.argwhere(truth.toarray()).tolist() == [[0, 0], [1, 8]]
    ticked = open_dataset(path, labels=["l*"], labels_are="positives").known_answers()
    assert ticked.is_sparse and ticked.states.nnz == 2

    states = sparse.csr_array(truth, dtype=np.int8)
    kinds: dict[Kind, State] = {
        "candidates": State.NO,
        "positives": State.YES,
        "answers": State.MAYBE,
    }
    for kind, ones in kinds.items():
        answers = Answers.from_codes(states * np.int8(ones), kind)
        dataset = Dataset(np.ones((3, 2)), names, relevant=truth * 0, answers=answers)
        write_dataset(dataset, tmp_path / "a.mat")
        again = open_dataset(tmp_path / "a.mat")
        read = again.known_answers()
        assert sparse.issparse(again.relevant) and read.is_sparse and read.kind == kind
        np.testing.assert_array_equal(read.codes, answers.codes)


def test_sparse_labels_of_a_mat_file_are_checked_as_they_are(tmp_path: Path) -> None:
    for value in (2.0, -1.0, np.nan):
        labels = sparse.csc_array(([value], ([0], [1])), shape=(3, 4))
        savemat(tmp_path / "bad.mat", {"data": X, "target": labels})
        with refused("must be 0 and 1, or -1 and 1, .*; got"):
            open_dataset(tmp_path / "bad.mat")


def test_a_missing_nominal_value(tmp_path: Path) -> None:
    """It is in no column of a word, and stays missing where it would be a number."""
    head = "@relation 'r: -C -1'\n@attribute colour {red,green,blue}\n@attribute level {5,7}\n"
    head += "@attribute one {a}\n@attribute y {0,1}\n@data\n"
    X = open_dataset(written(tmp_path, head + "?,?,?,1\nblue,7,a,0\n")).X
    np.testing.assert_array_equal(X, [[0, 0, 0, np.nan, np.nan], [0, 0, 1, 7, 0]])


def test_an_npz_file_that_says_two_things(tmp_path: Path) -> None:
    yes = np.eye(2, dtype=bool)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"no": ~yes, "yes": yes, "asked": yes}, "'asked' .* belongs to 'candidates' or"),
        ({"positives": yes, "asked": yes}, "'asked' .* belongs to 'candidates' or"),
        ({"candidates": yes, "asked": yes[:1]}, "of its shape"),
        ({"states": yes, "kind": "answers", "asked": yes}, "'asked' .* belongs to"),
        ({"no": yes, "positives": yes}, "has both 'positives' and 'no'; keep one"),
        (
            {"yes": yes},
            "it has yes. Where only yes can be said, call it 'positives'",
        ),
        ({"states": yes, "kind": "guesses"}, "the kind of its answers; got 'guesses'"),
        ({"no": yes, "said_row": [0], "said_people": ["ann"]}, "who said what in rows of numbers"),
    ]
    for arrays, message in cases:
        np.savez(tmp_path / "a.npz", **arrays)
        with refused(message):
            open_dataset(tmp_path / "a.npz")
    np.save(tmp_path / "one.npy", yes)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with refused("one.npz cannot be read as npz"):
        open_dataset(tmp_path / "one.npz")
