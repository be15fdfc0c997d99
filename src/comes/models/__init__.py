"""Networks for rows of features.

`linear`, `mlp` and `low_rank` make them: functions of (number of features, number of labels) that
return a module; an `Ensemble` is several at once.
"""

from comes.models.tabular import Dropout, Ensemble, InputLayer, linear, low_rank, mlp

__all__ = ["Dropout", "Ensemble", "InputLayer", "linear", "low_rank", "mlp"]
