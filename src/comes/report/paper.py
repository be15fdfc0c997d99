"""The numbers of the paper's Tables 2 and 3 (``published.csv``), beside ours."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from comes.experiment.config import Sees
from comes.experiment.results import Result
from comes.flat_settings import frozen_settings
from comes.metrics import METRICS
from comes.significance import standard_deviation

# Data sets that are part of one of the paper's.
PART_OF = {
    "mirflickr5000": ("mirflickr", "5000 of the 10433 rows"),
    "VOC2012-160px": ("VOC2012", "every image, resized to 160 x 160,"),
}
PAPER_RATE = {"a": 0.9, "b": 0.1}


@cache
def published() -> pd.DataFrame:
    """Return the paper's means and standard deviations: data, case, method, metric, mean, std."""
    with files("comes.report").joinpath("published.csv").open("rb") as file:
        return pd.read_csv(file, keep_default_na=False)


def beside_paper(results: Sequence[Result]) -> list[list[str]]:
    """Return data, method, metric, ours, the paper's and the difference, where it has the same."""
    rows = []
    for result in results:
        names, data, table = result.names, result.spec.data, published()
        name = PART_OF.get(source_name(result), (source_name(result),))[0]
        case = data.case or ""
        is_its_rate = not case or data.rate in (None, PAPER_RATE.get(case))
        if names.method != result.spec.method or names.sweep is not None or not is_its_rate:
            continue
        same = (table["data"] == name) & (table["case"] == case)
        for paper in table[same & (table["method"] == names.method)].to_dict("records"):
            metric = paper["metric"]
            found = {METRICS[metric].title: result.values(metric)}
            if metric == "hamming_loss":  # of which the paper does not say how it cuts scores
                by_row = [repeat.hamming_loss.minmax for repeat in result.repeats]
                found["Hamming loss, min-max"] = np.array(by_row)
            for title, values in found.items():
                mean, std = round(float(values.mean()), 3), round(standard_deviation(values), 3)
                theirs = f"{paper['mean']:.3f} ± {paper['std']:.3f}"
                if not np.isnan(mean):
                    gap = f"{mean - paper['mean']:+.3f}"
                    ours = f"{mean:.3f} ± {std:.3f}"
                    rows.append([names.data, names.method, title, ours, theirs, gap])
    return rows


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
# Of data that the paper does not have, and of its own.
KNOWN_PRIORS: tuple[dict[str, str], dict[str, str]] = (
    {
        "true": "Class priors are counted on the true labels",
        "estimated": "Class priors are estimated",
    },
    {
        "estimated": "What must be known is estimated from candidates, and the paper takes the "
        "true class priors"
    },
)
FLOODED = (
    "The paper names no flood level. It is 0, or by the rule of the class priors, whose factor was "
    "read off test rows of mirflickr5000, so that numbers on this set are too good"
)
BY_DEFAULT = (
    "With all defaults of `CandidateClassifier`, such as dropout, several networks or a flood "
    "level, where nothing else is said"
)
PAPERS_IMAGES = (
    "The paper fine-tunes a ResNet-50 with ImageNet weights by Adam, learning rate 1e-4, for 30 "
    "epochs. It does not say the size of images, the batches, or what is tested on."
)
CUTS = (
    "The Hamming loss cuts scores at zero, or for risks over pairs where the class prior is met; "
    "min-max cuts each row halfway between its least and its greatest probability."
)


def describe_run(results: Sequence[Result], *, is_papers: bool) -> list[str]:
    """Return in sentences how results were made; of the paper's data, how that differs from it."""
    names = dict.fromkeys(source_name(result) for result in results)
    lines = [f"{n} is {PART_OF[n][1]} of {PART_OF[n][0]}." for n in names if n in PART_OF]
    lines += _describe_answers(results, " The paper has candidates." if is_papers else "")
    is_images = any(result.spec.images for result in results)
    if is_images:
        lines += [*([PAPERS_IMAGES] if is_papers else []), *_describe_images(results)]
    elif is_papers:
        lines += _describe_repeats(results)
    searched = [result for result in results if result.spec.search is not None]
    if searched:
        lines.append(_describe_search(searched))
    for way, words in KNOWN_PRIORS[is_papers].items():
        methods = {result.names.method for result in results if result.spec.class_prior == way}
        if methods:
            lines.append(f"{words}: {', '.join(sorted(methods))}.")
    specs = [(result.names.method, result.spec) for result in results]
    flooded = {method for method, spec in specs if spec.settings.get("flood_level") == "auto"}
    by_default = {method for method, spec in specs if spec.training == "default"}
    for words, methods in {
        FLOODED: flooded if is_papers else set(),
        BY_DEFAULT: by_default,
    }.items():
        if methods:
            lines.append(f"{words}: {', '.join(sorted(methods))}.")
    if not is_images:
        every = OPEN if is_papers else {**STATED, **OPEN}
        used = "; ".join(
            f"{key.replace('_', ' ')} {_list_values(results, key, v)}" for key, v in every.items()
        )
        begin = "The paper does not say, and here is" if is_papers else "Trained with"
        lines.append(f"{begin}: {used}; scores of the last epoch.")
    fits = ", which fits the paper's numbers" if is_papers else ""
    lines.append(f"Metrics follow the convention pml of docs/reference/metrics.md{fits}. {CUTS}")
    return lines


def _describe_answers(results: Sequence[Result], beside: str) -> list[str]:
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


def _describe_search(results: Sequence[Result]) -> str:
    """Say what settings were chosen by, how often they were level, and where the grid ended."""
    searches = [result.spec.search for result in results if result.spec.search is not None]
    by = dict.fromkeys(CRITERIA[search.criterion] for search in searches)
    names = dict.fromkeys(name.replace("_", " ") for search in searches for name in search.grid)
    text = (
        f"Chosen for each method and repeat: {' and '.join(names)}, by {', or '.join(by)}, on what "
        f"was said about {searches[0].held_out:.0%} of the training rows."
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
