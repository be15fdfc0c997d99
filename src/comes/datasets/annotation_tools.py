"""Exports of annotation tools: Label Studio's JSON and Prodigy's JSONL.

Both become answers in three states (`comes.datasets.answers`). What was skipped, cancelled or never
shown is not asked, and stays a candidate.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comes.datasets.answers import MAYBE, NO, NOT_ASKED, WORDS, combine_answers, long_table
from comes.datasets.dataset import Dataset
from comes.errors import ComesError, listed
from comes.files import replacing_file

Answer = tuple[str, str, str]  # item, label, state
ITEM_KEYS = ("item", "id", "path", "file", "filename", "image", "text", "html", "url", "audio")


def label_studio_dataset(
    tasks: Sequence[Any],
    path: Path,
    labels: Sequence[str] | None = None,
    item: str | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Return the answers of a Label Studio export (JSON, not JSON_MIN).

    Parameters
    ----------
    tasks : list of dict
    path : Path
        For messages.
    labels : sequence of str, optional
        The names of the ``<Choices>`` to read; needed where there are several with labels in them.
    item : str, optional
        The field of a task's data that names the item; by default the likeliest one there is, else
        the task's id.
    complementary : bool
        The choices are what is surely irrelevant, and say nothing of the others. Otherwise they are
        the candidates, and a label that was not chosen is excluded.
    label_names : sequence of str, optional
        All labels there are, where the choices may not show them.

    Notes
    -----
    A ``<Choices>`` whose every choice is a word of the three states ("no", "maybe", ...) asks about
    the label that it is named after. An answer without a choice says nothing.
    """
    chosen: list[tuple[str, str, list[str]]] = []  # item, control, choices
    items: list[str] = []
    for number, task in enumerate(tasks):
        where = f"task {number} of {path.name}"
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise ComesError(
                f"{where} has no 'data'; an export of Label Studio as JSON (not JSON_MIN) was "
                "wanted."
            )
        name = _item(task["data"], item, task.get("id", number), where)
        items.append(name)
        try:
            chosen += [(name, control, choices) for control, choices in _choices(task, where)]
        except (KeyError, TypeError, AttributeError) as error:
            raise ComesError(
                f"{where} has not the form of Label Studio's JSON: {error!r}."
            ) from None
    controls = list(dict.fromkeys(control for _, control, _ in chosen))
    if labels:
        unknown = [name for name in labels if name not in controls]
        if unknown:
            raise ComesError(
                f"{path.name} has no choices called {unknown[0]!r}; it has {listed(controls)}."
            )
        controls = list(labels)
    chosen = [entry for entry in chosen if entry[1] in controls]
    if not chosen:
        raise ComesError(
            f"{path.name} has no choices that somebody made; an export with answers was wanted."
        )
    if all(choice.lower() in WORDS for _, _, choices in chosen for choice in choices):
        _refuse_complementary(complementary, path)
        answers = [(name, control, WORDS[c.lower()]) for name, control, cs in chosen for c in cs]
    elif len(controls) > 1:
        raise ComesError(
            f"{path.name} has several choices, {listed(controls)}. Say which hold the labels "
            "(--labels on the command line)."
        )
    else:
        names = _all_labels((c for _, _, cs in chosen for c in cs), label_names)
        answers = list(_ticked([(name, cs, names) for name, _, cs in chosen], complementary))
    return _combined(items, answers, complementary, label_names)


def _choices(task: dict[str, Any], where: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each ``<Choices>`` of a task and what was chosen, if anything was."""
    for annotation in task.get("annotations") or task.get("completions") or []:
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        for result in annotation.get("result") or []:
            if result.get("type") == "choices" and result["value"].get("choices"):
                yield str(result["from_name"]), _names(result["value"]["choices"], where)


def read_prodigy(
    path: Path,
    *,
    item: str | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Read a Prodigy export: a line per (item, label), or per item with options to tick.

    Of a line with a label, "accept" says maybe, "reject" no, and "ignore" not asked. Of a line with
    options, those ticked are the candidates and the other options shown are excluded, or with
    ``complementary`` those ticked are excluded; if it was rejected or ignored, nobody was asked.
    """
    answers: list[Answer] = []
    items: list[str] = []
    ticks: list[tuple[str, list[str], list[str]]] = []  # item, ticked, shown
    for number, line in _json_lines(path):
        where = f"line {number} of {path.name}"
        name = _item(line, item, line.get("_input_hash"), where)
        items.append(name)
        answer = line.get("answer")
        if answer not in ("accept", "reject", "ignore"):
            raise ComesError(
                f"{where} should have the answer accept, reject or ignore; got {answer!r}."
            )
        if "label" in line:
            _refuse_complementary(complementary, path)
            answers += [(name, label, WORDS[answer]) for label in _names([line["label"]], where)]
        elif line.get("options"):
            options = line["options"]
            if not all(isinstance(option, dict) and "id" in option for option in options):
                raise ComesError(f"{where} has options without an id; got {options!r}.")
            shown = _names([option["id"] for option in options], where)
            ticked = _names(line.get("accept") or [], where)
            if answer == "accept" and ticked:
                ticks.append((name, ticked, shown))
            else:
                answers += [(name, option, NOT_ASKED) for option in shown]
        else:
            raise ComesError(
                f"{where} has neither a label nor options; answers to labels were wanted."
            )
    answers += _ticked(ticks, complementary)
    if not answers:
        raise ComesError(f"{path.name} has no answers; lines of Prodigy were wanted.")
    return _combined(items, answers, complementary and bool(ticks), label_names)


def write_prodigy(dataset: Dataset, path: Path) -> None:
    """Write a line per answer, which Prodigy and `read_prodigy` read."""
    words = {NO: "reject", MAYBE: "accept", NOT_ASKED: "ignore"}
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for name, label, state in long_table(dataset).itertuples(index=False):
            line = {"item": name, "text": name, "label": label, "answer": words[state]}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _item(fields: dict[str, Any], wanted: str | None, fallback: Any, where: str) -> str:
    """Return the name of an item from its fields."""
    if wanted is not None:
        if wanted not in fields:
            raise ComesError(f"{where} has no field {wanted!r}; it has {listed(list(fields))}.")
        return str(fields[wanted])
    for key in ITEM_KEYS:
        value = fields.get(key)
        if isinstance(value, (str, int)) and not str(value).startswith("data:"):
            return str(value)
    if fallback is None:
        raise ComesError(
            f"{where} has no field that names its item; {listed(list(fields))}. Say which one "
            "does (--item on the command line)."
        )
    return str(fallback)


def _names(values: Any, where: str) -> list[str]:
    """Return a list of label names as text, checked."""
    if not isinstance(values, list) or not all(isinstance(v, (str, int)) for v in values):
        raise ComesError(f"{where} should have a list of label names; got {values!r}.")
    return [str(value) for value in values]


def _refuse_complementary(complementary: bool, path: Path) -> None:
    if complementary:
        raise ComesError(
            f"{path.name} has an answer for each label, of which 'no' is what excludes; leave "
            "--complementary out."
        )


def _ticked(
    ticks: Sequence[tuple[str, list[str], list[str]]], complementary: bool
) -> Iterator[Answer]:
    """Yield what a choice among the labels shown says of each."""
    for name, ticked, shown in ticks:
        for label in dict.fromkeys([*shown, *ticked]):
            if complementary:
                yield name, label, NO if label in ticked else NOT_ASKED
            else:
                yield name, label, MAYBE if label in ticked else NO


def _all_labels(found: Iterator[str], label_names: Sequence[str] | None) -> list[str]:
    return sorted(set(found)) if label_names is None else list(label_names)


def _combined(
    items: Sequence[str],
    answers: Sequence[Answer],
    complementary: bool,
    label_names: Sequence[str] | None,
) -> Dataset:
    """Return the data set of all items, those without an answer included, in their order."""
    first = answers[0][1]
    every = [(name, first, NOT_ASKED) for name in dict.fromkeys(items)]
    names, labels, states = zip(*every, *answers, strict=True)
    dataset = combine_answers(names, labels, states, label_names)
    return replace(dataset, from_complementary=complementary)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    line = json.loads(text)
                    if not isinstance(line, dict):
                        raise ComesError(f"line {number} of {path.name} should be an object.")
                    yield number, line
    except (json.JSONDecodeError, RecursionError) as error:
        raise ComesError(f"line {number} of {path.name} cannot be read as json: {error}.") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ComesError(f"{path.name} cannot be read as text in UTF-8: {error}.") from None
