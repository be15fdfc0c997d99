"""Tables of file formats, made from what reads and writes the files.

Comments at the ends of lines that declare a field are what the tables say about it.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from comes.annotate import project, schema
from comes.datasets.formats import FORMATS, PARTS, Format
from comes.datasets.images import PICTURE_ENDINGS
from comes.datasets.predictions import (
    FEATURE_ENDINGS,
    JSON_LINES,
    PREDICTED,
    PROBABILITY,
    SCORE,
)
from comes.datasets.table import TABLE_ENDINGS
from comes.estimator import storage
from comes.experiment import config, results
from comes.priors.class_prior import KNOWN_PRIOR
from comes.report.experiment_page import REPORT_FILES
from comes.workflows.fit import CHECKPOINT, PARTIAL

Table = list[list[str]]

MODEL_KEYS = {
    "format": "version of this form, 2; 1, of version 1.0.0, is read too, and others are refused",
    "comes_version": "that wrote it",
    "parameters": "of the classifier, as `get_params` returns them",
    "n_features": "how many columns of numbers the network reads",
    "feature_names": "columns of the table, in their order; null for arrays",
    "item": "the column that names the items",
    "label_names": "in the order of the scores",
    "mistake_rate": "how often an answer is wrong, as training took it",
    "people": "annotators who have rates of their own; these are with the weights",
    "network": "size of the network",
    "history": "risk of each epoch, seconds, warnings",
    "trained_on": "what the data was: rows, labels, answers",
    "output": "what predictions are: null for arrays, or pandas",
    "columns": "how columns that are no numbers are encoded, if there are any",
    "images": "the backbone and how it sees images, in a model of images",
    "checksums": "of both files; damage is found when the model is loaded",
}
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}


def formats_table() -> Table:
    """Return every format of data: its endings, what it holds, and how it is written."""
    table = [["ending", "what is read", "its labels are", "fields of `ReadOptions`", "written"]]
    for found, endings in group_formats():
        fields_used = ", ".join(f"`{name}`" for name in found.fields)
        forms = ", ".join(found.writers) if len(found.writers) > 1 else "yes"
        written = forms if found.writers else "no"
        table.append([list_code(endings), found.about, found.labels, fields_used, written])
    return table


def group_formats() -> list[tuple[Format, list[str]]]:
    """Return every format with its endings."""
    groups: dict[int, tuple[Format, list[str]]] = {}
    for ending, found in FORMATS.items():
        groups.setdefault(id(found), (found, []))[1].append(ending)
    return list(groups.values())


def written_parts_table() -> Table:
    """Return which parts of a data set survive in which file."""
    held_parts = {
        f"{endings[0]} {form}" if len(found.writers) > 1 else endings[0]: held
        for found, endings in group_formats()
        for form, (_, held) in found.writers.items()
    }
    rows = [
        [part, *("yes" if part in held else "–" for held in held_parts.values())] for part in PARTS
    ]
    return [["part", *(f"`{name}`" for name in held_parts)], *rows]


def files_table() -> Table:
    """Return the files that commands write beside data sets."""
    predicted = f"`item`, `{PREDICTED}`, `{PROBABILITY}NAME`, with `--scores` `{SCORE}NAME`"
    description, weights, trees = storage.FILES
    endings = list_code((*TABLE_ENDINGS, JSON_LINES))
    rows = [
        ("comes fit -o MODEL", f"`MODEL/{description}`", "what the model is (below)"),
        ("", f"`MODEL/{weights}`", "weights and arrays; no pickle"),
        ("", f"`MODEL/{trees}`", 'the trees of model="blend", by skops; no pickle'),
        ("", f"`MODEL{PARTIAL}/`", "the same, if Ctrl-C ended the training"),
        ("", f"`MODEL{CHECKPOINT}`", "state of a long training, until it is done"),
        ("comes predict -o FILE", endings, predicted),
        ("comes predict --top K", endings, "`item`, `rank`, `label`, `probability`"),
        (
            "comes predict --ask-next FILE",
            list_code(TABLE_ENDINGS),
            "`item`, `label`, `probability`, `bits`",
        ),
        (
            "comes priors -o FILE",
            list_code(TABLE_ENDINGS),
            f"`label`, `class_prior`, `lower`, `upper`, `{KNOWN_PRIOR}` for what you know",
        ),
        (
            "comes datasets convert PICTURES -o FILE",
            list_code(FEATURE_ENDINGS),
            "`X` and `items`; .npy `X` alone",
        ),
        ("comes export -o FILE", "`.onnx`", "scaling, network and head"),
        ("comes bench -o RUNS", f"`RUNS/KEY/{results.RESULT_FILE}`", "a result (below)"),
        ("", f"`RUNS/KEY/{results.ERROR_FILE}`", "the traceback of a task that failed"),
        ("comes report -o FOLDER", list_code(REPORT_FILES), "a page, and its tables and plots"),
        (
            "comes annotate init PROJECT",
            f"`PROJECT/{project.DESCRIPTION}`",
            "kind, images, database",
        ),
        ("", f"`PROJECT/{project.DATABASE}`", "SQLite: questions, answers, people (below)"),
        ("comes annotate export -o FILE", "any data format that is written", "the answers"),
        (
            "comes annotate export --raw",
            list_code(TABLE_ENDINGS),
            "each answer: `item`, `label`, `answer`, `person`, `at`, `seconds`, `source`, ...",
        ),
    ]
    return [
        ["command", "file", "what it holds"],
        *([f"`{c}`" if c else "", f, h] for c, f, h in rows),
    ]


def model_keys_table() -> Table:
    """Return the keys of ``model.json``."""
    return [["key", "meaning"], *([f"`{key}`", meaning] for key, meaning in MODEL_KEYS.items())]


def experiment_table(name: str) -> Table:
    """Return the keys of a part of an experiment."""
    part = getattr(config, name)
    kinds, comments = get_type_hints(part, include_extras=True), read_comments(part)
    table = [["key", "value", "default", "meaning"]]
    for key, about in part.__pydantic_fields__.items():
        limits = filter(None, map(limit_text, about.metadata))
        value = ", ".join(dict.fromkeys([*type_text(kinds[key]).split(", "), *limits]))
        default = about.get_default(call_default_factory=True)
        default = "required" if about.is_required() else default_text(default)
        table.append([f"`{key}`", value, default, comments.get(key, "")])
    return table


def result_table(name: str) -> Table:
    """Return the fields of a part of a result."""
    part = getattr(results, name)
    kinds, comments = get_type_hints(part), read_comments(part)
    table = [["key", "value", "always", "meaning"]]
    for key, about in part.__pydantic_fields__.items():
        always = "yes" if about.is_required() else ""
        table.append([f"`{key}`", type_text(kinds[key]), always, comments.get(key, "")])
    return table


def project_tables_table() -> Table:
    """Return the tables of the database of a project."""
    rows = [
        [f"`{table.name}`", ", ".join(f"`{column.name}`" for column in table.columns)]
        for table in schema.metadata.tables.values()
    ]
    return [["table", "columns"], *rows]


def pictures_text() -> str:
    """Return the endings of pictures as one line."""
    return f"Pictures end in {list_code(PICTURE_ENDINGS)}."


def read_comments(part: type) -> dict[str, str]:
    """Return what comments at the ends of lines say about the fields of a class."""
    parts = [base for base in part.__mro__ if base is not object]
    source = "\n".join(map(inspect.getsource, parts))
    found = re.findall(r"^    (\w+): .+?  # (.+)$", source, re.MULTILINE)
    return {name: comment.replace("None: ", "by default: ") for name, comment in found}


def type_text(kind: Any) -> str:
    """Return the values of a field in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{default_text(value)}`" for value in parts)
    if origin in (Union, UnionType):
        return " or ".join(type_text(part) for part in parts if part is not NoneType)
    if origin is Annotated:
        limits = [limit_text(limit) for about in parts[1:] for limit in about.metadata]
        return ", ".join([type_text(parts[0]), *filter(None, limits)])
    if origin in (list, tuple):
        return f"list of {type_text(parts[0])}s"
    if origin in (dict, Mapping) or kind not in PLAIN:
        return "table"
    return PLAIN[kind]


def limit_text(limit: Any) -> str:
    """Return a limit of a value, or nothing if it says none."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [
        f"{sign} {getattr(limit, name)}" for name, sign in signs.items() if hasattr(limit, name)
    ]
    return ", ".join(found)


def default_text(value: Any) -> str:
    """Return a default as TOML writes it; nothing where there is none."""
    if value is None or value == {}:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_code(words: Any) -> str:
    """Return words as a list in Markdown."""
    return ", ".join(f"`{word}`" for word in words)


TABLES: dict[str, Callable[..., Table | str]] = {
    "formats": formats_table,
    "written-parts": written_parts_table,
    "written-files": files_table,
    "model-keys": model_keys_table,
    "experiment-keys": experiment_table,
    "result-keys": result_table,
    "project-tables": project_tables_table,
    "pictures": pictures_text,
}
