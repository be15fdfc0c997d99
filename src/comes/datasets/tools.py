"""Files of annotation tools: Label Studio's JSON, Prodigy's JSONL, and COCO's json.

Exports of Label Studio and Prodigy become answers. What was skipped, cancelled or never shown is
not asked. What somebody accepted or ticked may be relevant, unless ``words`` say more.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from comes.answers import Answers
from comes.datasets.dataset import Dataset, Marks, count_marks, mark_places
from comes.datasets.labels import MAYBE, NO, NOT_ASKED, STATES, WORDS, YES
from comes.datasets.long import BY_MODEL, PERSON, SOURCE, as_ticked, combine_answers, long_table
from comes.datasets.options import ReadOptions
from comes.errors import ComesError, listed, reading_as
from comes.files import replacing_file

SAID = "said"  # the field of a line of Prodigy that says more than accept
# The fields of a task that may name its item, the likeliest first. Unlike a column of a table
# (ITEM_COLUMNS), a field may hold the item itself: its text, or the address of its picture.
ITEM_FIELDS = ("item", "id", "path", "file", "filename", "image", "text", "html", "url", "audio")

COCO_FORM = (
    "COCO json, with images (id, file_name), annotations (image_id, category_id) and categories "
    "(id, name)"
)
Answer = tuple[str, str, str, str, str]  # item, label, state, person, source


def read_json(path: Path, options: ReadOptions) -> Dataset:
    """Read a COCO file, which is an object, or an export of Label Studio, a list of tasks."""
    with reading_as("json", path.name):
        content = json.loads(path.read_bytes())
    is_coco = not isinstance(content, list)
    for name in ("labels", "item", "words") if is_coco else ("unannotated",):
        if getattr(options, name) is not None:
            what = "a COCO file, which names its labels and items" if is_coco else "not a COCO file"
            raise ComesError(f"{name!r} does not apply to {path.name}, {what}. Leave it out.")
    if not is_coco:
        return _read_label_studio(content, path, options)
    return coco_dataset(content, path, options).with_labels_as(options.labels_are, path.name)


def _read_label_studio(tasks: Sequence[Any], path: Path, options: ReadOptions) -> Dataset:
    """Return the answers of a Label Studio export (JSON, not JSON_MIN).

    ``options.labels`` names the ``<Choices>`` that hold labels, where there are several. A
    ``<Choices>`` whose every choice is a word of the states ("no", "yes", "maybe", ...) asks about
    the label that it is named after; else what was chosen are candidates, and the other labels are
    excluded. Complementary choices are surely irrelevant, and the others are not asked.
    """
    items: list[str] = []
    choices: list[tuple[str, str, str, list[str]]] = []  # item, person, control, what was chosen
    for number, task in enumerate(tasks):
        with reading_as("Label Studio's JSON (not JSON_MIN)", f"task {number} of {path.name}"):
            items.append(_name_item(task["data"], options, task.get("id", number)))
            choices += [(items[-1], *choice) for choice in _list_choices(task)]
    made = list(dict.fromkeys(control for _, _, control, _ in choices))
    controls = list(options.labels or made)
    missing = [name for name in controls if name not in made]
    if missing or not made:
        called = f" called {listed(missing)}" if missing else " that somebody made"
        raise ComesError(f"{path.name} has no choices{called}; it has {listed(made) or 'none'}.")
    choices = [choice for choice in choices if choice[2] in controls]
    words = _words(options)
    labels = sorted({label for *_, chosen in choices for label in chosen})
    are_by_label = all(label.lower() in words for label in labels)
    if len(controls) > 1 and not are_by_label:
        raise ComesError(
            f"{path.name} has several choices, {listed(controls)}. Say which hold the labels "
            "(--labels on the command line)."
        )
    answers: list[Answer] = []
    for item, person, control, chosen in choices:
        if are_by_label:
            answers += [(item, control, words[word.lower()], person, "") for word in chosen]
        else:
            answers += _read_chosen(item, person, chosen, options.label_names or labels, options)
    return _combine(items, answers, options, are_by_label)


def _list_choices(task: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield who chose in which ``<Choices>`` of a task, and what, where anything was chosen."""
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
                chosen = _check_labels(result["value"]["choices"])
                yield str(person), str(result["from_name"]), chosen


def read_prodigy(path: Path, options: ReadOptions) -> Dataset:
    """Read a Prodigy export: a line per (item, label), or per item with options to tick."""
    items: list[str] = []
    answers: list[Answer] = []
    are_by_label = False
    for number, text in enumerate(path.read_bytes().split(b"\n"), start=1):
        if text.strip():
            with reading_as("a line of Prodigy", f"line {number} of {path.name}"):
                line = json.loads(text)
                items.append(_name_item(line, options, line.get("_input_hash")))
                answers += _read_line(line, items[-1], options)
                are_by_label |= "label" in line
    if not answers:
        raise ComesError(f"{path.name} has no answers; expected lines of Prodigy.")
    return _combine(items, answers, options, are_by_label)


def _read_line(line: dict[str, Any], item: str, options: ReadOptions) -> list[Answer]:
    """Return what a line says.

    Of a line with a label, "accept" says maybe, "reject" no, and "ignore" not asked, unless
    ``options.words`` says otherwise. Of options, those ticked are accepted and the others are
    rejected, if the line was accepted; else nobody was asked.
    """
    person = str(line.get("_annotator_id") or line.get("_session_id") or "")
    answer = line.get("answer")
    if answer not in ("accept", "reject", "ignore"):
        raise ComesError(f"the answer should be accept, reject or ignore; got {answer!r}")
    if "label" in line:
        (label,) = _check_labels([line["label"]])
        state = line.get(SAID, _words(options)[answer])
        if state not in STATES:
            raise ComesError(f"{SAID!r} should be {', '.join(STATES)}; got {state!r}")
        return [(item, label, state, person, str(line.get(SOURCE, "")))]
    if not line.get("options"):
        raise ComesError("it has neither a label nor options, so no answers about labels")
    shown = _check_labels([option["id"] for option in line["options"]])
    ticked = _check_labels(line.get("accept") or [])
    if answer == "accept" and ticked:
        return _read_chosen(item, person, ticked, shown, options)
    return [(item, label, NOT_ASKED, person, "") for label in shown]


def write_prodigy(dataset: Dataset, path: Path) -> None:
    """Write a line per answer, which Prodigy and `read_prodigy` read.

    Prodigy has one word for yes and maybe, so a yes says so in a field of its own.
    """
    words = {NO: "reject", MAYBE: "accept", YES: "accept", NOT_ASKED: "ignore"}
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in long_table(dataset).to_dict("records"):
            item, state = row["item"], row["answer"]
            line = {
                "item": item,
                "text": item,
                "label": row["label"],
                "answer": words[state],
                SAID: state if state == YES else "",
                "_annotator_id": row.get(PERSON),
                SOURCE: row.get(SOURCE),
            }
            line = {field: value for field, value in line.items() if value}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _name_item(fields: dict[str, Any], options: ReadOptions, fallback: Any) -> str:
    """Return the name of an item from its fields."""
    if options.item is not None:
        name = fields.get(options.item)
    else:
        values = (fields.get(field) for field in ITEM_FIELDS)
        texts = (str(value) for value in values if isinstance(value, (str, int)))
        name = next((text for text in texts if not text.startswith("data:")), fallback)
    if name is None:
        what = "that names its item" if options.item is None else repr(options.item)
        raise ComesError(
            f"it has no field {what}; it has {listed(list(fields))}. Say which one names the item "
            "(--item on the command line)"
        )
    return str(name)


def _check_labels(values: Any) -> list[str]:
    """Return a list of label names as text; raise if it is something else."""
    if not isinstance(values, list) or not all(isinstance(v, (str, int)) for v in values):
        raise ComesError(f"a list of label names was wanted; got {values!r}")
    return [str(value) for value in values]


def _words(options: ReadOptions) -> dict[str, str]:
    """Return what words mean: as in the tools, unless the options say otherwise."""
    return {**WORDS, **{word.lower(): state for word, state in (options.words or {}).items()}}


def _read_chosen(
    item: str, person: str, chosen: Sequence[str], shown: Sequence[str], options: ReadOptions
) -> list[Answer]:
    """Return what labels that were chosen, among those shown, say about each of them."""
    words = _words(options)
    sure = {"complementary": NO, "positives": YES}.get(options.labels_are or "")
    if_chosen, if_not = (sure, NOT_ASKED) if sure else (words["accept"], words["reject"])
    return [
        (item, label, if_chosen if label in chosen else if_not, person, "")
        for label in dict.fromkeys([*shown, *chosen])
    ]


def _combine(
    items: Sequence[str], answers: Sequence[Answer], options: ReadOptions, are_by_label: bool
) -> Dataset:
    """Return the data set of all items, those without an answer included, in their order."""
    if are_by_label and options.labels_are in ("complementary", "positives"):
        raise ComesError(
            "there is an answer for each label, and 'no' excludes a label; leave out labels_are "
            f"(--{options.labels_are})."
        )
    names, labels, states, people, sources = zip(*answers, strict=True)
    dataset = combine_answers(
        names,
        labels,
        states,
        options.label_names,
        item_names=list(dict.fromkeys(items)),
        people=people,
        chosen=[source in BY_MODEL for source in sources],
    )
    if options.labels_are == "positives":
        return as_ticked(dataset)
    return replace(dataset, from_complementary=options.labels_are == "complementary")


def coco_dataset(content: Any, path: Path, options: ReadOptions) -> Dataset:
    """Return the labels of COCO json, items the file names; a category is relevant if annotated.

    Images without any annotation are left out, unless ``options.unannotated`` says "keep". Where
    images carry ``neg_category_ids`` (verified absent, as in LVIS), the labels are answers: yes
    where a category is annotated, no where it is verified absent.
    """
    with reading_as(COCO_FORM, path.name):
        images, categories = content["images"], content["categories"]
        row = {image["id"]: i for i, image in enumerate(images)}
        column = {category["id"]: j for j, category in enumerate(categories)}
        files = [  # LVIS has only the address
            str(image["file_name"] if "file_name" in image else image["coco_url"].split("/")[-1])
            for image in images
        ]
        names = [str(category["name"]) for category in categories]
        annotations = content.get("annotations", [])
        present = _mark_ids([(a["image_id"], a["category_id"]) for a in annotations], row, column)
        if any("neg_category_ids" in image for image in images):
            if options.unannotated is not None:
                raise ComesError("its labels are verified. Leave 'unannotated' out")
            absent = [
                (image["id"], c) for image in images for c in image.get("neg_category_ids", ())
            ]
            answers = Answers(_mark_ids(absent, row, column), present, label_names=names)
            return Dataset(None, names, items=files, answers=answers)
        dataset = Dataset(None, names, relevant=present, items=files)
    if options.unannotated == "keep":
        return dataset
    if not annotations:
        raise ComesError(
            f"no image in {path.name} has an annotation, and such images are left out. If "
            "nothing is relevant there, keep them (--unannotated keep on the command line)."
        )
    return dataset.take(count_marks(present, axis=1) > 0)


def _mark_ids(
    pairs: Sequence[tuple[Any, Any]], row: Mapping[Any, int], column: Mapping[Any, int]
) -> Marks:
    """Return the matrix that is True at pairs of ids of an image and a category."""
    try:
        rows = np.array([row[image] for image, _ in pairs], dtype=np.int64)
        columns = np.array([column[category] for _, category in pairs], dtype=np.int64)
    except KeyError as unknown:
        raise ComesError(f"no image or category has the id {unknown} of an annotation") from None
    return mark_places(rows, columns, (len(row), len(column)))
