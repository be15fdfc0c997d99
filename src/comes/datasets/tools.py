"""Files of annotation tools: Label Studio's JSON, Prodigy's JSONL, and COCO's json.

Exports of Label Studio and Prodigy become answers. What was skipped, cancelled or never shown is
not asked. What somebody accepted or ticked may be relevant, unless the words say more: with
``accept=yes`` it is. Who said it is kept where the export names people.

In COCO json a category is relevant where an image has an annotation of it, crowds included. An
image without any annotation may show nothing, or nobody may have looked: by default it is left
out, as in most multi-label work; ``unannotated="keep"`` says that nothing is relevant there. Where
images carry ``neg_category_ids`` (verified absent, as in LVIS), the labels are answers: yes where
a category is annotated, no where it is verified absent, and elsewhere nobody looked.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from comes.answers import Answers
from comes.datasets.dataset import Dataset
from comes.datasets.indicators import Marks, count_marks, mark_places
from comes.datasets.labels import MAYBE, NO, NOT_ASKED, STATES, WORDS, YES
from comes.datasets.long import BY_MODEL, PERSON, SOURCE, as_ticked, combine_answers, long_table
from comes.datasets.options import ReadOptions
from comes.errors import ComesError, listed
from comes.files import replacing_file

SAID = "said"  # the field of a line of Prodigy that says more than accept
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
    person: str
    chosen: list[str]
    control: str  # the name of the <Choices>


def load_json(path: Path) -> Any:
    """Return the content of a json file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return json.load(file)
    except (ValueError, OSError, RecursionError) as error:
        raise ComesError(f"{path.name} cannot be read as json: {error}.") from None


def read_json(path: Path, reading: ReadOptions) -> Dataset:
    """Read a COCO file, which is an object, or an export of Label Studio, a list of tasks."""
    content = load_json(path)
    if content == []:
        raise ComesError(f"{path.name} is an empty list; expected tasks of Label Studio.")
    if isinstance(content, list):
        if reading.unannotated is not None:
            raise ComesError(
                f"'unannotated' does not apply to {path.name}, which is not a COCO file. Leave it "
                "out."
            )
        return label_studio_dataset(content, path, reading)
    for name in ("labels", "item", "words"):
        if getattr(reading, name) is not None:
            raise ComesError(
                f"{path.name} is a COCO file, which names its labels and items. Leave out {name!r}."
            )
    dataset = coco_dataset(content, path, reading)
    if reading.unannotated is not None and dataset.answers is not None:
        raise ComesError(
            f"'unannotated' does not apply to {path.name}, whose labels are verified. Leave it out."
        )
    return dataset.with_labels_as(reading.labels_are, path.name)


def label_studio_dataset(tasks: Sequence[Any], path: Path, reading: ReadOptions) -> Dataset:
    """Return the answers of a Label Studio export (JSON, not JSON_MIN).

    ``labels`` of the reading names the ``<Choices>`` that hold labels, where there are several. A
    ``<Choices>`` whose every choice is a word of the states ("no", "yes", "maybe", ...) asks about
    the label that it is named after; else what was chosen are candidates, and the other labels are
    excluded. Complementary choices are surely irrelevant, and the others are not asked.
    """
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
    controls = list(dict.fromkeys(choice.control for choice in choices))
    if reading.labels is not None:
        unknown = [name for name in reading.labels if name not in controls]
        if unknown:
            raise ComesError(
                f"{path.name} has no choices called {unknown[0]!r}; it has {listed(controls)}."
            )
        controls = list(reading.labels)
        choices = [choice for choice in choices if choice.control in controls]
    if not choices:
        raise ComesError(
            f"{path.name} has no choices that somebody made; expected an export with answers."
        )
    words = _words(reading)
    labels = sorted({label for choice in choices for label in choice.chosen})
    if all(label.lower() in words for label in labels):
        _refuse_labels_are(reading, path)
        answers = [
            Answer(choice.item, choice.control, words[word.lower()], choice.person)
            for choice in choices
            for word in choice.chosen
        ]
        return _combine(items, answers, reading)
    if len(controls) > 1:
        raise ComesError(
            f"{path.name} has several choices, {listed(controls)}. Say which hold the labels "
            "(--labels on the command line)."
        )
    shown = list(reading.label_names or labels)
    answers = [
        answer
        for item, person, chosen, _ in choices
        for answer in _read_chosen(item, person, chosen, shown, reading)
    ]
    return _combine(items, answers, reading)


def _read_choices(task: dict[str, Any], item: str, where: str) -> Iterator[Choice]:
    """Yield what was chosen in each ``<Choices>`` of a task, where anything was."""
    for number, annotation in enumerate(task.get("annotations") or task.get("completions") or []):
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        person = annotation.get("completed_by")
        if isinstance(person, dict):
            person = person.get("email") or person.get("id")
        if person is None:  # several annotations without a name are by several people
            person = f"annotation {number + 1}" if number else ""
        for result in annotation.get("result") or []:
            if result.get("type") == "choices" and result["value"].get("choices"):
                chosen = _check_labels(result["value"]["choices"], where)
                yield Choice(item, str(person), chosen, str(result["from_name"]))


def read_prodigy(path: Path, reading: ReadOptions) -> Dataset:
    """Read a Prodigy export: a line per (item, label), or per item with options to tick.

    Of a line with a label, "accept" says maybe, "reject" no, and "ignore" not asked, unless the
    ``words`` of the reading say otherwise. Of a line with options, those ticked are accepted and
    the other options shown are rejected; complementary ones are excluded themselves. If it was
    rejected or ignored, nobody was asked.
    """
    items: list[str] = []
    answers: list[Answer] = []
    for number, line in _read_json_lines(path):
        where = f"line {number} of {path.name}"
        items.append(_name_item(line, reading, line.get("_input_hash"), where))
        answers += _read_line(line, items[-1], where, reading)
        if "label" in line:
            _refuse_labels_are(reading, path)
    if not answers:
        raise ComesError(f"{path.name} has no answers; expected lines of Prodigy.")
    return _combine(items, answers, reading)


def _read_line(line: dict[str, Any], item: str, where: str, reading: ReadOptions) -> list[Answer]:
    person = str(line.get("_annotator_id") or line.get("_session_id") or "")
    answer = line.get("answer")
    if answer not in ("accept", "reject", "ignore"):
        raise ComesError(
            f"{where} should have the answer accept, reject or ignore; got {answer!r}."
        )
    if "label" in line:
        (label,) = _check_labels([line["label"]], where)
        state = line.get(SAID, _words(reading)[answer])
        if state not in STATES:
            raise ComesError(f"{where} should say {', '.join(STATES)} in {SAID!r}; got {state!r}.")
        return [Answer(item, label, state, person, str(line.get(SOURCE, "")))]
    options = line.get("options")
    if not options:
        raise ComesError(f"{where} has neither a label nor options; expected answers about labels.")
    if not all(isinstance(option, dict) and "id" in option for option in options):
        raise ComesError(f"{where} has options without an id; got {options!r}.")
    shown = _check_labels([option["id"] for option in options], where)
    ticked = _check_labels(line.get("accept") or [], where)
    if answer == "accept" and ticked:
        return _read_chosen(item, person, ticked, shown, reading)
    return [Answer(item, option, NOT_ASKED, person) for option in shown]


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


def _name_item(fields: dict[str, Any], reading: ReadOptions, fallback: Any, where: str) -> str:
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


def _check_labels(values: Any, where: str) -> list[str]:
    """Return a list of label names as text; raise if it is something else."""
    if not isinstance(values, list) or not all(isinstance(v, (str, int)) for v in values):
        raise ComesError(f"{where} should have a list of label names; got {values!r}.")
    return [str(value) for value in values]


def _words(reading: ReadOptions) -> dict[str, str]:
    """Return what words mean: as in the tools, unless the reading says otherwise."""
    return {**WORDS, **{word.lower(): state for word, state in (reading.words or {}).items()}}


def _refuse_labels_are(reading: ReadOptions, path: Path) -> None:
    """Raise if answers are to be read as complementary or ticked labels."""
    if reading.labels_are in ("complementary", "positives"):
        raise ComesError(
            f"{path.name} has an answer for each label, and 'no' excludes a label; leave out "
            f"labels_are (--{reading.labels_are})."
        )


def _read_chosen(
    item: str, person: str, chosen: Sequence[str], shown: Sequence[str], reading: ReadOptions
) -> list[Answer]:
    """Return what labels that were chosen, among those shown, say about each of them."""
    words = _words(reading)
    if_chosen, if_not = words["accept"], words["reject"]
    if reading.labels_are in ("complementary", "positives"):
        if_chosen, if_not = NO if reading.labels_are == "complementary" else YES, NOT_ASKED
    return [
        Answer(item, label, if_chosen if label in chosen else if_not, person)
        for label in dict.fromkeys([*shown, *chosen])
    ]


def _combine(items: Sequence[str], answers: Sequence[Answer], reading: ReadOptions) -> Dataset:
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
    if reading.labels_are == "positives":
        return as_ticked(dataset)
    return replace(dataset, from_complementary=reading.labels_are == "complementary")


def coco_dataset(content: Any, path: Path, reading: ReadOptions) -> Dataset:
    """Return the labels of parsed COCO json; items are the file names of the images."""
    try:
        images, categories = content["images"], content["categories"]
        row = {image["id"]: i for i, image in enumerate(images)}
        column = {category["id"]: j for j, category in enumerate(categories)}
        files = [  # LVIS has only the address
            str(image["file_name"] if "file_name" in image else image["coco_url"].split("/")[-1])
            for image in images
        ]
        names = [str(category["name"]) for category in categories]
        present = [(a["image_id"], a["category_id"]) for a in content.get("annotations", [])]
        absent = [(image["id"], c) for image in images for c in image.get("neg_category_ids", ())]
        is_verified = any("neg_category_ids" in image for image in images)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else "it has another form"
        raise ComesError(
            f"{path.name} cannot be read as COCO json, {what}: expected images (id, file_name), "
            "annotations (image_id, category_id) and categories (id, name)."
        ) from None
    if len(row) < len(images) or len(column) < len(categories):
        raise ComesError(
            f"{path.name} repeats the id of an image or a category; every id must be unique."
        )
    if not images or not categories:
        raise ComesError(
            f"{path.name} has {len(images)} images and {len(categories)} categories; expected at "
            "least one of each."
        )
    annotated = _mark_ids(present, row, column, path)
    if not is_verified:
        dataset = Dataset(None, names, relevant=annotated, items=files)
        if reading.unannotated == "keep":
            return dataset
        if not present:
            raise ComesError(
                f"no image in {path.name} has an annotation, and such images are left out. If "
                "nothing is relevant there, keep them (--unannotated keep on the command line)."
            )
        return dataset.take(count_marks(annotated, axis=1) > 0)
    excluded = _mark_ids(absent, row, column, path)
    rows, columns = (annotated * excluded).nonzero()
    if len(rows):
        raise ComesError(
            f"{path.name} says yes and no about {len(rows)} pairs: {names[columns[0]]!r} is "
            f"annotated in {files[rows[0]]!r} and among its neg_category_ids. Keep one of them."
        )
    return Dataset(None, names, items=files, answers=Answers(excluded, annotated))


def _mark_ids(
    pairs: Sequence[tuple[Any, Any]], row: Mapping[Any, int], column: Mapping[Any, int], path: Path
) -> Marks:
    """Return the matrix that is True at pairs of ids of an image and a category."""
    try:
        rows = np.array([row[image] for image, _ in pairs], dtype=np.int64)
        columns = np.array([column[category] for _, category in pairs], dtype=np.int64)
    except (KeyError, TypeError) as unknown:
        raise ComesError(
            f"an annotation in {path.name} names the id {unknown}, which no image or category has."
        ) from None
    return mark_places(rows, columns, (len(row), len(column)))
