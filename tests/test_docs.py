"""Documentation that cannot rot: examples run, commands are documented, numbers are results."""

import inspect
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr
from typer.main import get_command

import comes
from comes.cli import app
from comes.cli.reading import reading_options
from comes.datasets import KNOWN
from comes.methods import METHODS
from comes.metrics import METRICS
from comes.report.metric_tables import MetricTable, metric_table, sweep_to_markdown, to_markdown
from comes.report.published import published
from comes.results import read_results

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a document run in order and share their names; bash blocks call comes."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": document.stem}
    for language, code in BLOCK.findall(document.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(code, document.name, "exec"), names)
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "comes"
            command = [sys.executable, "-c", "from comes.cli import main; main()", *arguments]
            subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        assert target.startswith("http") or (document.parent / target).exists(), target


def test_every_command_has_help_with_an_example_and_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        assert f"\n## comes {name}\n" in text
        assert f"Example: comes {name}" in command.help
        options = {option for p in command.params for option in p.opts if option.startswith("--")}
        assert "--json" in options or hasattr(command, "commands"), name


def test_every_command_of_a_group_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for group, commands in COMMANDS.items():
        for name, command in getattr(commands, "commands", {}).items():
            assert f"comes {group} {name}" in text or name == "show"
            assert f"Example: comes {group} {name}" in command.help
            options = {option for p in command.params for option in p.opts}
            assert "--json" in options or (group, name) == ("annotate", "serve")


def test_every_option_of_reading_is_documented() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for name in inspect.signature(reading_options).parameters:
        assert f"--{name.replace('_', '-')}" in text, name


def test_the_table_of_names_is_what_the_code_knows() -> None:
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for known in KNOWN.values():
        for split, n in known.rows.items():
            name = f"{known.name}:{split}" if split else known.name
            features = known.n_features or "images"
            assert f"| {name} | {n} | {features} | {known.n_labels} | {known.about} |" in text


def test_the_table_of_reading_is_the_stored_result() -> None:
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    result = json.loads((ROOT / "benchmarks" / "results" / "read_time.json").read_text())
    for name, row in result["sets"].items():
        memory = f"{row['peak_megabytes']:.0f} | {row['kept_megabytes']:.0f}"
        assert f"| {name} | {row['seconds']:.2f} | {memory} |" in text


def test_every_room_is_in_the_picture_of_the_house() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.stem for path in (ROOT / "src" / "comes").iterdir() if path.stem[0] != "_"}
    for room in rooms - {"py"}:
        assert f"| `{room}` |" in text, room


def test_public_names_are_what_the_package_says() -> None:
    assert set(comes.__all__) <= set(dir(comes))
    for name in comes.__all__:
        assert getattr(comes, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        comes.nothing  # noqa: B018


def shown(metrics: dict[str, float], names: list[str]) -> str:
    return " | ".join(f"{metrics[name]:.3f}" for name in names)


def test_the_demo_table_is_the_stored_result() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in json.loads((ROOT / "experiments" / "results" / "demo.json").read_text()):
        assert f"| {row['title']} | {shown(row['metrics'], list(METRICS))} |" in readme


@pytest.mark.parametrize(
    ("document", "experiment", "metrics"),
    [
        ("README.md", "paper", ["average_precision", "ranking_loss"]),
        ("README.md", "fair", ["average_precision"]),
        ("docs/training.md", "settings", ["average_precision", "ranking_loss"]),
        ("docs/experiments.md", "synthetic", ["mean_average_precision", "average_precision"]),
        ("docs/experiments.md", "variants", ["average_precision", "ranking_loss"]),
        ("docs/selection.md", "stopping", ["average_precision"]),
        ("docs/selection.md", "thresholds", ["hamming_loss"]),
        ("docs/images.md", "images-probe", ["mean_average_precision", "hamming_loss"]),
        ("docs/images.md", "images-paper", ["mean_average_precision"]),
        ("docs/images.md", "images-paper-others", ["mean_average_precision"]),
        ("docs/images.md", "images-tuned", ["mean_average_precision"]),
    ],
)
def test_the_tables_of_experiments_are_what_the_report_makes(
    document: str, experiment: str, metrics: list[str]
) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    cells = read_results([ROOT / "experiments" / "results" / experiment])
    for metric in metrics:
        assert to_markdown(metric_table(cells, metric)) in text


@pytest.mark.parametrize(
    ("experiment", "metric"),
    [
        ("prior-noise", "average_precision"),
        ("flood", "average_precision"),
        ("rows", "hamming_loss"),
    ],
)
def test_the_tables_of_sweeps_are_what_the_report_makes(experiment: str, metric: str) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    cells = read_results([ROOT / "experiments" / "results" / experiment])
    assert sweep_to_markdown(cells, metric) in text


def test_what_the_readme_says_of_the_experiments_holds() -> None:
    def table(experiment: str, metric: str = "average_precision") -> MetricTable:
        cells = read_results([ROOT / "experiments" / "results" / experiment])
        return metric_table(cells, metric)

    photos, yeast = "mirflickr5000", ("YeastBP", "YeastCC", "YeastMF")
    for protocol in ("paper", "fair"):
        for metric in ("average_precision", "ranking_loss", "one_error", "coverage"):
            assert table(protocol, metric).entries["comes-hl", photos].is_best
        for metric in ("hamming_loss", "mean_average_precision"):
            assert table(protocol, metric).entries["comes-rl", photos].is_best
    assert f"{table('paper').entries['comes-hl', photos].mean:.3f}" == "0.855"
    level = ("comes-hl", "bce", "ctl", "ccmn")
    for protocol, metric in itertools.product(("paper", "fair"), METRICS):
        entries = table(protocol, metric).entries
        for name in yeast:
            means = [entries[method, name].mean for method in level]
            assert max(means) - min(means) < 0.02
    for metric in ("average_precision", "ranking_loss"):
        entries = table("paper", metric).entries
        sign = 1 if METRICS[metric].higher_is_better else -1
        for name in (photos, *yeast):
            assert sign * entries["comes-rl", name].mean < sign * entries["bce", name].mean
    losses = table("fair", "ranking_loss").entries
    assert losses["comes-rl", "YeastBP"].is_best
    assert losses["comes-rl", "YeastMF"].is_best
    for cell in read_results([ROOT / "experiments" / "results" / "fair"]):
        if cell.names.method == "comes-rl":
            assert {(r.chosen or {})["learning_rate"] for r in cell.repeats} == {0.025}
    variants = table("variants").entries
    assert f"{variants['comes-hl, estimated priors', photos].mean:.3f}" == "0.730"
    assert f"{variants['ccmn, estimated rates', photos].mean:.3f}" == "0.842"
    one, other = (
        variants[name, "YeastBP"]
        for name in ("comes-hl, estimated priors", "ccmn, estimated rates")
    )
    assert one.mean > other.mean
    synthetic = table("synthetic", "mean_average_precision").ranks
    assert synthetic is not None
    assert synthetic.methods[0] == "ccmn"
    by_precision = table("synthetic").entries
    for name in ("enron", "yeast"):
        for case in ("case a 0.9", "case b 0.1"):
            assert by_precision["comes-hl", f"{name}, {case}"].is_best


def test_the_table_of_methods_is_what_the_code_knows() -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    for method, family in METHODS.items():
        assert f"| `{method}` | `{next(iter(family.variants))}` |" in text
        for variant in family.variants:
            assert f"`{variant}`" in text, (method, variant)


@pytest.mark.parametrize("data", ["scenes", "mirflickr5000"])
def test_the_comparison_of_methods_is_the_stored_result(data: str) -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    result = json.loads((ROOT / "experiments" / "results" / "methods.json").read_text())
    for row in result[data]:  # a method that was added since need not be in a stored result
        assert row["variant"] in METHODS[row["method"]].variants
    for row in result[data]:
        name = row["method"] + (" (rates of the prior)" if "flip_rate" in row else "")
        name += f" (Adam, {row['learning_rate']})" if "optimizer" in row else ""
        values = shown(row["metrics"], list(METRICS)) if "metrics" in row else "runs away"
        assert f"| {name} | {row['variant']} | {values} |" in text


def test_the_tables_of_priors_are_the_stored_results() -> None:
    text = (ROOT / "docs" / "priors.md").read_text(encoding="utf-8")
    result = json.loads((ROOT / "experiments" / "results" / "priors.json").read_text())
    for line in prior_lines(result):
        assert line in text


def prior_lines(result: dict[str, Any]) -> list[str]:
    """Return the rows of the three tables of docs/priors.md."""
    lines = []
    table = {(r["data"], r["exclude_rate"], r["method"]): r for r in result["estimators"]}
    methods = list(dict.fromkeys(key[2] for key in table))
    for data, rate in dict.fromkeys(key[:2] for key in table):
        errors = " | ".join(f"{table[data, rate, m]['error']:.3f}" for m in methods)
        lines.append(f"| {data} | {rate} | {errors} |")
    for row, name in (("error", "mean"), ("seconds", "seconds")):
        values = [[r[row] for r in result["estimators"] if r["method"] == m] for m in methods]
        shown_values = " | ".join(f"{sum(v) / len(v):.3f}" for v in values)
        lines.append(f"| {name} | | {shown_values} |")
    scores: dict[tuple[str, float], dict[str, list[float]]] = {}
    for r in result["training"]:
        by_prior = scores.setdefault((r["data"], r["exclude_rate"]), {})
        by_prior.setdefault(r["prior"], []).append(r["average_precision"])
    for (data, rate), by_prior in scores.items():
        means = " | ".join(f"{sum(v) / len(v):.3f}" for v in by_prior.values())
        lines.append(f"| {data} | {rate} | {means} |")
    for r in result["real"]:
        lines.append(
            f"| {r['data']} | {r['error']:.4f} | {r['inside_bounds']:.0%} | {r['seconds']:.0f} |"
        )
    return lines


def stored(name: str) -> Any:
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())


def choosing_lines(result: Any) -> list[str]:
    """Return the rows of the tables of docs/selection.md on choosing."""
    cases = list(dict.fromkeys((run["data"], run["rate"]) for run in result["runs"]))
    lines = []
    for data, rate in cases:
        runs = [run for run in result["runs"] if (run["data"], run["rate"]) == (data, rate)]
        agreement = [
            spearmanr(run["estimates"]["true"], [t["ranking_loss"] for t in run["truth"]]).statistic
            for run in runs
        ]
        cells = [f"{sum(agreement) / len(runs):.2f}"]
        for known in ("true", "estimated"):
            own = [run["choices"][known] for run in runs]
            correlation = sum(choice["rank_correlation"] for choice in own) / len(own)
            cells.append(f"{correlation:.2f} | {sum(c['regret'] for c in own) / len(own):.3f}")
        lines.append(f"| {data} | {'its own' if rate is None else rate} | {' | '.join(cells)} |")
    for run in result["runs"]:
        if run["rate"] == 0.1:
            choice = run["choices"]["true"]
            low, high = choice["interval"]
            chosen, best = (", ".join(map(str, choice[name])) for name in ("chosen", "best"))
            where = f"{run['data']} | {run['seed']} | {chosen} | {best}"
            lines.append(f"| {where} | {choice['regret']:.3f} | {low:.2f} to {high:.2f} |")
    return lines


def test_the_tables_of_selection_are_the_stored_results() -> None:
    text = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")
    for name, row in stored("selection_simulation").items():
        cells = (f"{m['bias_in_standard_errors']:+.1f}, {m['coverage']:.1%}" for m in row.values())
        assert f"| {name} | {' | '.join(cells)} |" in text
    for line in choosing_lines(stored("selection")):
        assert line in text
    for row in stored("agreement"):
        values = " | ".join(f"{value:.2f}" for value in row["correlations"].values())
        assert f"| {row['data']} | {row['rate']} | {values} |" in text
    for row in stored("assumption"):
        broken = sum(says == "not constant" for says in row["says"])
        aucs = f"{min(row['auc']):.2f} to {max(row['auc']):.2f}"
        assert f"| {row['data']} | {len(row['says'])} | {broken} | {aucs} |" in text


def test_the_numbers_of_images_are_the_stored_results() -> None:
    text = (ROOT / "docs" / "images.md").read_text(encoding="utf-8")
    runs = stored("image_choice")["runs"]
    for run in runs:
        chosen = run["chosen"]
        settings = f"{chosen['temperature']:g}, {chosen['standard_errors']:g}"
        results = (run[name]["mAP"] for name in ("chosen", "default", "best_by_truth"))
        cells = (run["case"], run["seed"], settings, *(f"{value:.3f}" for value in results))
        assert f"| {' | '.join(map(str, cells))} |" in text
    of_defaults = []
    for case in ("a", "b"):
        own = [run for run in runs if run["case"] == case]
        mean = sum(run["chosen"]["mAP"] for run in own) / len(own)
        assert f"{mean:.3f} in case {case}" in text
        of_defaults.append(f"{sum(run['default']['mAP'] for run in own) / len(own):.3f}")
    assert f"where the defaults have {' and '.join(of_defaults)}" in text
    assert 0.04 < sum(run["prior_error"] for run in runs) / len(runs) < 0.06
    (clean,) = read_results([ROOT / "experiments" / "results" / "images-clean"])
    assert f"head reach a mAP of {clean.values('mean_average_precision').mean():.3f}" in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    probes = metric_table(
        read_results([ROOT / "experiments" / "results" / "images-probe"]), "mean_average_precision"
    ).entries
    probes_hamming = metric_table(
        read_results([ROOT / "experiments" / "results" / "images-probe"]), "hamming_loss"
    ).entries
    chosen = []
    for case in ("a", "b"):
        own = [run["chosen"]["mAP"] for run in runs if run["case"] == case]
        chosen.append(f"{sum(own) / len(own):.3f}")
        assert sum(own) / len(own) > 0.58
    assert " and ".join(chosen) in readme
    for case in ("a", "b"):
        best = probes["comes-hl, classes, estimated priors", f"VOC2012, case {case}"].mean
        assert f"{best:.3f} (case {case})" in readme
        assert best > 0.65
        nothing = probes_hamming["comes-hl, pooled", f"VOC2012, case {case}"].mean
        assert nothing > 0.1 > probes_hamming["comes-hl, classes", f"VOC2012, case {case}"].mean
    speed = measured("image_speed")
    assert f"took {speed['seconds_to_decode_once']:g} s" in text
    seconds = speed["seconds_per_epoch"]
    assert seconds["comes_hl_over_bce"] <= 1.03 and seconds["comes_rl_over_bce"] <= 1.03
    assert seconds["synthetic_over_bce"] >= 0.8
    with_true_priors = (
        f"{probes['comes-hl, classes', f'VOC2012, case {case}'].mean:.3f}" for case in "ab"
    )
    assert f"({' and '.join(with_true_priors)} with true priors)" in text
    for name, value in speed["images_per_second"].items():
        assert f"| {value:.0f} | {seconds[name] / seconds['bce']:.2f} |" in text
    paper = published().set_index(["data", "case", "method"])["mean"]
    for case in ("a", "b"):
        in_the_paper = [name for name, family in METHODS.items() if family.place is not None]
        best = max(float(paper["VOC2012", case, method]) for method in in_the_paper)
        assert f"{best:.3f} ({case})" in text
    for method in ("bce", "comes-hl", "comes-rl"):
        assert f"{float(paper['VOC2012', 'a', method]):.3f} for" in text


def test_the_numbers_of_annotation_are_the_stored_results() -> None:
    text = (ROOT / "docs" / "annotate.md").read_text(encoding="utf-8")
    for row in stored("circle"):
        reached = row["average_precision"], row["directly"]
        assert abs(reached[0] - reached[1]) <= 0.02
        cells = f"{row['prior_error']:.3f} | {reached[0]:.3f} | {reached[1]:.3f}"
        assert f"| {row['seed']} | {row['answers']} | {cells} |" in text
    load = measured("annotation_load")["sqlite"]
    assert load["quick_people"]["fifty_p95_over_one_p95"] <= 5
    columns = [f"{who}_{q}_milliseconds" for who in ("one", "fifty") for q in ("p50", "p95")]
    columns += ["fifty_p95_over_one_p95", "fifty_per_second"]
    for situation in load.values():
        assert " | ".join(f"{situation[name]:g}" for name in columns) in text


def test_choosing_on_candidates_costs_what_the_document_says() -> None:
    text = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")
    regrets: dict[tuple[float | None, str], list[float]] = {}
    for run in stored("selection")["runs"]:
        for known, choice in run["choices"].items():
            regrets.setdefault((run["rate"], known), []).append(choice["regret"])
    mean = {key: sum(values) / len(values) for key, values in regrets.items()}
    assert mean[0.5, "true"] <= 0.02
    for part in (
        f"At a rate of 0.5 the choice costs {mean[0.5, 'true']:.3f} on average",
        f"with an estimated prior {mean[0.5, 'estimated']:.3f}",
        f"at 0.1 it costs {mean[0.1, 'true']:.3f}, and {mean[0.1, 'estimated']:.3f} with",
        f"the chosen model loses {mean[None, 'true']:.3f}",
    ):
        assert part in text


def test_early_stopping_changes_what_the_document_says() -> None:
    text = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")
    cells = read_results([ROOT / "experiments" / "results" / "stopping"])
    table = metric_table(cells, "average_precision")
    for method in ("bce", "ccmn", "comes-hl", "comes-rl"):
        changes = [
            table.entries[f"{method}, stopped", data].mean - table.entries[method, data].mean
            for data in table.data
        ]
        assert f"{sum(changes) / len(changes):+.3f} for {method.upper()}" in text


def test_thresholds_do_what_the_document_says() -> None:
    text = " ".join((ROOT / "docs" / "selection.md").read_text(encoding="utf-8").split())
    cells = read_results([ROOT / "experiments" / "results" / "thresholds"])
    table = metric_table(cells, "hamming_loss")

    def mean(method: str) -> float:
        values = [table.entries[method, data].mean for data in table.data]
        return sum(values) / len(values)

    of_rl = [f"{mean(f'comes-rl, {name}'):.3f}" for name in ("auto", "risk", "prior")]
    of_hl = [f"{mean(f'comes-hl, {name}'):.3f}" for name in ("auto", "risk", "prior")]
    assert f"is {of_rl[0]} for COMES-RL with `auto`, {of_rl[1]} with `risk` and {of_rl[2]}" in text
    assert f"for COMES-HL {of_hl[0]}, {of_hl[1]} and {of_hl[2]}" in text
    assert mean("comes-rl, minmax") == max(mean(m) for m in table.methods if "comes-rl" in m)
    for name in ("auto", "prior", "risk", "f1"):  # the paper has 0.186
        assert table.entries[f"comes-rl, {name}", "mirflickr5000"].mean <= 0.19


def test_the_simulation_keeps_what_the_formulas_promise() -> None:
    """Unbiased within four standard errors, intervals that hold 88 to 99 times in a hundred."""
    for name, row in stored("selection_simulation").items():
        if name.endswith("prior true"):
            for metric in row.values():
                assert abs(metric["bias_in_standard_errors"]) < 4
                assert 0.88 <= metric["coverage"] <= 0.99


def measured(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def speed_lines() -> list[str]:
    """Return the rows of the tables of docs/speed.md, from the stored results."""
    lines = []
    for q, row in measured("pair_sums")["against_plain"].items():
        times = " | ".join(f"{1000 * row[way]:.3g}" for way in ("comes", "plain"))
        times += f" | {row['plain_over_comes']:.3g}"
        lines.append(
            f"| {q} | {times} | {row['value_difference']:.1g} | {row['gradient_difference']:.1g} |"
        )
    for name, row in measured("fit_time")["seconds_per_epoch"].items():
        ratio = f"{row['plain_over_comes']:.3g}"
        lines.append(f"| {name} | {row['comes']:.3g} | {row['plain']:.3g} | {ratio} |")
    for name, row in measured("against_others")["seconds"].items():
        times = " | ".join(f"{row[other]:.3g}" for other in ("comes", "scikit_learn", "skorch"))
        lines.append(f"| {name} | {times} |")
    many = measured("many_trainings")
    ten = many["ten_folds"]
    ratio = f"{ten['plain_over_comes']:.3g} times"
    lines.append(f"{ten['comes']:.3g} s against {ten['plain']:.3g} s, {ratio}")
    for d, row in many["choices"].items():
        times = " | ".join(f"{row[way]:.3g}" for way in ("batched", "one_by_one", "processes"))
        lines.append(f"| {d} | {times} |")
    gpu = measured("gpu")
    for name, row in gpu["seconds_per_epoch"].items():
        times = " | ".join(f"{row[way]:.3g}" for way in ("plain", "graph", "ten_at_once"))
        lines.append(f"| {name} | {times} |")
    lines += [f"| {m} | {seconds:.3g} |" for m, seconds in gpu["seven_methods_ten_folds"].items()]
    priors = measured("prior_time")
    for name, seconds in priors["seconds"].items():
        ratio = f"{priors['ratio'].get(name, 1.0):.3g}"
        lines.append(f"| {name.replace('_', ' ')} | {seconds:.3g} | {ratio} |")
    for name, seconds in measured("start_time")["seconds"].items():
        lines.append(f"| `{name}` | {seconds:.3g} |")
    return lines


def test_the_speed_tables_are_the_stored_results() -> None:
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for line in speed_lines():
        assert line in text
    pairs = measured("pair_sums")
    growth = pairs["growth"]
    assert f"{growth['64000_over_4000']:.3g} times as long" in text
    assert f"{growth['memory_ratio']:.3g} times the memory" in text
    many = measured("gpu")["many_labels"]
    assert f"{1000 * many['comes_rl']:.3g} ms" in text
    assert f"{many['comes_rl_over_comes_hl']:.3g} times" in text
    sweep = measured("fit_time")["seconds_per_epoch"]["YeastBP"]
    assert f"{sweep['touched_share']:.0%} of the features" in text
    assert f"{sweep['update_seconds_per_epoch'] / sweep['comes']:.0%} of the time" in text


def test_nothing_names_a_machine() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    home = os.path.sep.join(["", "work", ""]).encode()
    for name in tracked:
        assert home not in (ROOT / name).read_bytes(), name
