"""Tables of class priors: made, written, filled in and read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comes.errors import ComesError
from comes.priors import ClassPriorEstimate, prior_table, read_priors

PRIOR = np.array([0.25, 0.75])
ESTIMATE = ClassPriorEstimate(
    class_prior=PRIOR,
    exclude_rate=PRIOR / 2,
    lower=PRIOR / 4,
    upper=PRIOR + 0.2,
    standard_error=PRIOR / 8,
    flags=("ok", "few excluded"),
)
NAMES = ["sea", "sky"]


def test_a_table_has_a_row_per_label_and_the_error_where_the_truth_is_known() -> None:
    table = prior_table(ESTIMATE, NAMES)
    assert table["label"].tolist() == NAMES
    assert table["flag"].tolist() == ["ok", "few excluded"]
    for name in ("class_prior", "exclude_rate", "lower", "upper", "standard_error"):
        np.testing.assert_array_equal(table[name], getattr(ESTIMATE, name))
    assert "error" not in table
    judged = prior_table(ESTIMATE, NAMES, np.array([[1, 1], [1, 0]]))
    assert judged["true_prior"].tolist() == [1.0, 0.5]
    assert judged["error"].tolist() == [-0.75, 0.25]


def test_a_table_of_priors_is_written_and_read(tmp_path: Path) -> None:
    table = prior_table(ESTIMATE, NAMES).drop(columns="standard_error")
    for name, write in (("p.csv", table.to_csv), ("p.parquet", table.to_parquet)):
        write(tmp_path / name, index=False)
        read = read_priors(tmp_path / name)
        assert isinstance(read, pd.Series) and list(read.index) == NAMES
        np.testing.assert_allclose(read.to_numpy(), PRIOR)


def test_priors_know_how_far_they_may_be_off_if_the_table_says_so(tmp_path: Path) -> None:
    table = prior_table(ESTIMATE, NAMES)
    for name, write in (("p.csv", table.to_csv), ("p.parquet", table.to_parquet)):
        write(tmp_path / name, index=False)
        read = read_priors(tmp_path / name, NAMES[::-1])
        assert isinstance(read, ClassPriorEstimate)
        assert read.flags == ESTIMATE.flags[::-1]
        for part in ("class_prior", "exclude_rate", "lower", "upper", "standard_error"):
            np.testing.assert_allclose(getattr(read, part), getattr(ESTIMATE, part)[::-1])
    plain = table[["label", "class_prior"]]
    plain.to_csv(tmp_path / "plain.csv", index=False)
    known = read_priors(tmp_path / "plain.csv", NAMES)
    assert isinstance(known, pd.Series)
    plain.assign(standard_error=[0.1, np.nan]).to_csv(tmp_path / "own.csv", index=False)
    own = read_priors(tmp_path / "own.csv", NAMES)
    assert isinstance(own, ClassPriorEstimate) and own.flags == ("ok", "ok")
    np.testing.assert_array_equal(own.standard_error, [0.1, np.nan])
    assert np.isnan(own.exclude_rate).all()
    plain.assign(standard_error=-1).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ComesError, match="standard_error of bad.csv must hold .* got -1"):
        read_priors(tmp_path / "bad.csv", NAMES)
    with pytest.raises(ComesError, match="expected the labels 'sea', 'lake'; got 'sea', 'sky'"):
        read_priors(tmp_path / "own.csv", ["sea", "lake"])


def test_names_that_look_like_numbers_stay_names(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,class_prior\n007,0.5\n")
    read = read_priors(tmp_path / "p.csv")
    assert isinstance(read, pd.Series) and read.to_dict() == {"007": 0.5}


def test_what_is_filled_in_takes_the_place_of_estimates(tmp_path: Path) -> None:
    table = prior_table(ESTIMATE, NAMES)
    for name, method in (("p.csv", "to_csv"), ("p.parquet", "to_parquet")):
        getattr(table.assign(known_prior=[0.7, np.nan]), method)(tmp_path / name, index=False)
        read = read_priors(tmp_path / name, NAMES[::-1])
        assert isinstance(read, ClassPriorEstimate)
        np.testing.assert_allclose(read.class_prior, [PRIOR[1], 0.7])
        np.testing.assert_allclose(read.standard_error, [ESTIMATE.standard_error[1], 0])
        assert read.flags == (ESTIMATE.flags[1], "known")
        in_the_order_of_the_file = read_priors(tmp_path / name)
        np.testing.assert_allclose(np.asarray(in_the_order_of_the_file), [0.7, PRIOR[1]])
        plain = table.assign(known_prior=[0.7, np.nan]).drop(columns="standard_error")
        getattr(plain, method)(tmp_path / name, index=False)
        np.testing.assert_allclose(np.asarray(read_priors(tmp_path / name)), [0.7, PRIOR[1]])
    table.assign(known_prior=[0.7, 0.2]).to_csv(tmp_path / "all.csv", index=False)
    known = read_priors(tmp_path / "all.csv", NAMES)
    assert isinstance(known, pd.Series) and known.tolist() == [0.7, 0.2]
    table.assign(known_prior="").to_csv(tmp_path / "none.csv", index=False)
    untouched = read_priors(tmp_path / "none.csv", NAMES)
    assert isinstance(untouched, ClassPriorEstimate) and untouched.flags == ESTIMATE.flags


def test_a_file_that_holds_no_priors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("label,prior\na,1\n")
    with pytest.raises(ComesError, match="bad.csv has no column 'class_prior'.*It has 'label'"):
        read_priors(tmp_path / "bad.csv")
    with pytest.raises(ComesError, match="gone.csv cannot be read"):
        read_priors(tmp_path / "gone.csv")
    table, path = prior_table(ESTIMATE, NAMES), tmp_path / "p.csv"
    table.assign(class_prior=["often", "0.1"]).to_csv(path, index=False)
    with pytest.raises(ComesError, match=r"class_prior of p.csv must hold numbers.*got 'often'"):
        read_priors(path, NAMES)
    for wrong in ("often", "1.2", "-0.1"):
        table.assign(known_prior=["", wrong]).to_csv(path, index=False)
        with pytest.raises(ComesError, match=rf"known_prior of p.csv.*{wrong}.* for label 'sky'"):
            read_priors(path, NAMES)
