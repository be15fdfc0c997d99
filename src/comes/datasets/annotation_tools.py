"""Exports of annotation tools: Label Studio's JSON and Prodigy's JSONL.

Both become answers (`comes.datasets.answer_tables`). What was skipped, cancelled or never shown is
not asked. What somebody accepted or ticked may be relevant, unless the words say more: with
``accept=yes`` it is. Who said it is kept where the export names people.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from comes.datasets.answer_tables import (
    BY_MODEL,
    PERSON,
    SOURCE,
    as_ticked,
    combine_answers,
)
from comes.datasets.answer_words import MAYBE, NO, NOT_ASKED, STATES, WORDS, YES
from comes.datasets.dataset import Dataset
from comes.datasets.long_writing import long_table
from comes.datasets.reading import Reading
from comes.errors import ComesError, listed
from comes.files import replacing_file

SAID = "said"  # the field of a line that says more than accept
TICKED, SHOWN = "accept", "reject"  # the words for what was ticked, and for what was not
# The fields of a task that may name its item, the likeliest first. Unlike a column of a table
# (ITEM_COLUMNS), a field may hold the item itself: its text, or the address of its picture.
ITEM_FIELDS = ("item", "id", "path", "file", "filename", "image", "text", "html", "url", "audio")


class Answer(NamedTuple):
    """What somebody said about a pair."""

    item: str
    label: str
    state: str
    person: str = ""
    source: str = ""


class Choice(NamedTuple):
    """What somebody chose in one ``<Choices>`` of Label Studio."""

    item: str
    control: str  # the name of the <Choices>
    chosen: list[str]
    person: str


class Ticks(NamedTuple):
    """The labels that somebody ticked, among those that were shown."""

    item: str
    ticked: list[str]
    shown: list[str]
    person: str


def label_studio_dataset(tasks: Sequence[Any], path: Path, reading: Reading) -> Dataset:
    """Return the answers of a Label Studio export (JSON, not JSON_MIN).

    Parameters
    ----------
    tasks : list of dict
    path : Path
        For messages.
    reading : Reading
        ``labels`` names the ``<Choices>`` to read, where there are several with labels in them.
        ``item`` is the field of a task's data that names the item; by default the likeliest one
        there is, else the task's id. Choices are the candidates, and a label that was not chosen
        is excluded: ``words`` may say that what was chosen ("accept") is yes. Complementary choices
        are surely irrelevant, and the others are not asked.

    Notes
    -----
    A ``<Choices>`` whose every choice is a word of the states ("no", "yes", "maybe", ...) asks
    about the label that it is named after. An answer without a choice says nothing.
    """
    items, choices = _read_tasks(tasks, path, reading)
    choices, controls = _select_controls(choices, path, reading)
    words = _know_words(reading)
    if all(label.lower() in words for choice in choices for label in choice.chosen):
        _refuse_kind(reading, path)
        answers = [
            Answer(choice.item, choice.control, words[word.lower()], choice.person)
            for choice in choices
            for word in choice.chosen
        ]
    elif len(controls) > 1:
        raise ComesError(
            f"{path.name} has several choices, {listed(controls)}. Say which hold the labels "
            "(--labels on the command line)."
        )
    else:
        found = sorted({label for choice in choices for label in choice.chosen})
        shown = list(reading.label_names or found)
        ticks = [Ticks(choice.item, choice.chosen, shown, choice.person) for choice in choices]
        answers = list(_read_ticks(ticks, reading))
    return _combine_all(items, answers, reading)


def _read_tasks(
    tasks: Sequence[Any], path: Path, reading: Reading
) -> tuple[list[str], list[Choice]]:
    """Return the names of the items, and every choice that somebody made."""
    items: list[str] = []
    choices: list[Choice] = []
    for number, task in enumerate(tasks):
        where = f"task {number} of {path.name}"
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise ComesError(
                f"{where} has no 'data'; an export of Label Studio as JSON (not JSON_MIN) was "
                "wanted."
            )
        items.append(_name_item(task["data"], reading, task.get("id", number), where))
        try:
            choices += _read_choices(task, items[-1], where)
        except (KeyError, TypeError, AttributeError) as error:
            raise ComesError(
                f"{where} does not have the form of Label Studio's JSON: {error!r}."
            ) from None
    return items, choices


def _read_choices(task: dict[str, Any], item: str, where: str) -> Iterator[Choice]:
    """Yield what was chosen in each ``<Choices>`` of a task, where anything was."""
    for number, annotation in enumerate(task.get("annotations") or task.get("completions") or []):
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        person = _name_person(annotation.get("completed_by"), number)
        for result in annotation.get("result") or []:
            if result.get("type") == "choices" and result["value"].get("choices"):
                chosen = _check_label_list(result["value"]["choices"], where)
                yield Choice(item, str(result["from_name"]), chosen, person)


def _name_person(completed_by: Any, number: int) -> str:
    """Return who made an annotation; several of one task without a name are several people."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    if completed_by is not None:
        return str(completed_by)
    return f"annotation {number + 1}" if number else ""


def _select_controls(
    choices: Sequence[Choice], path: Path, reading: Reading
) -> tuple[list[Choice], list[str]]:
    """Return the choices of the ``<Choices>`` that hold labels, and the names of these."""
    controls = list(dict.fromkeys(choice.control for choice in choices))
    if reading.labels is not None:
        unknown = [name for name in reading.labels if name not in controls]
        if unknown:
            raise ComesError(
                f"{path.name} has no choices called {unknown[0]!r}; it has {listed(controls)}."
            )
        controls = list(reading.labels)
    selected = [choice for choice in choices if choice.control in controls]
    if not selected:
        raise ComesError(
            f"{path.name} has no choices that somebody made; expected an export with answers."
        )
    return selected, controls


def read_prodigy(path: Path, reading: Reading) -> Dataset:
    """Read a Prodigy export: a line per (item, label), or per item with options to tick.

    Of a line with a label, "accept" says maybe, "reject" no, and "ignore" not asked, unless the
    ``words`` of the reading say otherwise. Of a line with options, those ticked are accepted and
    the other options shown are rejected; complementary ones are excluded themselves. If it was
    rejected or ignored, nobody was asked.
    """
    items: list[str] = []
    answers: list[Answer] = []
    ticks: list[Ticks] = []
    for number, line in _read_json_lines(path):
        where = f"line {number} of {path.name}"
        items.append(_name_item(line, reading, line.get("_input_hash"), where))
        said = _read_prodigy_line(line, items[-1], where, _know_words(reading))
        if isinstance(said, Ticks):
            ticks.append(said)
        else:
            answers += said
        if "label" in line:
            _refuse_kind(reading, path)
    answers += _read_ticks(ticks, reading)
    if not answers:
        raise ComesError(f"{path.name} has no answers; expected lines of Prodigy.")
    return _combine_all(items, answers, reading)


def _read_prodigy_line(
    line: dict[str, Any], item: str, where: str, words: Mapping[str, str]
) -> list[Answer] | Ticks:
    """Return the answers of a line, or what was ticked among its options."""
    person = str(line.get("_annotator_id") or line.get("_session_id") or "")
    answer = line.get("answer")
    if answer not in ("accept", "reject", "ignore"):
        raise ComesError(
            f"{where} should have the answer accept, reject or ignore; got {answer!r}."
        )
    if "label" in line:
        (label,) = _check_label_list([line["label"]], where)
        said = line.get(SAID, words[answer])
        if said not in STATES:
            raise ComesError(f"{where} should say {', '.join(STATES)} in {SAID!r}; got {said!r}.")
        return [Answer(item, label, said, person, str(line.get(SOURCE, "")))]
    options = line.get("options")
    if not options:
        raise ComesError(f"{where} has neither a label nor options; expected answers about labels.")
    if not all(isinstance(option, dict) and "id" in option for option in options):
        raise ComesError(f"{where} has options without an id; got {options!r}.")
    shown = _check_label_list([option["id"] for option in options], where)
    ticked = _check_label_list(line.get("accept") or [], where)
    if answer == "accept" and ticked:
        return Ticks(item, ticked, shown, person)
    return [Answer(item, option, NOT_ASKED, person) for option in shown]


def write_prodigy(dataset: Dataset, path: Path) -> None:
    """Write a line per answer, which Prodigy and `read_prodigy` read.

    Prodigy has one word for yes and maybe, so a yes says so in a field of its own.
    """
    words = {NO: "reject", MAYBE: "accept", YES: "accept", NOT_ASKED: "ignore"}
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in long_table(dataset).to_dict("records"):
            name, state = row["item"], row["answer"]
            line = {"item": name, "text": name, "label": row["label"], "answer": words[state]}
            more = {SAID: state if state == YES else "", "_annotator_id": row.get(PERSON)}
            more[SOURCE] = row.get(SOURCE)
            line.update({field: value for field, value in more.items() if value})
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _name_item(fields: dict[str, Any], reading: Reading, fallback: Any, where: str) -> str:
    """Return the name of an item from its fields."""
    if reading.item is not None:
        if reading.item not in fields:
            raise ComesError(
                f"{where} has no field {reading.item!r}; it has {listed(list(fields))}."
            )
        return str(fields[reading.item])
    for name in ITEM_FIELDS:
        value = fields.get(name)
        if isinstance(value, (str, int)) and not str(value).startswith("data:"):
            return str(value)
    if fallback is None:
        raise ComesError(
            f"{where} has no field that names its item; it has {listed(list(fields))}. Say which "
            "one does (--item on the command line)."
        )
    return str(fallback)


def _check_label_list(values: Any, where: str) -> list[str]:
    """Return a list of label names as text; raise if it is something else."""
    if not isinstance(values, list) or not all(isinstance(v, (str, int)) for v in values):
        raise ComesError(f"{where} should have a list of label names; got {values!r}.")
    return [str(value) for value in values]


def _know_words(reading: Reading) -> dict[str, str]:
    """Return what words mean: those of the tools, unless the reading says otherwise."""
    own = {word.lower(): state for word, state in (reading.words or {}).items()}
    return {**WORDS, **own}


def _refuse_kind(reading: Reading, path: Path) -> None:
    """Raise if answers are said to be complementary or ticked labels."""
    if reading.is_complementary or reading.is_positive:
        raise ComesError(
            f"{path.name} has an answer for each label, and 'no' excludes a label; leave out "
            f"labels_are (--{reading.labels_are})."
        )


def _read_ticks(ticks: Sequence[Ticks], reading: Reading) -> Iterator[Answer]:
    """Yield what ticks say about each label that was shown."""
    words = _know_words(reading)
    if_ticked, if_not = words[TICKED], words[SHOWN]
    if reading.is_complementary:
        if_ticked, if_not = NO, NOT_ASKED
    elif reading.is_positive:
        if_ticked, if_not = YES, NOT_ASKED
    for item, ticked, shown, person in ticks:
        for label in dict.fromkeys([*shown, *ticked]):
            yield Answer(item, label, if_ticked if label in ticked else if_not, person)


def _combine_all(items: Sequence[str], answers: Sequence[Answer], reading: Reading) -> Dataset:
    """Return the data set of all items, those without an answer included, in their order."""
    names, labels, states, people, sources = zip(*answers, strict=True)
    dataset = combine_answers(
        names,
        labels,
        states,
        reading.label_names,
        item_names=list(dict.fromkeys(items)),
        people=people,
        chosen=[source in BY_MODEL for source in sources],
    )
    if reading.is_positive:
        return as_ticked(dataset)
    return replace(dataset, from_complementary=reading.is_complementary)


def _read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the content of every line that is not empty."""
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
