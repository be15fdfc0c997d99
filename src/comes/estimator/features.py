"""What the classifiers of rows share: features of a table, array or sparse matrix, and `score`."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from comes.errors import ComesError, listed
from comes.estimator.base import BaseCandidateClassifier
from comes.estimator.inputs import as_matrix, check_entries, count_seen
from comes.metrics import average_precision
from comes.tables import ColumnEncoder
from comes.tables.columns import match_by_name, needs_encoding


class RowClassifier(BaseCandidateClassifier):
    """A classifier of rows of features, which encodes tables that are more than numbers."""

    encoder: Any
    warm_start: bool = False
    encoder_: ColumnEncoder

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features if `fit` saw a DataFrame, else None."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def n_inputs_(self) -> int:
        """How many numbers the network takes for a row."""
        encoder = getattr(self, "encoder_", None)
        return int(self.n_features_in_) if encoder is None else encoder.n_features

    def _learn_features(self, X: Any) -> Any:
        """Return X as a finite float matrix, dense or CSR; keep its encoder and feature names.

        A table of complete numbers is no more than a matrix, unless an encoder was given. A warm
        start encodes a table as the fit before did.
        """
        if self.warm_start and hasattr(self, "encoder_"):
            X = self._read_features(X)
            check_entries(X)
            return X
        self.__dict__.pop("encoder_", None)  # of an earlier fit
        is_table = isinstance(X, pd.DataFrame) and 0 not in X.shape
        if is_table and (self.encoder is not None or needs_encoding(X)):
            encoder = ColumnEncoder() if self.encoder is None else clone(self.encoder)
            X = self._validate(encoder.fit_transform(X), reset=True)
            self._keep_encoder(encoder)
        else:
            X = self._validate(X, reset=True)
        check_entries(X)
        return X

    def _keep_encoder(self, encoder: ColumnEncoder) -> None:
        """Let the features be the columns that an encoder uses."""
        self.encoder_ = encoder
        self.feature_names_in_ = np.array(encoder.used_columns, dtype=object)
        self.n_features_in_ = len(encoder.used_columns)

    def _read_features(self, X: Any) -> Any:
        """Return X for a fitted classifier as a float matrix, dense or CSR; entries not checked.

        Columns of a table are found by name, and encoded as in training.
        """
        encoder, names = getattr(self, "encoder_", None), self.feature_names
        if encoder is not None:
            if not isinstance(X, pd.DataFrame):
                shape = getattr(X, "shape", None)
                came = f"a {type(X).__name__}" + ("" if shape is None else f" of shape {shape}")
                raise ComesError(
                    "this model was trained on a table with the columns "
                    f"{listed(encoder.used_columns)}; got {came}. Pass a DataFrame."
                )
            return encoder.transform(X)
        if names is not None and isinstance(X, pd.DataFrame):
            X = X if list(X.columns) == names else match_by_name(X, names)
            for name in X.columns[[not pd.api.types.is_numeric_dtype(t) for t in X.dtypes]]:
                numbers = pd.to_numeric(X[name], errors="coerce")
                wrong = (numbers.isna() & X[name].notna()).to_numpy()
                if wrong.any():
                    row = int(wrong.argmax())
                    raise ComesError(
                        f"column {name!r} must hold numbers, as in training; got "
                        f"{X[name].iloc[row]!r} at row {row}. Correct it."
                    )
        return self._validate(X, reset=False)

    def _validate(self, X: Any, *, reset: bool) -> Any:
        """Return X as a float matrix; ``reset`` sets the number and the names of features."""
        try:
            return validate_data(
                self,
                as_matrix(X),
                reset=reset,
                accept_sparse="csr",
                dtype=(np.float64, np.float32),
                ensure_all_finite=False,
            )
        except ComesError:
            raise
        except (ValueError, TypeError) as error:
            message = " ".join(line.strip() for line in str(error).splitlines())
            raise ComesError(message) from error

    def count_seen_rows(self, X: Any) -> int:
        """Return how many rows have the features of a row that the classifier was trained on.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        n_seen : int
            0 if the classifier was saved by a version that did not remember its rows.

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> classifier = CandidateClassifier("bce", epochs=1).fit(X[:40], X[:40] > 0)
        >>> classifier.count_seen_rows(X[30:])
        10
        """
        seen = self.seen_rows_
        return 0 if seen is None else count_seen(seen, self._read_features(X))

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """Return the average precision against true labels, or the log-likelihood of `Answers`.

        Parameters
        ----------
        X : as in `predict`
        y : array or DataFrame of shape (n_samples, n_labels), or Answers
            True labels, whose columns are matched by name: the average precision in the ``pml``
            convention. `Answers`: their log-likelihood per answer, by the probabilities and rates
            of the model (those that the class prior implies where the method has none; where it
            has neither, as "bce", every answer is taken at its word). Greater is better.
        sample_weight : None
            Not supported.

        Returns
        -------
        score : float

        Examples
        --------
        >>> from comes import Answers, CandidateClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> clf = CandidateClassifier("bce", epochs=20, random_state=0).fit(X, X > 0)
        >>> clf.score(X, X > 0) > 0.9, clf.score(X, Answers(no=X < -1, yes=X > 1)) > -0.2
        (True, True)
        """
        return self._score_labels(X, y, sample_weight, average_precision)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
