"""The numbers of the paper's Tables 2 and 3 (``published.csv``), beside ours."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.experiment.results import Result, Sees
from comes.flat_settings import frozen_settings
from comes.metrics import METRICS
from comes.significance import standard_deviation

# Data sets that are part of one of the paper's.
PART_OF = {
    "mirflickr5000": ("mirflickr", "5000 of the 10433 rows"),
    "VOC2012-160px": ("VOC2012", "every image, resized to 160 x 160,"),
}
PAPER_RATE = {"a": 0.9, "b": 0.1}


@dataclass(frozen=True)
class Beside:
    """A result of ours and the paper's for the same method on the same data set."""

    data: str
    method: str
    metric: str  # its title
    ours: float
    ours_std: float
    paper: float
    paper_std: float


@cache
def published() -> pd.DataFrame:
    """Return the paper's means and standard deviations: data, case, method, metric, mean, std."""
    with files("comes.report").joinpath("published.csv").open("rb") as file:
        return pd.read_csv(file, keep_default_na=False)


def beside_paper(results: Sequence[Result]) -> list[Beside]:
    """Return ours and the paper's numbers, where the paper has the same method and data set."""
    rows = []
    for result in results:
        if result.names.method != result.spec.method or result.names.sweep is not None:
            continue
        for metric, mean, std in _find_published(result):
            for title, values in _gather_values(result, metric):
                if not np.isnan(values).any():
                    ours = (round(float(values.mean()), 3), round(standard_deviation(values), 3))
                    names = (result.names.data, result.names.method)
                    rows.append(Beside(*names, title, *ours, mean, std))
    return rows


def _find_published(result: Result) -> Iterable[tuple[str, float, float]]:
    """Return what the paper has for the same method, data and rate: metric, mean and std."""
    data = result.spec.data
    name = source_name(result)
    name, case = PART_OF.get(name, (name, ""))[0], data.case or ""
    rate = PAPER_RATE.get(case) if data.rate is None else data.rate
    if case and rate != PAPER_RATE.get(case):
        return []
    return _group_published().get((name, case, result.spec.method), [])


@cache
def _group_published() -> dict[tuple[str, str, str], list[tuple[str, float, float]]]:
    """Return metrics, means and standard deviations by data set, case and method."""
    grouped: dict[tuple[str, str, str], list[tuple[str, float, float]]] = {}
    for data, case, method, metric, mean, std in published().itertuples(index=False):
        grouped.setdefault((data, case, method), []).append((metric, mean, std))
    return grouped


def _gather_values(result: Result, metric: str) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield title and values of a metric; the Hamming loss by two cuts of the scores."""
    yield METRICS[metric].title, result.values(metric)
    if metric == "hamming_loss":  # of which the paper does not say how it cuts scores
        yield "Hamming loss, min-max", np.array([r.hamming_loss.minmax for r in result.repeats])


def source_name(result: Result) -> str:
    """Return the name of the data set, without the part of it that is trained on."""
    return result.spec.data.name.partition(":")[0]


def is_papers_data(result: Result) -> bool:
    """Return whether the paper has this data set, or one that it is part of."""
    name = source_name(result)
    return PART_OF.get(name, (name, ""))[0] in set(published()["data"])


# What the paper says of its training on tables; the rest is not in it.
STATED = {
    "epochs": 200,
    "learning_rate": 5e-3,
    "weight_decay": 1e-4,
    "optimizer": "sgd",
    "cosine": True,
    "model": "mlp",
}
# What it does not say, with the default of `CandidateClassifier`.
OPEN = {
    "batch_size": 256,
    "momentum": 0.9,
    "hidden": "500 units",
    "scale": "standardised where dense",
    "reduction": "auto",
    "normaliser": "dataset",
}
# What a method may see of answers.
SEEN: dict[Sees, str] = {
    "all": "all answers",
    "no_maybe": "no and maybe, with yes as maybe",
    "candidates": "candidates, whatever is not no",
    "truth": "the true labels",
}
# What a search chose by; None in results that name no criterion.
CRITERIA = {
    None: "the risk of training",
    "own_risk": "the method's own risk",
    "log_likelihood": "the likelihood",
    "ranking": "the estimated ranking risk",
    "hamming": "the estimated Hamming loss",
    "auc": "the estimated macro AUC",
}
PAPERS_IMAGES = (
    "The paper fine-tunes a ResNet-50 with ImageNet weights by Adam, learning rate 1e-4, for 30 "
    "epochs. It does not say the size of images, the batches, or what is tested on."
)
CUTS = (
    "The Hamming loss cuts scores at zero, or for risks over pairs where the class prior is met; "
    "min-max cuts each row halfway between its least and its greatest probability."
)


def what_differs(results: Sequence[Result]) -> list[str]:
    """Return in sentences how an experiment differs from the paper's, and what was chosen."""
    if any(result.spec.images for result in results):
        shown = [*_describe_parts(results), *_describe_answers(results)]
        return [*shown, PAPERS_IMAGES, *_describe_images(results)]
    return [
        *_describe_parts(results),
        *_describe_answers(results),
        *_describe_repeats(results),
        *_describe_choices(results),
        "Metrics follow the convention pml of docs/reference/metrics.md, which fits the paper's "
        f"numbers. {CUTS}",
    ]


def what_was_run(results: Sequence[Result]) -> list[str]:
    """Return in sentences how data that the paper does not have was trained on and judged."""
    lines = [*_describe_answers(results, "")]
    if any(result.spec.images for result in results):
        lines += _describe_images(results)
    else:
        every = {**STATED, **OPEN}
        used = (
            f"{key.replace('_', ' ')} {_list_values(results, key, v)}" for key, v in every.items()
        )
        lines.append(f"Trained with: {'; '.join(used)}; scores of the last epoch.")
    searched = [result for result in results if result.spec.search is not None]
    if searched:
        lines.append(_describe_search(searched))
    for way, words in (("true", "counted on the true labels"), ("estimated", "estimated")):
        methods = {r.names.method for r in results if r.spec.class_prior == way}
        if methods:
            lines.append(f"Class priors are {words}: {', '.join(sorted(methods))}.")
    by_default = {r.names.method for r in results if r.spec.training == "default"}
    if by_default:
        lines.append(_describe_defaults(by_default))
    lines.append(f"Metrics follow the convention pml of docs/reference/metrics.md. {CUTS}")
    return lines


def _describe_parts(results: Sequence[Result]) -> list[str]:
    """Name the data sets that are part of one of the paper's."""
    names = dict.fromkeys(source_name(result) for result in results)
    return [f"{n} is {PART_OF[n][1]} of {PART_OF[n][0]}." for n in names if n in PART_OF]


def _describe_answers(
    results: Sequence[Result], beside: str = " The paper has candidates."
) -> list[str]:
    """Say how answers were drawn, what methods saw of them, and who knew the rates."""
    lines = []
    for result in results:
        answers = result.spec.data.answers
        if answers is not None:
            rates = (
                f"an irrelevant one that is asked about is called no with {answers.no_rate:g}, a "
                f"relevant one yes with {answers.yes_rate:g}"
                if answers.people is None
                else f"{', '.join(answers.people)} answer with rates of their own"
            )
            lines.append(
                f"{result.names.data}: answers are drawn. A pair is asked about with probability "
                f"{answers.asked_rate:g}; {rates}; the others get maybe.{beside}"
            )
    for result in results:
        if result.spec.sees is not None:
            seen = SEEN[result.spec.sees]
            told = ", and knows the true rates" if result.spec.answer_rates else ""
            lines.append(f"{result.names.method} sees {seen}{told}.")
    return list(dict.fromkeys(lines))


def _describe_repeats(results: Sequence[Result]) -> list[str]:
    """Say what differs in the training that the paper states, and in its repeats."""
    lines = []
    if any(result.spec.label_seeds is not None for result in results):
        lines.append(
            "The paper has synthetic labels on images alone, with a ResNet-50, Adam and 30 epochs; "
            "these are its settings for tables."
        )
    for key, stated in STATED.items():
        used = _list_values(results, key, stated)
        if used != str(stated):
            lines.append(f"{key.replace('_', ' ')}: {used}; the paper says {stated}.")
    for result in results:
        spec = result.spec
        if spec.folds not in (None, 10) or spec.first_folds is not None:
            lines.append(
                f"Repeats are {len(result.repeats)} of {spec.folds} folds; the paper has 10 of 10."
            )
            break
    return lines


def _describe_choices(results: Sequence[Result]) -> list[str]:
    """Say what was searched for, estimated, and chosen where the paper says nothing."""
    lines = []
    searched = [result for result in results if result.spec.search is not None]
    if searched:
        lines.append(_describe_search(searched))
    estimated = {r.names.method for r in results if r.spec.class_prior == "estimated"}
    if estimated:
        lines.append(
            "What must be known is estimated from candidates, and the paper takes the true class "
            f"priors: {', '.join(sorted(estimated))}."
        )
    flooded = {r.names.method for r in results if r.spec.settings.get("flood_level") == "auto"}
    if flooded:
        lines.append(
            "The paper names no flood level. It is 0, or by the rule of the class priors, whose "
            "factor was read off test rows of mirflickr5000, so that numbers on this set are too "
            f"good: {', '.join(sorted(flooded))}."
        )
    by_default = {r.names.method for r in results if r.spec.training == "default"}
    if by_default:
        lines.append(_describe_defaults(by_default))
    chosen = (f"{key.replace('_', ' ')} {_list_values(results, key, v)}" for key, v in OPEN.items())
    lines.append(
        f"The paper does not say, and here is: {'; '.join(chosen)}; scores of the last epoch."
    )
    return lines


def _describe_defaults(methods: set[str]) -> str:
    return (
        "With all defaults of `CandidateClassifier`, such as dropout, several networks or a flood "
        f"level, where nothing else is said: {', '.join(sorted(methods))}."
    )


def _describe_search(results: Sequence[Result]) -> str:
    """Say what settings were chosen by, how often they were level, and where the grid ended."""
    by = {
        CRITERIA[None if search is None else search.criterion]: None
        for search in (result.spec.search for result in results)
    }
    search = results[0].spec.search
    assert search is not None
    text = (
        f"Learning rate and epochs are chosen for each method and repeat, by {', or '.join(by)}, "
        f"on what was said about {search.held_out:.0%} of the training rows."
    )
    repeats = [r for result in results for r in result.repeats if r.tied is not None]
    if repeats:
        n_tied = sum(bool(r.tied) for r in repeats)
        rates = [e for r in repeats for e in r.edges or () if e.startswith("learning_rate")]
        text += (
            f" Of {len(repeats)} choices, {n_tied} were level with others (fewer epochs win, then "
            f"a smaller learning rate), and {len(rates)} have the least or greatest learning rate "
            "that was tried."
        )
    return text


def _describe_images(results: Sequence[Result]) -> list[str]:
    """Say what images were trained on and tested with, and how."""
    tests = ", ".join(sorted({str(r.spec.data.test or "rows of the same set") for r in results}))
    lines = [
        f"Tested on: {tests}. Objects marked as difficult count as irrelevant.",
        "Candidates are drawn once per label seed, for the images trained on; every method has "
        "the same.",
    ]
    for result in results:
        spec = result.spec
        used = ", ".join(f"{key} {value}" for key, value in sorted(spec.settings.items()))
        line = f"{result.names.method}: {used}; class prior {spec.class_prior}."
        if line not in lines:
            lines.append(line)
    return lines


def _list_values(results: Sequence[Result], key: str, default: object) -> str:
    """Return the values of a setting, in words; a method trained by default may have its own."""
    own = [frozen_settings(r.spec.method, r.spec.training, None, r.spec.settings) for r in results]
    values = {settings.get(key, default) for settings in own}
    return ", ".join(sorted("by what was said" if v is None else str(v) for v in values))
