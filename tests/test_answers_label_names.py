import pytest

from comes.answers.convert import check_names, match_names
from comes.errors import ComesError, ComesWarning


def test_names_are_matched_by_name_or_by_position() -> None:
    assert match_names(["a", "b", "c"], ["c", "a", "b"]) == [2, 0, 1]
    assert match_names(["has_b!", "has_a!"], ["a", "b"]) == [1, 0]
    assert match_names(["0", "1"], ["b", "a"]) == match_names(["b", "a"], ["0", "1"]) == [0, 1]
    with pytest.warns(ComesWarning, match="matched by position.*'x' for 'a', 'y' for 'b'"):
        assert match_names(["x", "y"], ["a", "b"]) == [0, 1]
    for names in (["a", "x"], ["a"], ["x", "y", "z"], ["a", "b", "c"]):
        with pytest.raises(ComesError, match="expected the labels 'a', 'b'"):
            match_names(names, ["a", "b"])


def test_names_must_differ_and_not_be_empty() -> None:
    check_names(["a", "b"])
    with pytest.raises(ComesError, match="must differ; got 'a' more than once"):
        check_names(["a", "b", "a"])
    with pytest.raises(ComesError, match="must not be empty; number 1 is"):
        check_names(["a", ""])
