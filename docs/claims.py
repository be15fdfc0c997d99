"""What documents say of stored results: sentences with their numbers, and what the numbers show.

``python docs/fill.py --check`` names every claim that is not true any more. A claim is a row:
the document, the sentence or what the results must show, and whether it holds.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from comes.experiment.results import Result
from comes.flat_settings import ONLY_VARIANTS
from comes.methods import METHODS
from comes.metrics import METRICS
from comes.report.experiment_page import MetricTable, metric_table
from comes.report.paper import published
from result_tables import (
    BOTH,
    PHOTOS,
    ROOT,
    SIX,
    find_regrets,
    mean,
    measured,
    methods_choice_table,
    read_backbones,
    read_experiment,
    read_fair,
    stored,
)

PAPER, METHODS_PAGE = "docs/explain/paper.md", "docs/explain/methods.md"
RISKS, ASSUMPTIONS = "docs/explain/risks.md", "docs/explain/assumptions.md"
IMAGES, SELECTION = "docs/guide/images.md", "docs/guide/selection.md"
EXPERIMENTS, CHOOSING = "docs/guide/experiments.md", "docs/guide/choosing.md"
GROWING, PRIORS = "docs/guide/annotate-growing.md", "docs/guide/priors.md"
INSTANCE, TRAINING = "docs/explain/instance-rates.md", "docs/guide/training.md"
THRESHOLDS, SPEED = "docs/guide/thresholds.md", "docs/develop/speed.md"
CLUSTERS = "docs/guide/clusters.md"
YEAST = ("YeastBP", "YeastCC", "YeastMF")
CASES = ("a", "b")
# Those of the stored experiments: what the page of the paper says holds for each.
STORED_METRICS = (
    *("ranking_loss", "one_error", "hamming_loss", "coverage"),
    *("average_precision", "mean_average_precision"),
)


class Claim(NamedTuple):
    """What a document says, and whether it is so."""

    document: str
    claim: str
    holds: bool


def wrong_claims() -> list[str]:
    """Return a line for every claim that does not hold."""
    return [
        f"{document} is out of date: {claim!r} is not what the results are"
        for document, claim, holds in itertools.chain.from_iterable(make() for make in CLAIMS)
        if not holds
    ]


@functools.cache
def _prose(document: str) -> str:
    """Return the text of a document as one line."""
    return " ".join((ROOT / document).read_text(encoding="utf-8").split())


@functools.cache
def _results_of(experiment: str) -> list[Result]:
    return read_fair() if experiment == "fair" else read_experiment(experiment)


@functools.cache
def _table_of(experiment: str, metric: str = "average_precision") -> MetricTable:
    return metric_table(_results_of(experiment), metric)


def _value(experiment: str, method: str, data: str, metric: str = "average_precision") -> float:
    return float(_table_of(experiment, metric).entries[method, data].mean)


def says(document: str, *sentences: str) -> Iterator[Claim]:
    """Claim that a document has these sentences, which are made from results."""
    for sentence in sentences:
        yield Claim(document, sentence, sentence in _prose(document))


def shows(document: str, claim: str, holds: object) -> Iterator[Claim]:
    """Claim that results show what a document says in words."""
    yield Claim(document, claim, bool(holds))


def _of_paper(method: str, data: str = "mirflickr") -> str:
    """Return the average precision that the paper has on a data set."""
    by_name = published().set_index(["data", "metric", "method"])["mean"]
    return f"{by_name[data, 'average_precision', method]:.3f}"


def _sign(metric: str) -> int:
    return 1 if METRICS[metric].higher_is_better else -1


def _best_published(protocol: str, metric: str, data: str) -> str:
    """Return which of the paper's methods, as it trains them, is best on a data set."""
    means = {
        method: _sign(metric) * entry.mean
        for (method, name), entry in _table_of(protocol, metric).entries.items()
        if name == data and method in METHODS
    }
    return max(means, key=lambda method: means[method])


# The paper, and the methods


def claims_of_the_experiments() -> Iterator[Claim]:
    """docs/explain/paper.md: who is best on which data set."""
    for protocol in ("paper", "fair"):
        for best, metrics in (
            ("comes-hl", ("average_precision", "ranking_loss", "one_error", "coverage")),
            ("comes-rl", ("hamming_loss", "mean_average_precision")),
        ):
            for metric in metrics:
                found = _best_published(protocol, metric, PHOTOS)
                yield from shows(PAPER, f"{best} is best in {metric}, {protocol}", found == best)
        for metric, name in itertools.product(STORED_METRICS, YEAST):
            methods = ("comes-hl", "bce", "ctl", "ccmn")
            means = [_value(protocol, method, name, metric) for method in methods]
            claim = f"four methods are level on {name} in {metric}, {protocol}"
            yield from shows(PAPER, claim, max(means) - min(means) < 0.02)
    for name in (PHOTOS, *YEAST):
        is_best = _table_of("paper").entries["default", name].is_best
        yield from shows(PAPER, f"the default is best on {name}", is_best)
        for metric in ("average_precision", "ranking_loss"):
            ours, bce = (_value("paper", method, name, metric) for method in ("comes-rl", "bce"))
            behind = _sign(metric) * ours < _sign(metric) * bce
            yield from shows(PAPER, f"comes-rl is behind bce on {name} in {metric}", behind)
    default, hl = (_value("default", method, PHOTOS) for method in ("default", "comes-hl"))
    published_hl = _value("paper", "comes-hl", PHOTOS)
    ours, other = (
        _value("variants", method, PHOTOS)
        for method in ("comes-hl, estimated priors", "ccmn, estimated rates")
    )
    flooded = _value("paper", "comes-rl flooded", PHOTOS)
    yield from says(
        PAPER,
        f"it has {default:.3f} on {PHOTOS}, where COMES-HL has {hl:.3f}",
        f"by today's estimate to {hl:.3f}",
        f"Its average precision is {published_hl:.3f}; the paper reports {_of_paper('comes-hl')}",
        f"COMES-HL falls to {ours:.3f} on {PHOTOS}",
        f"flip rates reaches {other:.3f}",
        f"reaches {flooded:.3f} on mirflickr5000, where the paper has {_of_paper('comes-rl')}",
        f"without a search it has {_value('paper', 'ccmn', PHOTOS):.3f}",
    )
    yield from shows(PAPER, "flooding brings comes-rl to 0.82", flooded >= 0.82)
    for name in ("YeastBP", "YeastMF"):
        is_best = _table_of("fair", "ranking_loss").entries["comes-rl", name].is_best
        yield from shows(PAPER, f"comes-rl has the best ranking loss on {name}, fair", is_best)
    chosen = {
        (repeat.chosen or {}).get("learning_rate")
        for result in _results_of("fair")
        if result.spec.method == "comes-rl" and result.names.data in YEAST
        for repeat in result.repeats
    }
    yield from shows(PAPER, "its search ends at a rate of 0.025 there", chosen == {0.025})
    ours, other = (
        _value("variants", method, "YeastBP")
        for method in ("comes-hl, estimated priors", "ccmn, estimated rates")
    )
    yield from shows(PAPER, "with estimates comes-hl is ahead of ccmn on YeastBP", ours > other)
    ranks = _table_of("synthetic", "mean_average_precision").ranks
    first = ranks.methods[0] if ranks else None
    yield from shows(PAPER, "ccmn ranks first on drawn candidates", first == "ccmn")
    for name, case in itertools.product(("enron", "yeast"), ("case a 0.9", "case b 0.1")):
        is_best = _table_of("synthetic").entries["comes-hl", f"{name}, {case}"].is_best
        yield from shows(PAPER, f"comes-hl is best on {name}, {case}", is_best)


def claims_of_the_default() -> Iterator[Claim]:
    """docs/explain/paper.md: the default beside the methods as published."""
    rows = pd.DataFrame(stored("defaults")["rows"])
    six = rows[rows["set"].isin(SIX) & rows["draw"].isin(["0.1", "0.5"])]
    keys, hl = ["draw", "learner", "set"], "COMES-HL, as published"
    by_set = six.groupby(keys)["average_precision"].mean()
    means = by_set.groupby(["draw", "learner"]).mean()
    few, many = (means[draw] for draw in ("0.1", "0.5"))
    bce = [max(of[n] for n in ("BCE", "BCE, as published")) for of in (few, many)]
    yield from says(
        PAPER,
        f"is {few['default']:.3f} where one irrelevant label in ten is excluded",
        f"and {many['default']:.3f} where one in two is",
        f"has {few[hl]:.3f} and {many[hl]:.3f}, BCE {bce[0]:.3f} and {bce[1]:.3f}",
    )
    for draw, name in itertools.product(("0.1", "0.5"), SIX):
        for other in (hl, "BCE", "BCE, as published"):
            ahead = by_set[draw, "default", name] > by_set[draw, other, name] - 0.01
            yield from shows(PAPER, f"the default is not behind {other} on {name}, {draw}", ahead)
    losses = six.groupby(keys)["held_out"].mean().groupby(["draw", "learner"]).mean()
    for draw in ("0.1", "0.5"):
        told = losses[draw].drop("default, priors known")
        least = told["default"] <= told.min() + 1e-5
        yield from shows(PAPER, f"the default has the least held-out loss, {draw}", least)


def claims_of_the_papers_rows() -> Iterator[Claim]:
    """docs/explain/paper.md: numbers of the paper beside ours."""
    bce = [_of_paper("bce", name) for name in YEAST]
    by_mean, by_sum = (
        [f"{_value('settings', f'bce, {reduction}', name):.3f}" for name in YEAST[:2]]
        for reduction in ("mean", "sum")
    )
    ctl = [_of_paper("ctl", name) for name in YEAST]
    ours = [f"{_value('paper', 'ctl', name):.3f}" for name in YEAST]
    best = _value("paper", _best_published("paper", "average_precision", "YeastMF"), "YeastMF")
    default = _value("paper", "default", "YeastMF")
    hl, rl = (_of_paper(method, "YeastMF") for method in ("comes-hl", "comes-rl"))
    yield from says(
        PAPER,
        f"of {bce[0]} on YeastBP and {bce[1]} on YeastCC",
        f"({by_mean[0]} and {by_mean[1]}, three folds)",
        f"their sum ({by_sum[0]} and {by_sum[1]})",
        f"CTL ({ctl[0]}, {ctl[1]} and {ctl[2]} on the three sets)",
        f"methods here is {best:.3f}, by BCE and CTL, and the default has {default:.3f}",
        f"the paper has {hl} for COMES-HL",
        f"and {rl} for COMES-RL",
    )
    for low, paper, high in zip(by_mean, bce, by_sum, strict=False):
        yield from shows(PAPER, f"the paper's {paper} is between ours", low < paper < high)
    yield from says(
        METHODS_PAGE,
        f"({ours[0]}, {ours[1]} and {ours[2]})",
        f"average precision {ctl[0]}, {ctl[1]} and {ctl[2]}",
    )
    for data in ("scenes", PHOTOS):
        compared = {(row["method"], row["variant"]) for row in stored("methods")[data]}
        known = {(name, v) for name, m in METHODS.items() for v in m.variants}
        known |= set(ONLY_VARIANTS.items())
        rest = len(compared) >= 15 and compared <= known
        yield from shows(METHODS_PAGE, f"methods compared on {data} are those of the code", rest)


def claims_of_candidate_sets_and_risks() -> Iterator[Claim]:
    """docs/explain/candidate-sets.md and risks.md."""
    found = {row["method"]: row["metrics"] for row in reversed(stored("methods")["scenes"])}
    bce, ours = found["bce"], found["comes-hl"]
    metric = "mean_average_precision"
    yield from says(
        "docs/explain/candidate-sets.md",
        f"Hamming loss of {bce['hamming_loss']:.3f}, COMES-HL on the same candidates "
        f"{ours['hamming_loss']:.3f}",
        f"suffer less: {bce[metric]:.3f} against {ours[metric]:.3f}",
    )
    plain, kept = stored("correction")["unbiased"], stored("correction")["corrected"]
    negative = [epoch["estimate"] < 0 for epoch in plain]
    first, least = negative.index(True), min(epoch["truth"] for epoch in plain)
    ends = [epoch["average_precision"] for epoch in (kept[-1], plain[-1])]
    own = [r for r in _results_of("flood") if r.names.method == "comes-rl"]
    levels = {r.at: r.values("average_precision").mean() for r in own if "mir" in r.names.data}
    yield from says(
        RISKS,
        f"below 0 from epoch {first + 1} on and ends at {plain[-1]['estimate']:.3f}",
        f"ends at {plain[-1]['truth']:.3f}, up from {least:.3f} at best",
        f"ends at {kept[-1]['estimate']:.3f} and the true risk at {kept[-1]['truth']:.3f}",
        f"on new rows is {ends[0]:.3f} in place of {ends[1]:.3f}",
        f"a level of 0.75 gains {levels[0.75] - levels[0]:.3f}",
    )
    yield from shows(RISKS, "the unbiased estimate stays negative", all(negative[first:]))
    never = not any(epoch["estimate"] < 0 for epoch in kept)
    yield from shows(RISKS, "the corrected estimate never is", never)


def claims_of_assumptions() -> Iterator[Claim]:
    """docs/explain/assumptions.md: what a broken assumption costs, and what is believed then."""
    rows = pd.DataFrame(stored("instance_rates")["rows"])
    rows = rows[rows["set"].isin(["yeast", "scene", "emotions"])]
    means = rows.groupby(["draw", "learner"])["average_precision"].mean()
    for strength in (1, 2):
        own = means[f"instance-dependent 0.5, strength {strength}"]
        known = means["independent 0.5"]["constant"]
        mended = (own["constant, true priors"] - own["constant"]) / (known - own["constant"])
        third = 0.25 < mended < 0.4
        yield from shows(ASSUMPTIONS, f"true priors mend a third, strength {strength}", third)
        all_ = own["p(x) known, true priors"] >= known
        yield from shows(ASSUMPTIONS, f"known rates mend all, strength {strength}", all_)
    rows = pd.DataFrame(stored("broken_assumptions")["rows"])
    found = rows.groupby("draw", sort=False).mean(numeric_only=True)
    believed, true = found["estimated_class_prior"], found["class_prior"]
    loss = found["estimated_hamming_loss"] / found["hamming_loss"]
    precision, checked = found["average_precision"], found["labels_not_constant"]
    good, by_item, few, one, mistaken, random, suspected = found.index
    for draw in (good, few, random):
        near = abs(believed[draw] - true[draw]) < 0.03 and 0.85 < loss[draw] < 1.2
        yield from shows(ASSUMPTIONS, f"priors and losses are near the truth for {draw}", near)
    for claim, holds in (
        ("rates by item double the prior", believed[by_item] > 2 * true[by_item]),
        ("the check finds rates by item", checked[by_item] > 9),
        ("rates by item cost most", precision[by_item] == min(precision)),
        ("one exclusion costs little beside few", precision[few] - precision[one] < 0.03),
        ("few exclusions cost much", precision[good] - precision[few] > 0.06),
        ("one exclusion raises the prior", believed[one] > true[one] + 0.03),
        ("mistakes cost", precision[mistaken] < precision[good] - 0.02),
        ("mistakes lower the prior", believed[mistaken] < true[mistaken]),
        ("the check finds no other", max(checked[d] for d in (good, few, one, mistaken)) == 0),
        ("suspected questions cost little", precision[random] - precision[suspected] < 0.03),
        ("suspected questions double the prior", believed[suspected] > 2 * true[suspected]),
        ("the estimated loss is too small then", max(loss[[by_item, suspected]]) < 0.7),
    ):
        yield from shows(ASSUMPTIONS, claim, holds)


# Guides


def claims_of_choosing() -> Iterator[Claim]:
    """docs/guide/choosing.md."""
    hl, bce, default = (f"{_value('paper', m, PHOTOS):.3f}" for m in ("comes-hl", "bce", "default"))
    ccmn, estimated = (
        f"{_value('variants', method, PHOTOS):.3f}"
        for method in ("ccmn, estimated rates", "comes-hl, estimated priors")
    )
    runs = stored("criteria")["runs"]
    regret = mean(find_regrets(runs, "likelihood", "average_precision", within=False))
    _, *rows = methods_choice_table()
    at_half = {title: float(cells[2]) for title, *cells in rows}
    trained = at_half["BCE, trained as the default"]
    yield from says(
        CHOOSING,
        f"average precision of {hl}, BCE {bce} and the default {default}",
        f"{ccmn} where COMES-HL with estimated priors has {estimated}",
        f"by {regret:.3f} in average precision on average",
        f"gains {trained - at_half['BCE, as published']:.3f} in average precision",
        f"another {at_half['likelihood (the default)'] - trained:.3f} by the likelihood",
    )
    best, *others = ([float(cell) for cell in cells] for _, *cells in rows)
    ahead = all(b > o for other in others for b, o in zip(best, other, strict=True))
    yield from shows(CHOOSING, "the default is best in every column", ahead)


def claims_of_flooding() -> Iterator[Claim]:
    """docs/guide/training.md and experiments.md: what the flood brings."""
    yield from says(EXPERIMENTS, f"bring it to the paper's {_of_paper('comes-rl')}")
    table = _table_of("flood-rule")
    gains = {
        (way, data): table.entries[f"{way}{', ' if 'sum' in way else ' '}flooded", data].mean
        - table.entries[way, data].mean
        for way in ("comes-rl", "comes-rl pair sum")
        for data in table.data
    }
    lost = {key: gain for key, gain in gains.items() if gain < -0.0005}
    alone = list(lost) == [("comes-rl pair sum", "emotions, case b 0.1")]
    yield from shows(TRAINING, "the rule costs on emotions alone", alone)
    yield from says(TRAINING, f"on emotions loses {-min(lost.values(), default=0.0):.3f} by it")
    for name in ("enron", "scene", "yeast"):
        gain = gains["comes-rl", f"{name}, case b 0.1"] > 0.05
        yield from shows(TRAINING, f"the rule gains on {name}", gain)


def claims_of_priors() -> Iterator[Claim]:
    """docs/guide/priors.md: what estimated priors cost."""
    reached: dict[tuple[str, float, str], list[float]] = {}
    for r in stored("priors")["training"]:
        key = (r["data"], r["exclude_rate"], r["prior"])
        reached.setdefault(key, []).append(r["average_precision"])

    def cost(data: str, rate: float, prior: str = "best-bin") -> float:
        return mean(reached[data, rate, "true"]) - mean(reached[data, rate, prior])

    of_bbe = [cost(data, rate, "bbe") for data, rate, prior in reached if prior == "bbe"]
    yield from says(
        PRIORS,
        f"say so, {cost('emotions', 0.1):.3f} and {cost('scene', 0.1):.3f}.",
        f"they cost {cost('yeast', 0.5):.3f} and {cost('yeast', 0.1):.3f}.",
        f"and costs {min(of_bbe):.3f} to {max(of_bbe):.3f}",
    )
    for data in ("emotions", "scene"):
        yield from shows(PRIORS, f"priors cost nothing on {data} at 0.5", cost(data, 0.5) < 0.001)


def claims_of_instance_rates() -> Iterator[Claim]:
    """docs/explain/instance-rates.md: gains and losses of every learner and draw."""
    rows = [r for r in stored("instance_rates")["rows"] if r["set"] not in ("scenes", "enron")]
    draws = list(dict.fromkeys(row["draw"] for row in rows))
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    own, constant = draws[-1], learners.index("constant, true priors")

    def of(learner: str, draw: str, metric: str = "average_precision") -> float:
        found = [r[metric] for r in rows if (r["learner"], r["draw"]) == (learner, draw)]
        return mean(found)  # as many seeds of every set

    def gain(learner: str, draw: str, metric: str = "average_precision") -> float:
        base = "constant, true priors" if learners.index(learner) > constant else "constant"
        return of(learner, draw, metric) - of(base, draw, metric)

    bent, known = "constant, true priors, then bent", "p(x) known, true priors"
    for learner in learners[1:constant]:
        gains = [gain(learner, draw) for draw in draws[2:5]]
        lost = -min(gain(learner, draw) for draw in draws[:2])
        holds = gain(learner, own) < 0 and max(gains) < lost
        yield from shows(INSTANCE, f"{learner} loses more than it gains", holds)
    for claim, holds in (
        ("bending adds at most 0.02", max(gain(bent, draw) for draw in draws) < 0.02),
        ("known rates are best", max(of(one, own) for one in learners) == of(known, own)),
    ):
        yield from shows(INSTANCE, claim, holds)


def claims_of_images() -> Iterator[Claim]:
    """docs/guide/images.md: VOC 2012, fine-tuning, the choice of heads, and what it costs."""
    by_map = functools.partial(_value, metric="mean_average_precision")
    drawn = [*(f"VOC2012, case {case}" for case in CASES), "VOC2012, answers"]
    frozen, hl = "likelihood (default)", "comes-hl, classes"
    ours, paper = (
        [f"{by_map('images-views', method, data):.3f}" for data in drawn] for method in (frozen, hl)
    )
    truth = "VOC2012, true labels"
    supervised = f"{by_map('images-clean', 'likelihood (default head)', truth):.3f}"
    mixed = "likelihood, soft targets, mixed"
    gains = [
        f"{by_map('images-soft', mixed, d) - by_map('images-views', frozen, d):.3f}"
        for d in drawn[:2]
    ]
    before, after = (
        by_map("images-clean", f"bce, pooled{how}", truth) for how in ("", ", fine-tuned")
    )
    ablation = _table_of("images-ablation", "mean_average_precision").entries
    changed = {name: entry.mean for (name, _), entry in ablation.items()}
    chosen, default, best = (
        mean(run[which]["mAP"] for run in stored("image_choice")["runs"])
        for which in ("chosen", "default", "best_by_truth")
    )
    heads = f"the chosen heads have {chosen:.3f}, the default {default:.3f}, and the best by true"
    speed = measured("image_speed")
    of_paper = published().set_index(["data", "case", "method"])["mean"].loc["VOC2012"]
    most = [f"{of_paper.loc[case].max():.3f}" for case in CASES]
    yield from says(
        IMAGES,
        f"a mAP of {ours[0]} (case a) and {ours[1]} (case b), and {ours[2]} where",
        f"COMES-HL has {paper[0]} and {paper[1]}",
        f"has {supervised} with all true labels",
        f"That is {gains[0]} and {gains[1]} above the frozen head",
        f"from {before:.3f} (BCE, pooled features, frozen) to {after:.3f}",
        f"has {changed['bce, true labels']:.3f} with true labels",
        f"{heads} labels {best:.3f}",
        f"took {speed['seconds_to_decode_once']:g} s",
        f"{most[0]} (a) and {most[1]} (b)",
        f"{most[0]} and {most[1]}",
        *(
            f"{float(of_paper['a', method]):.3f} for {method.upper()}"
            for method in ("bce", "comes-hl", "comes-rl")
        ),
    )
    plot = (ROOT / "docs" / "images" / "voc2012.svg").read_text(encoding="utf-8")
    for value in (ours[0], ours[2], paper[0], supervised):
        drawn_there = f">{value}<" in plot
        yield from shows("docs/images/voc2012.svg", f"{value}: run docs/draw.py", drawn_there)
    for data in drawn[:2]:  # predicting nothing has a Hamming loss between the two
        pooled, classes = (
            _value("images-probe", f"comes-hl, {name}", data, "hamming_loss")
            for name in ("pooled", "classes")
        )
        yield from shows(IMAGES, f"pooled features predict too much, {data}", pooled > 0.1)
        yield from shows(IMAGES, f"classes do not, {data}", classes < 0.1)
    for claim, holds in (
        ("ours is ahead everywhere", min(map(float, ours)) > max(map(float, paper))),
        *(
            (
                f"a slow network helps {method}",
                changed[f"{method}, network at 1e-5"] > changed[method] + 0.05,
            )
            for method in ("comes-hl", "comes-rl", "likelihood")
        ),
        *(
            (f"{way} does not help", changed[f"comes-hl, {way}"] < changed["comes-hl"])
            for way in ("batches of 512", "frozen statistics", "no absolute value")
        ),
        (
            "counts of the batch help",
            changed["comes-hl, counts of the batch"] > changed["comes-hl"] + 0.05,
        ),
        ("the choice of heads is near the best", best - chosen < 0.01),
        *(
            (
                f"{risk} costs no more than BCE",
                speed["seconds_per_epoch"][f"{risk}_over_bce"] <= 1.02,
            )
            for risk in ("comes_hl", "comes_rl", "likelihood")
        ),
        ("pictures arrive in time", speed["seconds_per_epoch"]["synthetic_over_bce"] >= 0.8),
    ):
        yield from shows(IMAGES, claim, holds)


def _by_data(rows: Iterable[Any], data: str, first: str, second: str, metric: str) -> list[float]:
    return [row[first][metric] - row[second][metric] for row in rows if row["data"] == data]


def claims_of_questions() -> Iterator[Claim]:
    """docs/guide/annotate-growing.md: questions and rounds that a model draws."""
    by_row, by_label = "average_precision", "mean_average_precision"
    rows = stored("active_draws")["rows"]
    inside = {way: sum(row[way]["inside"] for row in rows) for way in ("active", "random")}
    count = sum(row["active"]["intervals"] for row in rows)
    gains = functools.partial(_by_data, rows, first="active", second="random")
    scenes = gains("scenes", metric=by_label)
    told = f"the truth {inside['active']:.0f} times of {count} with active draws, and "
    yield from says(
        GROWING,
        f"{told}{inside['random']:.0f} times",
        f"mAP {min(scenes):.3f} to {max(scenes):.3f}",
    )
    loss = mean(gains("emotions", metric=by_label))
    for claim, holds in (
        ("intervals hold 95 times in a hundred", min(inside.values()) >= 0.95 * count),
        ("active draws gain on scenes", min(gains("scenes", metric=by_row)) > 0),
        ("and lose a little on emotions", -0.015 < loss < 0),
        *(
            (f"and gain on scene, {m}", mean(gains("scene", metric=m)) > 0.005)
            for m in (by_row, by_label)
        ),
        *(
            (f"and change yeast little, {m}", abs(mean(gains("yeast", metric=m))) < 0.005)
            for m in (by_row, by_label)
        ),
        *(
            (f"and lower the error on {data}", mean(gains(data, metric="error")) < 0)
            for data in ("scenes", "scene", "yeast", "emotions")
        ),
    ):
        yield from shows(GROWING, claim, holds)
    for data in ("scenes", "scene"):
        plain, ours = (
            mean(row["active"][name] for row in rows if row["data"] == data)
            for name in ("plain_error", "error")
        )
        yield from shows(GROWING, f"plain shares are further off on {data}", plain > ours + 0.01)
    quick = measured("annotation_load")["sqlite"]["quick_people"]
    claim = "fifty people wait at most five times as long as one"
    yield from shows("docs/guide/annotate.md", claim, quick["fifty_p95_over_one_p95"] <= 5)


def claims_of_searches() -> Iterator[Claim]:
    """docs/guide/experiments.md: what the criterion of a search changes."""
    now, early = (
        next(r for r in _results_of(name) if r.names.title(r.spec) == f"ccmn on {PHOTOS}")
        for name in ("fair", "fair-early")
    )
    n = len(now.repeats)
    by_now, by_early = (r.values("mean_average_precision")[:n].mean() for r in (now, early))
    yield from says(EXPERIMENTS, f"(mAP {by_now:.3f} instead of {by_early:.3f})")
    after, before = (r.values("average_precision")[:n].mean() for r in (now, early))
    yield from shows(EXPERIMENTS, "ccmn loses average precision", after < before)


def claims_of_criteria() -> Iterator[Claim]:
    """docs/guide/selection.md: choosing by the likelihood beside other criteria."""
    runs = stored("criteria")["runs"]

    def cost(criterion: str, *, within: bool = False, said: str = "") -> list[float]:
        own = [run for run in runs if said in (f"{run['said']} {run['rate']}", "")]
        return [
            mean(find_regrets(own, criterion, metric, within=within))
            for metric in ("average_precision", "mean_average_precision")
        ]

    def told(criterion: str, *, within: bool = False, said: str = "") -> str:
        return " and ".join(f"{c:.3f}" for c in cost(criterion, within=within, said=said))

    few = [told(name, said="candidates 0.1") for name in ("likelihood", "ranking")]
    inside = [told(name, within=True) for name in ("likelihood", "own risk")]
    by_ranking = f"by the ranking risk {told('ranking')}"
    yield from says(
        SELECTION,
        f"is behind the best by {told('likelihood')} on average; {by_ranking}",
        f"costs {told('likelihood as it is')}",
        f"{few[0]} against {few[1]}",
        f"{inside[0]} against {inside[1]}",
    )
    others = ("ranking", "hamming", "auc", "likelihood as it is", "likelihood, own levels")
    for other, within in itertools.product(others, (False, True)):
        costs = zip(cost("likelihood", within=within), cost(other, within=within), strict=True)
        better = all(a < b for a, b in costs)
        yield from shows(SELECTION, f"the likelihood beats {other}, within={within}", better)
    table = _table_of("stopping")
    for method in ("bce", "ccmn", "comes-hl", "comes-rl"):
        change = mean(
            table.entries[f"{method}, stopped", data].mean - table.entries[method, data].mean
            for data in table.data
        )
        yield from says(SELECTION, f"{change:+.3f} for {method.upper()}")
    small = stored("intervals_small")["metrics"]
    held, given, drawn = (
        sum(found[key] for found in small.values()) for key in ("held", "printed", "draws")
    )
    least = min(small, key=lambda name: small[name]["held"] / small[name]["printed"])
    precision = small["macro_precision"]
    rarely = stored("intervals_small")["by_rate"]["0.2"]["macro_precision"]
    yield from says(
        SELECTION,
        f"{held} of the {given} intervals that are given hold the truth",
        f"{precision['held']} of {precision['printed']} of macro precision, and "
        f"{rarely['held']} of {rarely['printed']} of it with an exclude rate of 0.2",
    )
    yield from shows(SELECTION, "macro precision holds least often", least == "macro_precision")
    yield from shows(SELECTION, "intervals hold on few rows", held >= 0.85 * given)
    yield from shows(SELECTION, "most intervals are refused on few rows", 2 * given < drawn)
    for name, found in stored("intervals")["metrics"].items():
        counted = found["draws"] == found["printed"] + sum(found["reasons"].values())
        yield from shows(SELECTION, f"every draw of {name} is counted", counted)
        half = 2 * found["printed"] >= found["draws"]
        yield from shows(SELECTION, f"half of the intervals of {name} are given", half)
        hold = found["held"] >= 0.85 * found["printed"]
        yield from shows(SELECTION, f"intervals of {name} hold with estimated priors", hold)


def claims_of_thresholds() -> Iterator[Claim]:
    """docs/guide/thresholds.md."""
    table = _table_of("thresholds", "hamming_loss")

    def loss(method: str) -> float:
        return mean(table.entries[method, data].mean for data in table.data)

    rl, hl = (
        [f"{loss(f'{method}, {name}'):.3f}" for name in ("auto", "risk", "prior")]
        for method in ("comes-rl", "comes-hl")
    )
    yield from says(
        THRESHOLDS,
        f"is {rl[0]} for COMES-RL with `half`, {rl[1]} with `risk` and {rl[2]}",
        f"for COMES-HL {hl[0]}, {hl[1]} and {hl[2]}",
    )
    runs = [run["found"] for run in stored("cuts")["rows"] if run["method"] == "likelihood"]
    macro, micro, wrong = (
        [f"{mean(run[cut][metric] for run in runs):.3f}" for cut in ("auto", "half")]
        for metric in ("macro_f1", "micro_f1", "hamming_loss")
    )
    yield from says(
        THRESHOLDS,
        f"`auto` has a macro F1 of {macro[0]} where one half has {macro[1]}",
        f"a micro F1 of {micro[0]} where it has {micro[1]}",
        f"a Hamming loss of {wrong[0]} where it has {wrong[1]}",
    )
    worst = max(loss(m) for m in table.methods if "comes-rl" in m)
    yield from shows(THRESHOLDS, "minmax is worst", loss("comes-rl, minmax") == worst)
    for name in ("auto", "prior", "risk", "f1"):  # the paper has 0.186
        near = table.entries[f"comes-rl, {name}", PHOTOS].mean <= 0.19
        yield from shows(THRESHOLDS, f"{name} is as good as the paper's", near)


def claims_of_backbones() -> Iterator[Claim]:
    """docs/guide/training.md: what is not taken, and why."""
    found, shared, embedded = read_backbones(), "TabM, k = 8", "piecewise-linear embeddings"
    sizes = [name.partition(":")[2] for name in found["set"].unique()]
    counts = (sizes.count("300"), sizes.count("1000")) == (12, 9)
    yield from shows(TRAINING, "300 rows of twelve sets and 1000 rows of nine", counts)
    for learner, own in found.groupby("learner"):
        means, least = own.groupby("draw")[list(BOTH)].mean(), own[list(BOTH)].min().min()
        wins = means.min().min() > 0 and least >= -0.01
        cost = own["seconds"].sum() / own["seconds_usual"].sum()
        yield from shows(TRAINING, f"{learner} does not win", not wins)
        dear = learner in (shared, embedded)
        yield from shows(TRAINING, f"{learner} costs more, or not", (cost > 1.5) == dear)
    overall, least = (found.groupby("learner")[list(BOTH)].agg(how) for how in ("mean", "min"))
    by_draw = found.groupby(["learner", "draw"])[list(BOTH)].mean()
    ap, mean_ap = by_draw[BOTH[0]], by_draw[BOTH[1]]
    bonuses = overall[overall.index.str.contains("bonus")].abs().max().max()
    rank = least.loc["rank bonus, 0.3"].max()
    for claim, holds in {
        "TabM loses AP where little is said": max(ap[shared, "answers"], ap[shared, "0.1"]) < 0,
        "embeddings bring the most mAP": overall[BOTH[1]].idxmax() == embedded,
        "embeddings lose AP where one in ten is excluded": ap[embedded, "0.1"] < 0,
        "a bias from 0 loses mAP for every draw": mean_ap["bias from 0"].max() < 0,
        "a bias from 0 loses much mAP on some sets": least[BOTH[1]].idxmin() == "bias from 0",
        "bonuses change little on average": bonuses < 0.004,
        "a rank bonus loses more than 0.01 on its worst sets": rank < -0.01,
    }.items():
        yield from shows(TRAINING, claim, holds)


def claims_of_speed() -> Iterator[Claim]:
    """docs/develop/speed.md, and clusters."""
    ten = measured("many_trainings")["ten_folds"]
    growth, many = measured("pair_sums")["growth"], measured("gpu")["many_labels"]
    sweep = measured("fit_time")["seconds_per_epoch"]["YeastBP"]
    times = f"{ten['plain_over_comes']:.3g} times"
    yield from says(
        SPEED,
        f"{ten['comes']:.3g} s against {ten['plain']:.3g} s, {times}",
        f"{growth['64000_over_4000']:.3g} times as long",
        f"{growth['memory_ratio']:.3g} times the memory",
        f"clears {growth['page_faults_64000']:.0f} pages",
        f"between {growth['least_ratio']:.3g} and {growth['most_ratio']:.3g} times",
        f"{1000 * many['comes_rl']:.3g} ms",
        f"{many['comes_rl_over_comes_hl']:.3g} times",
        f"{sweep['touched_share']:.0%} of the features",
        f"{sweep['update_seconds_per_epoch'] / sweep['comes']:.0%} of the time",
    )
    found = measured("clusters")
    for backend in ("dask", "ray"):
        same = all(r["results"] == r["same"] == found["tasks"] for r in found[backend].values())
        yield from shows(CLUSTERS, f"{backend} gave every result with its bytes", same)
        killed = 0 < found[backend]["killed"]["results_at_the_kill"] < found["tasks"]
        yield from shows(CLUSTERS, f"a part of {backend} was killed in between", killed)


CLAIMS: Sequence[Callable[[], Iterator[Claim]]] = (
    claims_of_the_experiments,
    claims_of_the_default,
    claims_of_the_papers_rows,
    claims_of_candidate_sets_and_risks,
    claims_of_assumptions,
    claims_of_choosing,
    claims_of_flooding,
    claims_of_priors,
    claims_of_instance_rates,
    claims_of_images,
    claims_of_questions,
    claims_of_searches,
    claims_of_criteria,
    claims_of_thresholds,
    claims_of_backbones,
    claims_of_speed,
)
