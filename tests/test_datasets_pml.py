"""The .mat files of the field, in every form that is around."""

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from scipy import sparse
from scipy.io import savemat

from comes.datasets import read_dataset
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


def test_every_form_gives_the_same_data(tmp_path: Path) -> None:
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
        dataset = read_dataset(path)
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
            dataset = read_dataset(path)
            assert sparse.issparse(dataset.X) and dataset.X.format == "csr" and dataset.X.nnz == 2
            np.testing.assert_array_equal(dataset.X.toarray(), data)
            assert dataset.candidates is None


def test_an_empty_sparse_matrix_of_matlab(tmp_path: Path) -> None:
    nothing = sparse.csc_array((4, 3))
    write_v73(tmp_path / "none.mat", {"data": X, "target": nothing, "partial_labels": RELEVANT.T})
    dataset = read_dataset(tmp_path / "none.mat")
    assert not dataset.known_relevant().any()


def test_a_foreign_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"data": X}, "should have the variables 'data', 'target'.*it has 'data'"),
        ({"features": X, "target": RELEVANT}, "it has 'features', 'target'"),
        ({"data": X, "target": np.zeros((5, 4))}, r"3 rows of data, .* of shape \(5, 4\)"),
        ({"data": X, "target": RELEVANT + 1}, r"must be 0 and 1, or -1 and 1; got \[1, 2\]"),
        ({"data": X, "target": RELEVANT - 0.5}, "must be 0 and 1, or -1 and 1"),
        (
            {"data": X, "partial_labels": CANDIDATES, "candidate_labels": CANDIDATES},
            "both 'partial_labels' and 'candidate_labels'",
        ),
        ({"data": X, "target": RELEVANT, "partial_labels": 1 - CANDIDATES}, "outside their cand"),
        ({"data": np.zeros((3, 2, 2)), "target": RELEVANT}, "data in bad.mat should be a matrix"),
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
                read_dataset(path)


def test_text_in_place_of_numbers_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "text.mat", {"data": "hello", "target": RELEVANT})
    with refused("data in text.mat should be a matrix of numbers"):
        read_dataset(tmp_path / "text.mat")
    cells = np.array([["a", "b"], ["c", "d"], ["e", "f"]], dtype=object)
    savemat(tmp_path / "cells.mat", {"data": cells, "target": RELEVANT})
    with refused("data in cells.mat should be a matrix of numbers"):
        read_dataset(tmp_path / "cells.mat")


def test_a_truncated_file_is_one_sentence(tmp_path: Path) -> None:
    for v73 in (False, True):
        path = tmp_path / "short.mat"
        content = {"data": np.random.default_rng(0).random((50, 50)), "target": np.eye(50)}
        write_v73(path, content) if v73 else savemat(path, content)
        whole = path.read_bytes()
        for share in (0.2, 0.5, 0.9):
            path.write_bytes(whole[: int(len(whole) * share)])
            with refused("short.mat"):
                read_dataset(path)


def test_data_is_turned_only_if_it_must_be(tmp_path: Path) -> None:
    savemat(tmp_path / "t.mat", {"data": np.zeros((4, 3)) + 1, "target": np.eye(3, 4)})
    assert read_dataset(tmp_path / "t.mat").X.shape == (4, 3)  # as many features as labels
    savemat(tmp_path / "t.mat", {"data": X.T, "target": RELEVANT, "partial_labels": CANDIDATES})
    np.testing.assert_array_equal(read_dataset(tmp_path / "t.mat").X, X)


def test_names_of_labels_in_every_form(tmp_path: Path) -> None:
    names = ["sky", "sea \xe9", "a", "b"]
    path = tmp_path / "names.mat"
    savemat(path, {"data": X, "target": RELEVANT, "label_names": np.array(names, dtype=object)})
    assert read_dataset(path).label_names == names
    savemat(
        path, {"data": X, "target": RELEVANT, "label_names": np.array(["sky", "a", "b", "c d"])}
    )
    assert read_dataset(path).label_names == ["sky", "a", "b", "c d"]  # a padded matrix of letters
    write_v73(path, {"data": X, "target": RELEVANT})
    with h5py.File(path, "r+") as file:
        cells = file.create_dataset("label_names", (1, 4), dtype=h5py.ref_dtype)
        for j, name in enumerate(names):
            letters = np.frombuffer(name.encode("utf-16-le"), dtype=np.uint16)
            cells[0, j] = file.create_dataset(f"#refs#/{j}", data=letters[:, None]).ref
    assert read_dataset(path).label_names == names
    savemat(path, {"data": X, "target": RELEVANT, "label_names": np.array(names[:2], dtype=object)})
    with refused("4 labels need as many label_names; got 2"):
        read_dataset(path)


def test_large_counts_keep_their_digits(tmp_path: Path) -> None:
    data = np.zeros((3, 100), dtype=np.int64)
    data[1, 7] = 123456789
    savemat(tmp_path / "counts.mat", {"data": data, "target": RELEVANT})
    assert read_dataset(tmp_path / "counts.mat").X[1, 7] == 123456789
