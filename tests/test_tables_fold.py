"""An encoder fitted in one pass over blocks of rows is that of all rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from comes.tables import ColumnEncoder, encoder
from comes.tables.encoder import MOST_TERMS, EncoderFold, _TermCounts


def drawn_texts(n: int, n_words: int, seed: int = 0) -> list[str]:
    """Return texts of words whose numbers are the commoner, the smaller they are."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, n)
    words = (n_words * rng.random(int(lengths.sum())) ** 3).astype(int)
    parts = np.split(words, lengths.cumsum()[:-1])
    return [" ".join(f"Word{w}" for w in part) for part in parts]


def drawn_table(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sizes = rng.normal(5.0, 2.0, n)
    sizes[::17] = np.nan
    return pd.DataFrame(
        {
            "size": sizes,
            "colour": rng.choice(["red", "blue", "green"], n),
            "note": [
                f"{text} item number {k} of many" for k, text in enumerate(drawn_texts(n, 90))
            ],
        }
    )


def split(table: pd.DataFrame, step: int) -> list[pd.DataFrame]:
    return [table.iloc[start : start + step] for start in range(0, len(table), step)]


def test_terms_counted_in_blocks_are_those_of_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "PAIR_SHARE", 10**9)  # scikit-learn has one least for all terms
    for n, n_words, least in ((400, 50, 2), (5000, 2000, 2), (3, 1000, 2), (1, 5, 1)):
        texts = pd.Series(drawn_texts(n, n_words))
        whole = TfidfVectorizer(
            ngram_range=(1, 2),
            token_pattern=r"(?u)\b\w+\b",
            min_df=least,
            max_features=MOST_TERMS,
            dtype=np.float32,
        ).fit(texts)
        counts = _TermCounts()
        for start in range(0, n, 37):
            counts.add(texts[start : start + 37])
        part = counts.fit_part("note")
        assert part.vocabulary == whole.get_feature_names_out().tolist()
        if n == 5000:
            assert len(part.vocabulary) == MOST_TERMS  # ties are broken the same way
        np.testing.assert_array_equal(part.idf, whole.idf_)


def test_texts_without_a_word_have_no_terms() -> None:
    counts = _TermCounts().add(pd.Series(["", "  ", "?!"]))
    assert counts.fit_part("note").vocabulary == [] and counts.n_texts == 3


def test_rare_terms_are_forgotten_where_there_are_too_many() -> None:
    counts = _TermCounts(most=200)
    for block in range(30):
        rare = " ".join(f"rare{block}x{k}" for k in range(20))
        counts.add(pd.Series(["common words", rare]))
    assert len(counts.n_rows) < 300
    part = counts.fit_part("note")
    assert {"common", "words", "common words"} <= set(part.vocabulary)
    exact = np.log(61 / 31) + 1
    np.testing.assert_allclose(part.idf[part.vocabulary.index("common")], exact, rtol=1e-6)


def test_a_fold_over_few_rows_is_the_encoder_of_all() -> None:
    for step in (7, 100, 1000):
        table = drawn_table()
        fold = EncoderFold()
        for block in split(table, step):
            fold.add(block)
        encoder, whole = fold.finish(), ColumnEncoder().fit(table)
        assert encoder.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
        np.testing.assert_allclose(
            encoder.transform(table).toarray(),
            whole.transform(table).toarray(),
            rtol=1e-6,
            atol=1e-7,
        )
        assert encoder.columns_ == whole.columns_
        again = ColumnEncoder.from_state(*encoder.state())
        np.testing.assert_array_equal(
            again.transform(table).toarray(), encoder.transform(table).toarray()
        )


def test_terms_come_from_all_rows_and_the_rest_from_a_sample() -> None:
    table = drawn_table()
    fold = EncoderFold(sample_rows=50, seed=3)
    for block in split(table, 90):
        fold.add(block)
    encoder, whole = fold.finish(), ColumnEncoder().fit(table)
    parts, wanted = ({part.column: part for part in e.parts_} for e in (encoder, whole))
    assert parts["note"].names == wanted["note"].names
    assert parts["size"].names == wanted["size"].names
    sample = fold.sample()
    assert len(sample) == 50
    assert vars(parts["size"])["median"] == float(np.nanmedian(sample["size"]))


def test_a_sample_is_the_same_whatever_the_blocks_and_draws_every_row_alike() -> None:
    table = pd.DataFrame({"row": np.arange(1000)})
    drawn = []
    for step in (1, 9, 1000):
        fold = EncoderFold(sample_rows=40, seed=1)
        for block in split(table, step):
            fold.add(block)
        drawn.append(fold.sample()["row"].tolist())
    assert drawn[0] == drawn[1] == drawn[2] == sorted(drawn[0]) and len(drawn[0]) == 40
    count = np.zeros(60)
    for seed in range(500):
        fold = EncoderFold(sample_rows=15, seed=seed)
        for block in split(table[:60], 7):
            fold.add(block)
        count[fold.sample()["row"]] += 1
    assert abs(count / 500 - 0.25).max() < 0.08  # four deviations of a binomial share
