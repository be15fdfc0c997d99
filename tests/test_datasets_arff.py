from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from comes.datasets import read_dataset
from comes.datasets.arff import read_label_xml
from refusals import refused

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


def written(folder: Path, text: str, name: str = "photos.arff") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_mulan_labels_are_named_by_the_xml_and_in_its_order(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    dataset = read_dataset(written(tmp_path, DENSE))
    assert dataset.label_names == ["sky", "deep sea", "coral"]
    assert dataset.relevant is not None
    assert dataset.relevant.astype(int).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert list(dataset.X.columns) == ["size", "count"]
    assert dataset.X.to_numpy().tolist() == [[1.5, 3.0], [2.5, 4.0]]


def test_sparse_rows_stay_sparse_and_may_be_empty(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    for name in ("photos.arff", "photos-train.arff", "photos-train-sparse.arff"):
        dataset = read_dataset(written(tmp_path, SPARSE, name))
        assert sparse.issparse(dataset.X) and dataset.X.nnz == 2
        assert dataset.X.toarray().tolist() == [[2.5, 0.0], [0.0, 0.0], [0.0, 1.0]]
        assert dataset.relevant is not None
        assert dataset.relevant.astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_meka_counts_the_labels_in_the_relation(tmp_path: Path) -> None:
    for count, names in (("2", ["a", "b"]), ("-1", ["x"])):
        text = f"@relation 'music: -C {count} -split 10'\n"
        text += "".join(f"@attribute {name} {{0,1}}\n" for name in "abx") + "@data\n1,0,1\n0,0,1\n"
        dataset = read_dataset(written(tmp_path, text))
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
        dataset = read_dataset(written(tmp_path, head + rows))
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
        read_dataset(path, **options)
    dataset = read_dataset(path, ignore=["id"], **options)
    assert dataset.relevant is None and dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, True], [True, False]]
    truth = read_dataset(path, ignore=["id"], relevant=["maybe_*"], labels_are="candidates")
    np.testing.assert_array_equal(truth.candidates, dataset.candidates)


def test_old_files_are_not_all_utf8(tmp_path: Path) -> None:
    text = "@relation 'r: -C 1'\n@attribute caf\xe9 {0,1}\n@attribute x numeric\n@data\n1,2\n"
    (tmp_path / "old.arff").write_bytes(text.encode("latin-1"))
    assert read_dataset(tmp_path / "old.arff").label_names == ["caf\xe9"]

    written(tmp_path, XML, "photos.xml")
    (tmp_path / "photos.arff").write_bytes(b"\xef\xbb\xbf" + DENSE.encode())
    assert len(read_dataset(tmp_path / "photos.arff")) == 2


def test_a_bad_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("hello\n", "it has no line '@data'"),
        (DENSE[:60], "it has no line '@data'"),
        (DENSE[:-8], "cannot be read as ARFF: .*row 1"),
        (DENSE.replace("2.5,1", "2.5,7"), "cannot be read as ARFF"),
        (DENSE.replace("1.5", "much"), "cannot be read as ARFF"),
        (DENSE.replace("1.5,0", "1.5,?"), "label 'deep sea' of photos.arff should be 0 or 1"),
        (DENSE.replace("count", "size"), "cannot be read as ARFF: .*name"),
        (DENSE.replace("sky", "sea"), "photos.xml names 1 labels that photos.arff lacks: 'sky'"),
        (DENSE.replace("{0,1}", "{0,2}").replace(",1", ",2"), "should be 0 or 1; got"),
        (DENSE.split("1.5")[0], "no rows of data"),
        (SPARSE.replace("{}", "1,0,0,0,0"), "cannot be read as ARFF"),
        (SPARSE.replace("{2 1", "{9 1"), "cannot be read as ARFF"),
    ]
    for text, message in cases:
        written(tmp_path, XML, "photos.xml")
        with refused(message):
            read_dataset(written(tmp_path, text))


def test_without_xml_or_count_the_labels_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, DENSE)
    with refused(r"Put photos.xml beside it, write '-C 6'"):
        read_dataset(path)
    with refused("other.xml does not exist"):
        read_dataset(path, xml=tmp_path / "other.xml")
    with refused("Write the path out"):
        read_dataset(path, xml="~nobody-of-this-name/other.xml")
    assert read_dataset(path, xml=written(tmp_path, XML, "other.xml")).label_names[0] == "sky"
    with refused("counts 9 labels"):
        read_dataset(written(tmp_path, DENSE.replace("photos", "'p: -C 9'")))
    with refused("no attribute beside its labels"):
        read_dataset(written(tmp_path, DENSE), relevant=["*"])


def test_an_xml_file_is_not_trusted(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ('<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l><label name="a"/></l>', "type"),
        ("<labels><label name='a'>", "cannot be read as XML"),
        ("<labels></labels>", "names no label"),
        ("<labels><label/></labels>", "without a name at line 1"),
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
    assert read_dataset(path, ignore=["coral"]).label_names == ["sky", "deep sea"]
    names = ["deep sea", "sky"]
    assert (
        read_dataset(path, relevant=["*e*", "sky"], ignore=["coral", "size"]).label_names == names
    )
    assert read_dataset(path, labels=["sky", "coral"], ignore=["coral"]).label_names == ["sky"]

    written(tmp_path, XML, "photos.xml")
    dataset = read_dataset(written(tmp_path, DENSE), relevant=["sky"])
    assert dataset.label_names == ["sky"] and list(dataset.X.columns) == ["size", "count"]


def test_the_nearest_xml_and_comments_among_the_data(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    written(tmp_path, XML.replace("sky", "tall"), "photos-train.xml")
    text = SPARSE.replace("@data", "@data\n% a comment")
    dataset = read_dataset(written(tmp_path, text, "photos-train.arff"))
    assert dataset.label_names[0] == "tall" and sparse.issparse(dataset.X)


def test_complementary_attributes(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    path = written(tmp_path, DENSE)
    marked = read_dataset(path).known_relevant()
    for labels in (None, ["sky", "deep sea", "coral"]):
        dataset = read_dataset(path, labels_are="complementary", labels=labels)
        assert dataset.from_complementary and dataset.relevant is None
        np.testing.assert_array_equal(dataset.candidates, ~marked)
    np.testing.assert_array_equal(
        read_dataset(path, labels=["sky", "deep sea", "coral"], labels_are="candidates").candidates,
        marked,
    )


def test_numbers_of_sparse_rows_keep_their_digits(tmp_path: Path) -> None:
    written(tmp_path, XML, "photos.xml")
    dataset = read_dataset(written(tmp_path, SPARSE.replace("2.5", "0.123456789012")))
    assert dataset.X[0, 0] == 0.123456789012
    assert read_dataset(written(tmp_path, SPARSE)).X.dtype == np.float32  # nothing is lost
