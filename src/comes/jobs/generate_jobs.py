"""The job that makes answers from true labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from comes.datasets import Dataset, ReadOptions, write_dataset
from comes.datasets.table_datasets import TableForm
from comes.errors import ComesError
from comes.generation import simulate_answers
from comes.jobs.data_jobs import as_dataset, check_output


def generate_answers(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    asked_rate: float | Sequence[float] = 0.1,
    no_rate: float | Sequence[float] = 0.8,
    yes_rate: float | Sequence[float] = 0.8,
    mistake_rate: float = 0.0,
    doubt_strength: float = 0.0,
    asked_strength: float = 0.0,
    form: TableForm = "wide",
    seed: int = 0,
) -> Dataset:
    """Return a data set whose answers are drawn from its true labels; write it if asked.

    Parameters
    ----------
    data : Dataset, path or name
        Must have true labels.
    output : path, optional
        As in `convert_dataset`.
    reading : ReadOptions, optional
        What the columns of a file mean.
    asked_rate, no_rate, yes_rate, mistake_rate, doubt_strength, asked_strength, seed
        The random process: as in `comes.generation.simulate_answers`.
    form : {"wide", "names", "long"}

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> generate_answers(make_scenes(n=500), yes_rate=0).answers
    Answers about 500 rows and 10 labels: 487 of 5000 pairs asked, 298 no, 0 yes, 189 maybe
    """
    if output is not None:
        check_output(output, form, data, reading)
    dataset = as_dataset(data, reading)
    X = dataset.known_features() if doubt_strength or asked_strength else None
    answers = simulate_answers(
        dataset.known_relevant(),
        X,
        asked_rate=asked_rate,
        no_rate=no_rate,
        yes_rate=yes_rate,
        mistake_rate=mistake_rate,
        doubt_strength=doubt_strength,
        asked_strength=asked_strength,
        seed=seed,
    )
    if answers.asked is not None and not answers.asked.any():
        raise ComesError(
            f"nothing was asked at asked_rate (--asked-rate) {asked_rate}, so there is nothing to "
            "learn from. Give a larger rate."
        )
    made = replace(dataset, answers=answers, from_complementary=False)
    if output is not None:
        write_dataset(made, output, form)
    return made
