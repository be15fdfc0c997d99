"""Tables of the documents, one function each, made from committed results.

A table is a list of rows of cells, the first row the heads of its columns. ``TABLES`` names the
functions; ``fill.py`` puts a table between the markers that ask for it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from comes.datasets import KNOWN
from comes.experiment.results import RepeatResult, Result, read_results
from comes.methods import METHODS, table_rank
from comes.metrics import METRICS
from comes.report.experiment_page import (
    list_means,
    metric_table,
    sweep_to_markdown,
    title_of,
    to_markdown,
)
from command_options import options_table

ROOT = Path(__file__).parent.parent
PHOTOS = "mirflickr5000"
FOUR = ("emotions", "yeast", "scene", "enron")
SETS_OF = {"six": (*FOUR, "scenes", "bibtex"), "four": FOUR}
FIRST_SEED = 0
DEFAULTS_METRICS = ("average_precision", "mean_average_precision", "held_out")
POOLED_ERRORS = ("rate_error", "yes_error", "prior_error")

Table = list[list[str]]


def stored(name: str) -> Any:
    """Return a result of a script in ``experiments/``."""
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())


def measured(name: str) -> Any:
    """Return a result of a script in ``benchmarks/``."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def read_experiment(name: str) -> list[Result]:
    """Return the results of an experiment that ``comes bench`` has run."""
    return read_results([ROOT / "experiments" / "results" / name])


def runs_table(experiment: str, metric: str) -> str:
    """Return a metric of a stored experiment as its report shows it."""
    return to_markdown(metric_table(read_experiment(experiment), metric))


def scores_code(experiment: str, metric: str) -> str:
    """Return a metric of a stored experiment as code: methods in columns, data sets in rows."""
    means = pd.DataFrame(list_means(read_experiment(experiment)))
    scores = means.pivot_table(index="data", columns="method", values=metric)
    lines = [f"        {name!r}: {scores[name].round(4).tolist()}," for name in scores]
    code = ["scores = pd.DataFrame(", "    {", *lines, "    }", ")"]
    return "\n".join(["```python", "import pandas as pd", "", *code, "```"]).replace("'", '"')


def read_fair() -> list[Result]:
    """Return the results of a budget for each method; of sets not run again, the early ones."""
    now = read_experiment("fair")
    again = {result.names.data for result in now}
    early = [r for r in read_experiment("fair-early") if r.names.data not in again]
    return now + [replace(r, names=replace(r.names, experiment="fair")) for r in early]


def fair_table(metric: str) -> str:
    """Return a metric with a budget for each method as a report shows it."""
    return to_markdown(metric_table(read_fair(), metric))


def search_table() -> Table:
    """Return what two criteria of a search chose on the same folds, and what came of it."""
    early = {r.names.method: r for r in read_experiment("fair-early") if r.names.data == PHOTOS}
    table = [["method", "chosen by the risk of training", "AP", "by the likelihood", "AP"]]
    for result in sorted(read_experiment("fair"), key=lambda r: table_rank(r.names.method)):
        cells = [result.names.method]
        for own in (early[result.names.method], result):
            repeats = own.repeats[: len(result.repeats)]
            values = own.values("average_precision")[: len(repeats)]
            cells += [show_choices(repeats), f"{values.mean():.3f}"]
        table.append(cells)
    return table


def show_choices(repeats: Sequence[RepeatResult]) -> str:
    """Return the learning rates and numbers of epochs that a search found, and how often."""
    found = Counter(tuple((repeat.chosen or {}).values()) for repeat in repeats)
    return "; ".join(f"{rate:g}, {epochs} ({n})" for (rate, epochs), n in found.most_common())


def sweep_table(experiment: str, metric: str) -> str:
    """Return a metric of a stored sweep as its report shows it."""
    return sweep_to_markdown(read_experiment(experiment), metric)


def demo_table() -> Table:
    """Return what ``comes demo`` prints."""
    rows = stored("demo")
    names = stored_metrics(rows)
    return [
        ["trained on", *map(title_of, names)],
        *([row["title"], *metric_cells(row["metrics"], names)] for row in rows),
    ]


def methods_table(data: str) -> Table:
    """Return every method and variant on one data set."""
    rows = stored("methods")[data]
    names = stored_metrics(rows)
    table = [["method", "variant", *map(title_of, names)]]
    for row in rows:
        method = row["method"] + (" (rates of the prior)" if "flip_rate" in row else "")
        method += f" (Adam, {row['learning_rate']})" if "optimizer" in row else ""
        method += " (no flood)" if row.get("flood_level") == 0 else ""
        failed = ["runs away", *[""] * (len(names) - 1)]
        cells = metric_cells(row["metrics"], names) if "metrics" in row else failed
        table.append([method, row["variant"], *cells])
    return table


def redrawn_table() -> Table:
    """Return COMES-RL on candidates of a file and on redrawn ones, without and with a flood."""
    keys = ("average_precision", "risk", "high", "floor")
    heads = ["candidates", "flood level", "average precision ↑", "risk", "at most", "floor"]
    return [
        heads,
        *(
            [row["candidates"], row["flood_level"], *(f"{row[key]:.3f}" for key in keys)]
            for row in stored("redrawn")["rows"]
        ),
    ]


def stored_metrics(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the metrics that some row has, in the order of ``METRICS``."""
    present = {name for row in rows for name in row.get("metrics", {})}
    return [name for name in METRICS if name in present]


def metric_cells(metrics: dict[str, float], names: Sequence[str]) -> list[str]:
    """Return the values of a row; a metric that it does not have is an empty cell."""
    return [f"{metrics[name]:.3f}" if name in metrics else "" for name in names]


def names_table() -> Table:
    """Return the data sets that have a name."""
    table = [["name", "rows", "features", "labels", ""]]
    for known in KNOWN.values():
        for split, n in known.rows.items():
            name = f"{known.name}:{split}" if split else known.name
            features = str(known.n_features or "images")
            table.append([name, str(n or "varies"), features, str(known.n_labels), known.about])
    return table


def read_time_table() -> Table:
    """Return how long data sets take to read, and how much memory."""
    return [
        ["data", "CPU seconds", "peak MB", "kept MB"],
        *(
            [
                name,
                f"{r['now']['cpu_seconds']:.2f}",
                f"{r['now']['peak_megabytes']:.0f}",
                f"{r['now']['kept_megabytes']:.0f}",
            ]
            for name, r in measured("read_time")["sets"].items()
        ),
    ]


def large_table_table() -> Table:
    """Return what reading a csv of a gigabyte takes, by pandas alone and by us."""
    results = measured("large_table")
    return [
        ["reader", "CPU seconds", "peak MB", "peak / frame"],
        *(
            [
                name,
                f"{results[key]['cpu_seconds']:.0f}",
                f"{results[key]['peak_megabytes']:.0f}",
                f"{results[key]['peak_over_frame']:.1f}",
            ]
            for key, name in (("pandas", "`pandas.read_csv` alone"), ("now", "`open_dataset`"))
        ),
    ]


def stream_memory_table() -> Table:
    """Return the memory and the time of one pass over shards."""
    return [
        ["shards", "rows", "MB on disk", "peak MB", "open s", "statistics s", "read s"],
        *(
            [
                form,
                str(r["rows"]),
                f"{r['stored_megabytes']:.0f}",
                f"{r['peak_megabytes']:.0f}",
                f"{r['open_seconds']:.1f}",
                f"{r['statistics_seconds']:.1f}",
                f"{r['read_seconds']:.1f}",
            ]
            for form, pair in measured("stream_memory")["forms"].items()
            for r in (pair["once"], pair["ten_times"])
        ),
    ]


def many_labels_table() -> Table:
    """Return what an epoch over very many labels takes."""
    columns = ["method", "rows", "labels", "answers", "on", "epoch s", "step ms", "most GB"]
    return [
        [*columns, "GB on GPU"],
        *(
            [
                r["method"],
                str(r["rows"]),
                str(r["labels"]),
                r["answers"],
                "GPU" if r["device"] == "cuda" else f"{r['machine']['threads']} cores",
                f"{r['seconds_of_epoch']:.0f}",
                f"{1000 * r['seconds_of_step']:.1f}",
                f"{r['gb_at_most']:.1f}",
                f"{r['gb_on_gpu']:.1f}" if "gb_on_gpu" in r else "",
            ]
            for r in measured("many_labels")["runs"]
        ),
    ]


def extreme_table() -> Table:
    """Return how ours and LibMultiLabel do with very many labels."""
    return [
        ["set", "labels", "known", "learner", "P@1", "P@3", "P@5", "training s", "most MB"],
        *(
            [
                r["set"],
                str(r["labels"]),
                r["known"],
                r["learner"],
                *(f"{r[f'precision_at_{k}']:.3f}" for k in (1, 3, 5)),
                f"{r['seconds_of_training']:.0f}",
                str(r["peak_megabytes"]),
            ]
            for r in stored("extreme")["rows"]
        ),
    ]


def prior_errors_table() -> Table:
    """Return the errors of the estimators of class priors."""
    result = stored("priors")["estimators"]
    rows = {(r["data"], r["exclude_rate"], r["method"]): r for r in result}
    methods = list(dict.fromkeys(method for _, _, method in rows))
    table = [["data", "exclude rate", *methods]]
    for data, rate in dict.fromkeys(key[:2] for key in rows):
        errors = (f"{rows[data, rate, method]['error']:.3f}" for method in methods)
        table.append([data, str(rate), *errors])
    for key, name in (("error", "mean"), ("seconds", "seconds")):
        means = (mean(r[key] for r in result if r["method"] == method) for method in methods)
        table.append([name, "", *(f"{value:.3f}" for value in means)])
    return table


def prior_training_table() -> Table:
    """Return the average precision of COMES-HL by where its priors come from."""
    values: dict[tuple[str, float], dict[str, list[float]]] = {}
    for r in stored("priors")["training"]:
        by_prior = values.setdefault((r["data"], r["exclude_rate"]), {})
        by_prior.setdefault(r["prior"], []).append(r["average_precision"])
    priors = dict.fromkeys(name for by_prior in values.values() for name in by_prior)
    table = [["data", "exclude rate", *("true priors" if p == "true" else p for p in priors)]]
    for (data, rate), by_prior in values.items():
        table.append([data, str(rate), *(f"{mean(by_prior[prior]):.3f}" for prior in priors)])
    return table


def rates_table() -> Table:
    """Return the errors of exclude rates and class priors under independent draws."""
    errors = [f"rate_error {m}" for m in ("hierarchical", "best-bin")]
    errors += [f"prior_error {m}" for m in ("hierarchical", "best-bin", "known", "plug-in")]
    table = [
        [
            "data",
            "exclude rate",
            *("rate: hierarchical", "best-bin"),
            *("prior: hierarchical", "best-bin", "rate known", "plug-in"),
            *("within 2 standard errors", "standard error"),
        ]
    ]
    for r in stored("rates")["rows"]:
        cells = [*(f"{r[name]:.3f}" for name in errors), f"{r['inside']:.0%}"]
        table.append([r["data"], str(r["exclude_rate"]), *cells, f"{r['standard_error']:.3f}"])
    return table


def real_rates_table() -> Table:
    """Return the errors of class priors on real candidates, by estimator."""
    return [
        ["data", "hierarchical", "best-bin", "within 2 standard errors"],
        *(
            [
                r["data"],
                *(f"{r[f'prior_error {m}']:.4f}" for m in ("hierarchical", "best-bin")),
                f"{r['inside']:.0%}",
            ]
            for r in stored("rates")["real"]
        ),
    ]


def pooled_rates_table() -> Table:
    """Return the errors of rates that all labels share, from counts, beside those with features."""
    heads = ["data", "labels", "drawn", "rate", "b", "prior", "within 2 standard errors"]
    table = [[*heads, "flag of most labels", "with features: rate", "b", "prior"]]
    for r in stored("pooled_rates")["rows"]:
        flags = ", ".join(f"{flag} ({n})" for flag, n in r["flags"].items())
        own, other = (
            [f"{errors[k]:.2g}" if k in errors else "" for k in POOLED_ERRORS]
            for errors in (r, r.get("features", {}))
        )
        cells = [r["data"], str(r["q"]), str(r["drawn"]), *own]
        table.append([*cells, f"{r['inside']:.0%}", flags, *other])
    return table


def real_priors_table() -> Table:
    """Return the errors of priors on the candidates that data sets come with."""
    return [
        ["data", "error", "labels inside their bounds", "seconds"],
        *(
            [r["data"], f"{r['error']:.4f}", f"{r['inside_bounds']:.0%}", f"{r['seconds']:.0f}"]
            for r in stored("priors")["real"]
        ),
    ]


def drawn_rates_table() -> Table:
    """Return how near estimated rates of answers are to counts that know the truth."""
    heads = ["a, b", "runs", "a within two standard errors", "b", "root mean square of a", "of b"]
    return [
        heads,
        *(
            [
                rates,
                str(row["runs"]),
                *(f"{share:.0%}" for share in row["within_two_errors"]),
                *(f"{value:.3f}" for value in row["root_mean_square"]),
            ]
            for rates, row in stored("answer_rates")["summary"].items()
        ),
    ]


def simulation_table() -> Table:
    """Return the bias and the coverage of estimated metrics."""
    result = stored("selection_simulation")
    metrics = next(iter(result.values()))
    table = [["exclude rate, prior", *(name.replace("_", " ") for name in metrics)]]
    for name, row in result.items():
        cells = (f"{m['bias_in_standard_errors']:+.1f}, {m['coverage']:.1%}" for m in row.values())
        table.append([name, *cells])
    return table


def intervals_table() -> Table:
    """Return how often intervals with estimated priors are given, and hold the truth."""
    result = stored("intervals")
    parts = {"all": result["metrics"], **result["by_data"], **result["by_rate"]}
    names = list(result["metrics"])
    table = [["draws of", *(name.replace("_", " ") for name in names)]]
    for part, metrics in parts.items():
        title = f"exclude rate {part}" if part in result["by_rate"] else part
        counts = (metrics[name] for name in names)
        table.append([title, *(f"{c['held']} of {c['printed']} of {c['draws']}" for c in counts)])
    return table


def choosing_table() -> Table:
    """Return how well candidates order 36 models, and what the choice costs."""
    runs = stored("selection")["runs"]
    table = [
        [
            "data",
            "exclude rate",
            "with ranking loss",
            "with average precision",
            "regret",
            "with average precision, estimated prior",
            "regret",
        ]
    ]
    for data, rate in dict.fromkeys((run["data"], run["rate"]) for run in runs):
        own = [run for run in runs if (run["data"], run["rate"]) == (data, rate)]
        agreement = mean(
            spearmanr(run["estimates"]["true"], [t["ranking_loss"] for t in run["truth"]]).statistic
            for run in own
        )
        cells = [data, "its own" if rate is None else str(rate), f"{agreement:.2f}"]
        for prior in ("true", "estimated"):
            choices = [run["choices"][prior] for run in own]
            cells.append(f"{mean(choice['rank_correlation'] for choice in choices):.2f}")
            cells.append(f"{mean(choice['regret'] for choice in choices):.3f}")
        table.append(cells)
    return table


def choices_table() -> Table:
    """Return the model chosen in every run at an exclude rate of 0.1."""
    table = [["data", "seed", "chosen", "best", "regret", "interval"]]
    for run in stored("selection")["runs"]:
        if run["rate"] == 0.1:
            choice = run["choices"]["true"]
            low, high = choice["interval"]
            models = (", ".join(map(str, choice[name])) for name in ("chosen", "best"))
            interval = f"{low:.2f} to {high:.2f}"
            cells = [run["data"], str(run["seed"]), *models, f"{choice['regret']:.3f}", interval]
            table.append(cells)
    return table


def criteria_table() -> Table:
    """Return what choosing by each criterion costs, by average precision and by mAP."""
    runs = stored("criteria")["runs"]
    parts = {
        said if rate is None else f"{said}, {rate}": [
            run for run in runs if (run["said"], run["rate"]) == (said, rate)
        ]
        for said, rate in sorted({(run["said"], run["rate"] or 0.0) for run in runs})
        for rate in [rate or None]
    }
    names = list(runs[0]["found"][0]["criteria"])
    table = [["criterion", *parts, "all", "all, within a method"]]
    for name in names:
        cells = [
            "" if "risk" in name else show_regret(own, name) for own in (*parts.values(), runs)
        ]
        table.append([name, *cells, show_regret(runs, name, within=True)])
    return table


def show_regret(runs: list[Any], criterion: str, *, within: bool = False) -> str:
    """Return how far the models chosen are behind the best, on average over runs and methods."""
    return " / ".join(
        f"{mean(find_regrets(runs, criterion, metric, within=within)):.3f}"
        for metric in ("average_precision", "mean_average_precision")
    )


def find_regrets(runs: list[Any], criterion: str, metric: str, *, within: bool) -> list[float]:
    """Return how far the model that a criterion chooses is behind the best, for every choice."""
    regrets = []
    for run in runs:
        groups: dict[str, list[Any]] = {}
        for model in run["found"]:
            groups.setdefault(model["model"][0] if within else "", []).append(model)
        for models in groups.values():
            chosen = min(models, key=lambda model: model["criteria"][criterion])
            regrets.append(max(model[metric] for model in models) - chosen[metric])
    return regrets


def agreement_table() -> Table:
    """Return how estimated and true metrics agree on the order of 36 models."""
    order = list(dict.fromkeys(run["data"] for run in stored("selection")["runs"]))
    result = sorted(stored("agreement"), key=lambda row: order.index(row["data"]))
    titles = {"hamming_loss": "Hamming loss", "macro_f1": "macro F1", "macro_auc": "macro AUC"}
    metrics = list(result[0]["correlations"])
    return [
        ["data", "exclude rate", *(titles[name] for name in metrics)],
        *(
            [r["data"], str(r["rate"]), *(f"{r['correlations'][name]:.2f}" for name in metrics)]
            for r in result
        ),
    ]


def assumption_table() -> Table:
    """Return for how many labels exclusion depends on the features."""
    table = [["data", "labels", "exclusion depends on features", "AUC of predicting it"]]
    for row in stored("assumption"):
        broken = sum(says == "not constant" for says in row["says"])
        aucs = f"{min(row['auc']):.2f} to {max(row['auc']):.2f}"
        table.append([row["data"], str(len(row["says"])), str(broken), aucs])
    return table


def image_choice_table() -> Table:
    """Return the heads chosen on what was said, beside the default and the best."""
    table = [
        [
            "drawn",
            "label seed",
            "chosen: reads, temperature, standard errors",
            "its mAP",
            "default's mAP",
            "best by true labels",
        ]
    ]
    for run in stored("image_choice")["runs"]:
        chosen = run["chosen"]
        settings = f"{chosen['features']}, {chosen['temperature']:g}, {chosen['standard_errors']:g}"
        values = (f"{run[name]['mAP']:.3f}" for name in ("chosen", "default", "best_by_truth"))
        table.append([_name_draw(run), str(run["seed"]), settings, *values])
    return table


def image_students_table() -> Table:
    """Return what teacher and student bring to the default head, means over label seeds."""
    titles = {
        "teacher": "teacher: classes and clusters",
        "student": "student: pooled features",
        "both": "both (default)",
        "second": "both, with a second student",
        "hamming_loss": "Hamming loss of both",
        "calibration_error": "calibration error of both",
    }
    runs = stored("image_choice")["runs"]
    draws = list(dict.fromkeys(_name_draw(run) for run in runs))
    table = [["mAP", *draws]]
    for name, title in titles.items():
        values = [
            mean(run["about_default"][name] for run in runs if _name_draw(run) == drawn)
            for drawn in draws
        ]
        table.append([title, *(f"{value:.3f}" for value in values)])
    return table


def _name_draw(run: dict[str, Any]) -> str:
    """Return how the labels of a run were drawn, in words."""
    return "answers" if run["case"] == "answers" else f"case {run['case']}"


def image_speed_table() -> Table:
    """Return images per second, and the time relative to BCE."""
    titles = {
        "bce": "BCE",
        "comes_hl": "COMES-HL",
        "comes_rl": "COMES-RL",
        "likelihood": "likelihood",
        "not_recorded": "BCE, step not recorded",
        "synthetic": "BCE, one batch that is on the GPU already",
    }
    result = measured("image_speed")
    seconds = result["seconds_per_epoch"]
    table = [["", "images per second", "time, BCE = 1"]]
    for name, value in result["images_per_second"].items():
        table.append([titles[name], f"{value:.0f}", f"{seconds[name] / seconds['bce']:.2f}"])
    return table


def image_features_table() -> Table:
    """Return images per second and memory of features of many pictures, and what a kill cost."""
    table = [["", "images", "decoding alone", "features", "memory", "computed again after a kill"]]
    for name in ("image_features", "image_features_cuda"):
        if not (ROOT / "benchmarks" / "results" / f"{name}.json").exists():
            continue
        result = measured(name)
        machine, killed = result["machine"], result["killed"]
        where = machine["gpu"] if "cuda" in name else f"{machine['cores']} cores"
        again = killed["kept"] + killed["computed_after"] - killed["images"]
        for run in result["runs"]:
            table.append(
                [
                    f"{result['backbone']}, {where}",
                    str(run["images"]),
                    f"{result['decoding_images_per_second']:.0f} per second",
                    f"{run['images_per_second']:.0f} per second",
                    f"{run['memory_mib']} MiB",
                    str(again) if run["images"] == killed["images"] else "",
                ]
            )
    return table


def answers_table(metric: str) -> Table:
    """Return a metric of every learner on simulated answers, by set and on average."""
    rows = stored("answers")["rows"]
    names = list(dict.fromkeys(row["set"] for row in rows))
    table = [[title_of(metric), *names, "mean"]]
    for learner in dict.fromkeys(row["learner"] for row in rows):
        own = [row for row in rows if row["learner"] == learner]
        of_set = [mean(row[metric] for row in own if row["set"] == name) for name in names]
        table.append([learner, *(f"{value:.3f}" for value in (*of_set, mean(of_set)))])
    return table


def answer_rates_table() -> Table:
    """Return estimated rates of answers beside those that the truth counts, over sets and seeds."""
    table = [["answers", "rate of", "mean distance", "mean standard error", "within two of them"]]
    rows = stored("answers")["rates"]
    for sees, rate in dict.fromkeys((row["sees"], row["rate"]) for row in rows):
        own = [row for row in rows if (row["sees"], row["rate"]) == (sees, rate)]
        distances = [abs(row["estimated"] - row["counted"]) for row in own]
        hits = sum(d <= 2 * row["error"] for d, row in zip(distances, own, strict=True))
        error = mean(row["error"] for row in own)
        cells = [f"{mean(distances):.3f}", f"{error:.3f}", f"{hits} of {len(own)}"]
        table.append([sees, rate, *cells])
    return table


def instance_rates_table(metric: str, *names: str) -> Table:
    """Return a metric of every learner with rates that depend on x, by how candidates were drawn.

    Means over seeds and then over the named sets.
    """
    titles = {"held_out": "held-out loss ↓", "prior_error": "error of the class prior ↓"}
    rows = [row for row in stored("instance_rates")["rows"] if row["set"] in names]
    draws = list(dict.fromkeys(row["draw"] for row in rows))
    heads = ["mirflickr5000" if draw == "its own" else draw for draw in draws]
    table = [[titles.get(metric) or title_of(metric), *heads]]
    for learner in dict.fromkeys(row["learner"] for row in rows):
        cells = []
        for draw in draws:
            own = [row for row in rows if (row["learner"], row["draw"]) == (learner, draw)]
            sets = dict.fromkeys(row["set"] for row in own)
            of_set = [mean(row[metric] for row in own if row["set"] == name) for name in sets]
            cells.append(f"{mean(of_set):.3f}" if of_set else "")
        table.append([learner, *cells])
    return table


def text_terms_table() -> Table:
    """Return the likelihood loss of held-out comments, by the terms that are counted."""
    rows = stored("text_terms")["rows"]
    ways = dict.fromkeys((row["longest"], row["most_terms"]) for row in rows)
    table = [["terms", "at most", "candidates ↓", "answers ↓", "seconds of training"]]
    for longest, most in ways:
        own = {r["labels"]: r for r in rows if (r["longest"], r["most_terms"]) == (longest, most)}
        losses = [f"{own[labels]['held_out_loss']:.4f}" for labels in ("candidates", "answers")]
        seconds = mean(row["seconds"] for row in own.values())
        words = "words" if longest == 1 else "words and pairs"
        table.append([words, str(most), *losses, f"{seconds:.0f}"])
    return table


def texts_table() -> Table:
    """Return what is learned of GoEmotions, by features and by what learners see."""
    heads = ["texts", "learner", "AP ↑", "mAP ↑", "minutes", "peak MB"]
    return [
        heads,
        *(
            [
                f"{row['texts']} ({row['features']})",
                row["learner"],
                f"{row['average_precision']:.3f}",
                f"{row['mean_average_precision']:.3f}",
                f"{(row['seconds_of_features'] + row['seconds_of_training']) / 60:.1f}",
                str(row["peak_megabytes"]),
            ]
            for row in stored("texts")["rows"]
        ),
    ]


def text_features_table() -> Table:
    """Return what it takes to turn comments into features."""
    heads = ["texts", "features", "seconds", "again", "peak MB", "matrix MB"]
    keys = ("features", "seconds", "seconds_again", "peak_megabytes", "matrix_megabytes")
    ways = measured("text_features")["ways"]
    return [heads, *([name, *(str(row[key]) for key in keys)] for name, row in ways.items())]


def tox21_table() -> Table:
    """Return the metrics of tested pairs of Tox21, means over splits."""
    rows = stored("tox21")["rows"]
    table = [["learner", "macro average precision ↑", "macro AUC ↑"]]
    for learner in dict.fromkeys(row["learner"] for row in rows):
        own = [row for row in rows if row["learner"] == learner]
        names = ("macro_average_precision", "macro_auc")
        table.append([learner, *(f"{mean(row[name] for row in own):.3f}" for name in names)])
    return table


def circle_table() -> Table:
    """Return what training on answers of robots reaches, and on the candidates that they leave."""
    rows = stored("circle")
    learned = [dict(((one["method"], one["given"]), one) for one in row["learned"]) for row in rows]
    table = [["trained on", "method", *(f"seed {row['seed']}" for row in rows), "mean"]]
    for method, given in learned[0]:
        values = [own[method, given]["average_precision"] for own in learned]
        title = {"answers": "answers", "candidates": "candidates alone"}[given]
        cells = [f"{value:.3f}" for value in (*values, mean(values))]
        table.append([title, METHODS[method].title, *cells])
    return table


def active_draws_table() -> Table:
    """Return what active draws bring, beside as many random ones: means over the seeds."""
    rows = stored("active_draws")["rows"]
    names = {"average_precision": "AP ↑", "mean_average_precision": "mAP ↑"}
    names |= {"error": "error of shares ↓", "plain_error": "error of plain shares ↓"}
    names |= {"width": "width of intervals ↓"}
    table = [["data", "drawn", "questions", *names.values(), "truth inside"]]
    for data in dict.fromkeys(row["data"] for row in rows):
        for way in ("random", "active"):
            own = [row[way] for row in rows if row["data"] == data]
            inside, count = (sum(row[name] for row in own) for name in ("inside", "intervals"))
            cells = [f"{mean(row[name] for row in own):.3f}" for name in names]
            told = f"{int(inside)} of {int(count)}"
            table.append([data, way, str(own[0]["questions"]), *cells, told])
    return table


def ask_next_table() -> Table:
    """Return what more questions bring, drawn or chosen by a model: the mean over the seeds."""
    rows = stored("ask_next")["rows"]
    names = {"AP": "average_precision", "mAP": "mean_average_precision"}
    stages = ("first", "more drawn", "more chosen")
    table = [
        [
            "data",
            "questions of each kind",
            *(f"{stage}: {name}" for name in names for stage in stages),
        ]
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        values = (mean(row[stage][m] for row in own) for m in names.values() for stage in stages)
        table.append([data, str(own[0]["questions"]), *(f"{value:.3f}" for value in values)])
    return table


def annotation_scale_table() -> Table:
    """Return what a large annotation project costs, before and now."""
    found = measured("annotation_scale")
    page, answer = found["lead_milliseconds"], found["answer_milliseconds"]
    rows = [["", "before", "now", "now over before"]]
    for title, key in (("init", "init_cpu_seconds"), ("export as .csv", "export_cpu_seconds")):
        row = found[key]
        cells = [f"{row[name]:g}" for name in ("before", "after", "after_over_before")]
        rows.append([f"{title}, CPU seconds", *cells])
    ratio = page["after_over_before_p95"]
    cells = [f"{page['before_p95']:g}", f"{page['after_p95']:g}", f"{ratio:.2g}"]
    rows.append(["the lead's page, p95, milliseconds", *cells])
    for state in ("closed", "open"):
        before, after = (answer[f"{title}_{state}_p95"] for title in ("before", "after"))
        title = f"an answer while that page is {state}, p95, milliseconds"
        rows.append([title, f"{before:g}", f"{after:g}", f"{after / before:.2g}"])
    before, after = (answer[f"{title}_open_over_closed"] for title in ("before", "after"))
    rows.append(["the same, open over closed", f"{before:g}", f"{after:g}", ""])
    return rows


def annotation_load_table() -> Table:
    """Return how long an answer takes, by who answers."""
    titles = {
        "quick_people": "a quarter of a second between answers, on average",
        "no_pause": "no pause",
    }
    columns = {
        "one_p50_milliseconds": "one robot, p50",
        "one_p95_milliseconds": "one, p95",
        "fifty_p50_milliseconds": "fifty, p50",
        "fifty_p95_milliseconds": "fifty, p95",
        "fifty_p95_over_one_p95": "fifty's p95 over one's",
        "fifty_per_second": "answers per second",
    }
    return [
        ["", *columns.values()],
        *(
            [titles[name], *(f"{row[column]:g}" for column in columns)]
            for name, row in measured("annotation_load")["sqlite"].items()
        ),
    ]


def annotation_kills_table() -> Table:
    """Return what is stored after servers were killed under simulated annotators."""
    titles = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    columns = {
        "servers": "servers",
        "robots": "robots",
        "kills_at_work": "kills while they answer",
        "acknowledged": "answers acknowledged",
        "stored": "stored",
        "lost": "lost",
        "doubled_cards": "doubled",
        "changed": "changed",
    }
    rows = measured("annotation_kills")
    return [
        ["", *columns.values()],
        *([title, *(str(rows[name][key]) for key in columns)] for name, title in titles.items()),
    ]


def annotation_attacks_table() -> Table:
    """Return how long an answer takes before and during attacks."""
    columns = {
        "before_p50_milliseconds": "p50 before",
        "during_p50_milliseconds": "p50 during",
        "before_p95_milliseconds": "p95 before",
        "during_p95_milliseconds": "p95 during",
        "during_over_before_p95": "during over before, p95",
        "resident_at_most_megabytes": "memory at most, MB",
    }
    found = measured("annotation_attacks")
    return [
        ["attack", *columns.values()],
        *(
            [name.replace("_", " "), *(f"{found[name][column]:g}" for column in columns)]
            for name in ("idle_sockets", "slow_headers", "slow_bodies", "decode_bombs")
        ),
    ]


def annotation_photo_table() -> Table:
    """Return bytes and milliseconds of a photo in its display sizes."""
    rows = []
    for name, row in measured("annotation_attacks")["photo"].items():
        later = row.get("later_milliseconds")
        title = "whole" if name == "full" else f"{name} pixels wide"
        again = "–" if later is None else f"{later:g}"
        rows.append([title, f"{row['bytes'] / 1000:.0f}", f"{row['milliseconds']:g}", again])
    return [["size", "kB", "ms, the first time", "ms, later"], *rows]


def pair_sums_table() -> Table:
    """Return the ranking risk against a broadcast over all pairs."""
    table = [
        ["labels", "comes", "broadcast", "ratio", "difference of the value", "of the gradient"]
    ]
    for q, row in measured("pair_sums")["against_plain"].items():
        milliseconds = (f"{1000 * row[way]:.3g}" for way in ("comes", "plain"))
        differences = (f"{row[f'{what}_difference']:.1g}" for what in ("value", "gradient"))
        table.append([q, *milliseconds, f"{row['plain_over_comes']:.3g}", *differences])
    return table


def roofline_ranking_table() -> Table:
    """Return milliseconds of a step of the ranking risk, and of what it must at least do."""
    heads = ["labels", "step", "products", "memory", "calls of torch", "largest / step"]
    names = ("seconds", "products", "memory", "calls")
    return [
        heads,
        *(
            [q, *(f"{1000 * row[name]:.3g}" for name in names), f"{row['share']:.0%}"]
            for q, row in measured("roofline")["ranking"].items()
        ),
    ]


def roofline_sparse_table() -> Table:
    """Return seconds of an epoch on sparse rows, and of what it must at least do."""
    names = ("seconds", "products", "memory")
    return [
        ["data", "epoch", "products", "memory", "sum / epoch"],
        *(
            [name, *(f"{row[part]:.3g}" for part in names), f"{row['share']:.0%}"]
            for name, row in measured("roofline")["sparse"].items()
        ),
    ]


def likelihood_step_table() -> Table:
    """Return the time of a training step of the likelihood, over that of BCE."""
    heads = ["data", "answers", "on", "likelihood / BCE", "with class priors that are known / BCE"]
    names = ("likelihood_over_bce", "likelihood_near_prior_over_bce")
    return [
        heads,
        *(
            [*title.split(", "), *(f"{row[name]:.2f}" for name in names)]
            for file in ("likelihood_step", "likelihood_step_cuda")
            for title, row in measured(file).items()
            if isinstance(row, dict) and "bce" in row
        ),
    ]


def mixed_table_table() -> Table:
    """Return average precision on a table of many kinds of columns, by command and by hand."""
    result = measured("mixed_table")
    rows = [["draw", "`comes fit FILE --labels maybe`", "pipeline by hand"]]
    for row in result["draws"]:
        rows.append([str(row["seed"]), f"{row['by_command']:.4f}", f"{row['by_hand']:.4f}"])
    return rows


def messy_table_table() -> Table:
    """Return average precision on a table as people write it, and on the same one cleaned."""
    rows = [["draw", "as written", "cleaned by hand", "pipeline by hand"]]
    for row in measured("messy_table")["draws"]:
        scores = [f"{row[name]:.4f}" for name in ("as_written", "cleaned", "by_hand")]
        rows.append([str(row["seed"]), *scores])
    return rows


def mixed_encoding_table() -> Table:
    """Return what it costs to encode many rows."""
    row = measured("mixed_table")["encoding"]
    heads = ["rows", "features", "learned in", "encoded in", "matrix", "peak beside the table"]
    seconds = [f"{row[f'{name}_seconds']:g} s" for name in ("fit", "transform")]
    sizes = [f"{row[f'{name}_mb']:g} MB" for name in ("matrix", "peak")]
    return [heads, [f"{row['rows']:,}", f"{row['features']:,}", *seconds, *sizes]]


def default_time_table() -> Table:
    """Return seconds of a whole fit on a CPU, by default and with the settings of the paper."""
    rows = measured("default_time")["seconds"]
    heads = ["exclude rate", "as published", "by default", "ratio"]
    return [heads, *seconds(rows, "published default default_over_published")]


def default_cost_table() -> Table:
    """Return seconds of a fit on a GPU, by default and with the settings of the paper, by set."""
    rows = stored("defaults")["rows"]
    table = [["data", "COMES-HL, as published", "default", "ratio"]]
    for name in dict.fromkeys(row["set"] for row in rows if "seconds" in row):
        of_each: dict[str, list[float]] = {}
        for row in rows:
            if row["set"] == name and row.get("device") == "cuda":
                of_each.setdefault(row["learner"], []).append(row["seconds"])
        learners = ("COMES-HL, as published", "default, priors known")
        if all(learner in of_each for learner in learners):
            paper, ours = (mean(of_each[learner]) for learner in learners)
            table.append([name, f"{paper:.1f}", f"{ours:.1f}", f"{ours / paper:.2f}"])
    return table


def fit_time_table() -> Table:
    """Return seconds per epoch against a plain loop."""
    rows = measured("fit_time")["seconds_per_epoch"]
    return [["data", "comes", "plain", "ratio"], *seconds(rows, "comes plain plain_over_comes")]


def against_others_table() -> Table:
    """Return seconds of a whole fit, here and in other libraries."""
    rows = measured("against_others")["seconds"]
    heads = ["data", "comes", "scikit-learn's MLPClassifier", "skorch"]
    return [heads, *seconds(rows, "comes scikit_learn skorch")]


def many_trainings_table() -> Table:
    """Return seconds of ten trainings, by how they are run."""
    rows = measured("many_trainings")["choices"]
    heads = ["features", "batched", "one by one", "two processes"]
    return [heads, *seconds(rows, "batched one_by_one processes")]


def gpu_epochs_table() -> Table:
    """Return seconds per epoch on a GPU."""
    rows = measured("gpu")["seconds_per_epoch"]
    heads = ["data", "kernel by kernel", "as a graph", "ten folds at once"]
    return [heads, *seconds(rows, "plain graph ten_at_once")]


def gpu_methods_table() -> Table:
    """Return seconds of ten folds of every method on a GPU."""
    values = measured("gpu")["seven_methods_ten_folds"]
    return [["method", "seconds"], *([name, f"{value:.3g}"] for name, value in values.items())]


def prior_time_table() -> Table:
    """Return seconds of estimating all class priors of YeastBP."""
    result = measured("prior_time")
    table = [["way", "seconds", "ratio"]]
    for name, value in result["seconds"].items():
        ratio = result["ratio"].get(name, 1.0)
        table.append([name.replace("_", " "), f"{value:.3g}", f"{ratio:.3g}"])
    return table


def start_time_table() -> Table:
    """Return seconds of a whole process."""
    values = measured("start_time")["seconds"]
    return [["command", "seconds"], *([f"`{name}`", f"{s:.3g}"] for name, s in values.items())]


def clusters_table() -> Table:
    """Return what came back from clusters, with and without a kill."""
    found = measured("clusters")
    table = [["", "results", "same bytes", "seconds"]]
    alone = found["alone"]
    table.append(["one process", str(alone["results"]), "", f"{alone['seconds']:.3g}"])
    for backend, title in (("dask", "Dask"), ("ray", "Ray")):
        for name, row in found[backend].items():
            killed = f", a kill after {row['results_at_the_kill']}" if name == "killed" else ""
            same, taken = str(row["same"]), f"{row['seconds']:.3g}"
            table.append([f"{title}{killed}", str(row["results"]), same, taken])
    return table


def seconds(rows: dict[str, dict[str, float]], columns: str) -> Table:
    """Return some columns of a measurement, a row for each name, to three digits."""
    return [
        [name, *(f"{row[column]:.3g}" for column in columns.split())] for name, row in rows.items()
    ]


def mean(values: Iterable[float]) -> float:
    """Return the mean."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def fit_checks_table() -> Table:
    """Return what is said of normal fits and of fits that went wrong."""
    rows = stored("fit_checks")["fits"]
    kinds = ("undertrained", "nothing learned", "predicts nothing", "predicts everything")
    lines = []
    for row in rows:
        said = [kind for kind in kinds if row[kind]]
        rate = "truth" if row["rate"] is None else f"{row['rate']:g}"
        cells = [row["fit"], row["set"], rate, ", ".join(said) or "–"]
        lines.append([*cells, f"{row['average_precision']:.3f}"])
    return [["fit", "data", "exclude rate", "what is said", "average precision"], *lines]


def prior_advice_table() -> Table:
    """Return what knowing class priors is said to be worth, and what it is worth."""
    rows = stored("fit_checks")["advice"]
    lines = []
    for name, rate in dict.fromkeys((row["set"], row["rate"]) for row in rows):
        own = [row for row in rows if (row["set"], row["rate"]) == (name, rate)]
        means = [sum(row[key] for row in own) / len(own) for key in ("cost", "gain")]
        said = f"{sum(row['is_said'] for row in own)} of {len(own)}"
        lines.append([name, f"{rate:g}", *(f"{mean:.3f}" for mean in means), said])
    return [["data", "exclude rate", "cost, simulated", "gain by true priors", "said"], *lines]


def _read_defaults(seed: int | None = None) -> pd.DataFrame:
    """Return what the default and other ways to train make of a set and a draw, over seeds."""
    rows = pd.DataFrame(stored("defaults")["rows"])
    rows = rows if seed is None else rows[rows["seed"] == seed]
    keys = ["draw", "set", "learner"]
    means = rows.groupby(keys, sort=False)[list(DEFAULTS_METRICS)].mean()
    means["seeds"] = rows.groupby(keys, sort=False)["seed"].nunique()
    return means.reset_index()


def defaults_table(draw: str, of: str = "six") -> Table:
    """Return means over six or four sets, for learners that were run on all of them."""
    found, sets = _read_defaults(FIRST_SEED if of == "four" else None), SETS_OF[of]
    found = found[(found["draw"] == draw) & found["set"].isin(sets)]
    counts = found.groupby("learner", sort=False)["set"].nunique()
    learners = [name for name in counts.index if counts[name] == len(sets)]
    by_set = found.pivot(index="learner", columns="set", values="average_precision")
    means = found.groupby("learner", sort=False)[list(DEFAULTS_METRICS)].mean()
    heads = ["learner", "AP ↑", "mAP ↑", "held-out loss ↓", "AP against the default: least, most"]
    rows = []
    for name in learners:
        apart = by_set.loc[name] - by_set.loc["default"]
        span = "" if name == "default" else f"{apart.min():+.3f}, {apart.max():+.3f}"
        ap, mean_ap, loss = means.loc[name]
        rows.append([name, f"{ap:.3f}", f"{mean_ap:.3f}", f"{loss:.4f}", span])
    return [heads, *rows]


def default_sets_table() -> Table:
    """Return average precision by set and draw: the default beside COMES-HL and BCE."""
    found = _read_defaults()
    columns = {
        "default": "default",
        "COMES-HL, as published": "COMES-HL, as published",
        "BCE": "BCE, trained as the default",
        "BCE, as published": "BCE, as published",
        "default, priors known": "default, priors known",
    }
    table = found.pivot(index=["draw", "set"], columns="learner", values="average_precision")
    seeds = found[found["learner"] == "default"].set_index(["draw", "set"])["seeds"]
    rows = []
    for draw, name in table.index:
        values = [table.loc[(draw, name)].get(learner) for learner in columns]
        cells = ["–" if pd.isna(value) else f"{value:.3f}" for value in values]
        rows.append([name, draw, str(seeds[draw, name]), *cells])
    return [["set", "draw", "seeds", *columns.values()], *rows]


def calibration_table(which: str) -> Table:
    """Return what calibration does to the calibration error and the log loss, by method."""
    development = ("emotions", "scene", "yeast")  # as in experiments/calibration.py
    wanted = which == "development"
    runs = [run for run in stored("calibration") if (run["set"] in development) == wanted]
    heads = ["method", "known rows", "calibration error ↓", "worst change", "log loss ↓"]
    table = [[*heads, "worst change"]]
    for method in ("likelihood", "comes-hl", "comes-rl", "bce"):
        own = [run["found"] for run in runs if run["method"] == method]
        table.append([method, "not calibrated", *_calibration_cells(own, "none")])
        for source, shown in (("said", "answers"), ("truth", "true labels")):
            for n in (100, 500):
                key = f"{source}, {n}, default"
                if key in own[0]:
                    table.append(["", f"{n}, {shown}", *_calibration_cells(own, key)])
    return table


def _calibration_cells(found: list[dict[str, Any]], key: str) -> list[str]:
    """Return mean and worst change of both measures."""
    cells = []
    for metric in ("error", "loss"):
        values = [run[key][metric] for run in found]
        changes = [run[key][metric] - run["none"][metric] for run in found]
        cells += [f"{mean(values):.3f}", "" if key == "none" else f"{max(changes):+.3f}"]
    return cells


def hostile_inputs_table() -> Table:
    """Return how many bad inputs were judged how, before anything was mended and now."""
    result = measured("hostile_inputs")
    verdicts = ("ok", "unclear", "traceback", "silent")
    heads = [*(f"{verdict}, first" for verdict in verdicts), *(f"{v}, now" for v in verdicts)]
    rows = []
    for area, now in result["counts"].items():
        first = result["found"]["counts"][area]
        cells = [*(first[verdict] for verdict in verdicts), *(now[v] for v in verdicts)]
        rows.append([area, str(now["cases"]), *map(str, cells)])
    return [["where", "cases", *heads], *rows]


TABLES: dict[str, Callable[..., Table | str]] = {
    "runs": runs_table,
    "scores-code": scores_code,
    "sweep": sweep_table,
    "demo": demo_table,
    "defaults": defaults_table,
    "default-sets": default_sets_table,
    "methods": methods_table,
    "redrawn": redrawn_table,
    "mixed-table": mixed_table_table,
    "messy-table": messy_table_table,
    "mixed-encoding": mixed_encoding_table,
    "names": names_table,
    "options": options_table,
    "prior-errors": prior_errors_table,
    "prior-training": prior_training_table,
    "real-priors": real_priors_table,
    "drawn-rates": drawn_rates_table,
    "rates": rates_table,
    "real-rates": real_rates_table,
    "pooled-rates": pooled_rates_table,
    "simulation": simulation_table,
    "intervals": intervals_table,
    "choosing": choosing_table,
    "choices": choices_table,
    "criteria": criteria_table,
    "calibration": calibration_table,
    "fair": fair_table,
    "search": search_table,
    "agreement": agreement_table,
    "assumption": assumption_table,
    "image-choice": image_choice_table,
    "image-students": image_students_table,
    "answers": answers_table,
    "answer-rates": answer_rates_table,
    "instance-rates": instance_rates_table,
    "text-features": text_features_table,
    "text-terms": text_terms_table,
    "texts": texts_table,
    "tox21": tox21_table,
    "fit-checks": fit_checks_table,
    "prior-advice": prior_advice_table,
    "ask-next": ask_next_table,
    "active-draws": active_draws_table,
    "circle": circle_table,
    "read-time": read_time_table,
    "large-table": large_table_table,
    "stream-memory": stream_memory_table,
    "many-labels": many_labels_table,
    "extreme": extreme_table,
    "image-features": image_features_table,
    "image-speed": image_speed_table,
    "clusters": clusters_table,
    "annotation-load": annotation_load_table,
    "annotation-scale": annotation_scale_table,
    "annotation-kills": annotation_kills_table,
    "annotation-attacks": annotation_attacks_table,
    "annotation-photo": annotation_photo_table,
    "hostile-inputs": hostile_inputs_table,
    "pair-sums": pair_sums_table,
    "roofline-ranking": roofline_ranking_table,
    "roofline-sparse": roofline_sparse_table,
    "likelihood-step": likelihood_step_table,
    "default-time": default_time_table,
    "default-cost": default_cost_table,
    "fit-time": fit_time_table,
    "against-others": against_others_table,
    "many-trainings": many_trainings_table,
    "gpu-epochs": gpu_epochs_table,
    "gpu-methods": gpu_methods_table,
    "prior-time": prior_time_table,
    "start-time": start_time_table,
}
