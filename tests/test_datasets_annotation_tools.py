import json
from pathlib import Path
from typing import Any

from comes.answers import State
from comes.datasets import read_dataset
from refusals import refused


def choice(name: str, *choices: str) -> dict[str, Any]:
    return {"type": "choices", "from_name": name, "value": {"choices": list(choices)}}


def task(item: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"id": 1, "data": {"image": item}, "annotations": list(annotations)}


def done(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"result": list(results), "was_cancelled": False, **more}


TASKS = [
    task("p", done(choice("not", "sky", "sea"))),
    task("q", done(choice("not", "sun"), was_cancelled=True)),
    task("r", done({"type": "rectanglelabels", "value": {}})),
    task("s"),
    task("t", done(choice("not", "sea")), done(choice("not", "sun"))),
]


def label_studio(folder: Path, tasks: Any, **options: Any) -> Any:
    (folder / "export.json").write_text(json.dumps(tasks))
    return read_dataset(folder / "export.json", **options)


def test_choices_of_label_studio_that_are_surely_not(tmp_path: Path) -> None:
    """Skipped, cancelled and unanswered tasks exclude nothing."""
    dataset = label_studio(tmp_path, TASKS, labels_are="complementary")
    assert dataset.items == ["p", "q", "r", "s", "t"]
    assert sorted(dataset.label_names) == ["sea", "sky", "sun"]
    excluded = ~dataset.align_labels(["sea", "sky", "sun"]).candidates
    expected = [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert excluded.astype(int).tolist() == expected
    assert dataset.asked is None  # nothing but "no": who was asked is not known
    assert dataset.from_complementary


def test_choices_of_label_studio_that_are_candidates(tmp_path: Path) -> None:
    """What one of two people thinks possible stays possible."""
    dataset = label_studio(tmp_path, TASKS).align_labels(["sea", "sky", "sun"])
    expected = [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 1]]
    assert dataset.candidates.astype(int).tolist() == expected
    said = dataset.answers.annotations
    assert (
        said.people == ("", "annotation 2") and said.count_disagreements(dataset.answers.shape) == 0
    )
    assert (dataset.answers.codes[4] == [State.MAYBE, State.NO, State.MAYBE]).all()


def test_one_control_of_label_studio_per_label(tmp_path: Path) -> None:
    tasks = [
        task("p", done(choice("sky", "Surely not"), choice("sea", "Maybe"))),
        task("q", done(choice("sky", "skip"))),
    ]
    dataset = label_studio(tmp_path, tasks)
    assert dataset.label_names == ["sky", "sea"]
    assert dataset.candidates.tolist() == [[False, True], [True, True]]
    assert dataset.asked.tolist() == [[True, True], [False, False]]


def test_several_controls_of_label_studio_need_a_name(tmp_path: Path) -> None:
    tasks = [task("p", done(choice("not", "sky"), choice("mood", "happy", "calm")))]
    with refused("several choices, 'not', 'mood'.*--labels"):
        label_studio(tmp_path, tasks)
    dataset = label_studio(tmp_path, tasks, labels=["mood"], labels_are="complementary")
    assert dataset.label_names == ["calm", "happy"]
    with refused("no choices called 'nod'; it has 'not', 'mood'"):
        label_studio(tmp_path, tasks, labels=["nod"])


def test_label_studio_names_its_items(tmp_path: Path) -> None:
    tasks = [{**TASKS[0], "id": 17, "data": {"url": "u", "weight": 3.5}}]
    assert label_studio(tmp_path, tasks, labels_are="complementary").items == ["u"]
    assert label_studio(tmp_path, tasks, labels_are="complementary", item="weight").items == ["3.5"]
    tasks[0]["data"] = {"weight": 3.5}
    assert label_studio(tmp_path, tasks, labels_are="complementary").items == ["17"]
    with refused("task 0 of export.json has no field 'name'"):
        label_studio(tmp_path, tasks, item="name")


def test_other_json_than_label_studios_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ([{"image": "p", "not": "sky"}], r"task 0 .* \(not JSON_MIN\)"),
        ([TASKS[3]], "no choices that somebody made"),
        ([], "is an empty list"),
        ([{**TASKS[0], "annotations": [3]}], "task 0 .* does not have the form"),
        (
            [{**TASKS[0], "annotations": [{"result": [{"type": "choices"}]}]}],
            "does not have the form",
        ),
        ([task("p", {"result": None})], "no choices that somebody made"),
        (
            [task("p", done({"type": "choices", "from_name": "n", "value": {"choices": "sky"}}))],
            "a list",
        ),
        ([3], "task 0 of export.json has no 'data'"),
    ]
    for tasks, message in cases:
        with refused(message):
            label_studio(tmp_path, tasks)


def test_all_labels_of_label_studio_can_be_named(tmp_path: Path) -> None:
    names = ["sky", "sea", "sun", "tree"]
    dataset = label_studio(tmp_path, TASKS[:1], labels_are="complementary", label_names=names)
    assert dataset.candidates.tolist() == [[False, False, True, True]]
    with refused("'sea' occurs in an answer but is none of"):
        label_studio(tmp_path, TASKS[:1], labels_are="complementary", label_names=["sky"])

    dataset = label_studio(tmp_path, TASKS[:1], label_names=["sea", "sky", "sun"])
    assert dataset.candidates.tolist() == [[True, True, False]]
    assert not dataset.from_complementary


def prodigy(folder: Path, *lines: Any, **options: Any) -> Any:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "export.jsonl").write_text(text + "\n")
    return read_dataset(folder / "export.jsonl", **options)


def test_lines_of_prodigy_with_a_label(tmp_path: Path) -> None:
    dataset = prodigy(
        tmp_path,
        {"text": "p", "label": "sky", "answer": "reject", "_input_hash": 3},
        {"text": "p", "label": "sea", "answer": "accept"},
        {"text": "q", "label": "sky", "answer": "ignore"},
    )
    assert dataset.items == ["p", "q"] and dataset.label_names == ["sky", "sea"]
    assert dataset.candidates.tolist() == [[False, True], [True, True]]
    assert dataset.asked.tolist() == [[True, True], [False, False]]


OPTIONS = [{"id": "sky"}, {"id": 7, "text": "sea"}, {"id": "sun"}]


def test_lines_of_prodigy_with_options(tmp_path: Path) -> None:
    lines = [
        {"image": "data:x", "path": "p", "options": OPTIONS, "accept": ["sky"], "answer": "accept"},
        {"image": "q", "options": OPTIONS[:2], "accept": [7], "answer": "accept"},
        {"image": "r", "options": OPTIONS, "accept": ["sun"], "answer": "reject"},
        {"image": "s", "options": OPTIONS, "accept": [], "answer": "accept"},
    ]
    possible = prodigy(tmp_path, *lines).align_labels(["sky", "7", "sun"])
    assert possible.items == ["p", "q", "r", "s"]
    expected = [[1, 0, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1]]  # q was not shown the sun
    assert possible.candidates.astype(int).tolist() == expected
    surely_not = prodigy(tmp_path, *lines, labels_are="complementary").align_labels(
        ["sky", "7", "sun"]
    )
    expected = [[0, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1]]
    assert surely_not.candidates.astype(int).tolist() == expected

    options = [{"id": "sky"}, {"id": "sea"}]
    line = {"text": "p", "options": options, "accept": ["sky"], "answer": "accept"}
    assert not prodigy(tmp_path, line).from_complementary
    assert prodigy(tmp_path, line, labels_are="complementary").from_complementary


def test_a_bad_line_of_prodigy_is_named(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ('{"text": "p", "label"', "line 2 of export.jsonl cannot be read as json"),
        ("[1]", "line 2 of export.jsonl should be an object"),
        ({"text": "p", "label": "sky", "answer": "yes"}, "line 2 .* accept, reject or ignore; got"),
        ({"text": "p", "answer": "accept"}, "line 2 .* neither a label nor options"),
        ({"label": "sky", "answer": "accept"}, "line 2 .* no field that names its item"),
    ]
    for line, message in cases:
        with refused(message):
            prodigy(tmp_path, {"text": "p", "label": "sky", "answer": "reject"}, line)
    forms: list[tuple[dict[str, Any], str]] = [
        ({"options": ["sky"], "accept": []}, "options without an id"),
        ({"options": [{"text": "sky"}]}, "options without an id"),
        ({"options": OPTIONS, "accept": "sky"}, "a list of label names; got 'sky'"),
        ({"label": None}, "a list of label names"),
        ({"options": []}, "neither a label nor options"),
    ]
    for line, message in forms:
        with refused(f"line 1 .*{message}"):
            prodigy(tmp_path, {"text": "p", "answer": "accept", **line})


def test_what_was_skipped_and_old_exports(tmp_path: Path) -> None:
    tasks = [
        task("p", done(choice("not", "sky"))),
        task("q", done(choice("not", "sky"), skipped=True)),
        {"data": {"image": "r"}, "completions": [done(choice("not", "sky"))]},
        task("s", done(choice("not"))),
    ]
    dataset = label_studio(tmp_path, tasks, labels_are="complementary")
    assert dataset.candidates.ravel().tolist() == [False, True, False, True]


def test_labels_called_like_states_are_labels_if_there_are_others(tmp_path: Path) -> None:
    dataset = label_studio(tmp_path, [task("p", done(choice("not", "skip", "sky")))])
    assert dataset.label_names == ["skip", "sky"]


def test_answers_label_by_label_take_no_other_view(tmp_path: Path) -> None:
    tasks = [task("p", done(choice("sky", "no")))]
    with refused("'no' excludes a label; leave out labels_are .--comple"):
        label_studio(tmp_path, tasks, labels_are="complementary")
    line = {"text": "p", "label": "sky", "answer": "reject"}
    with refused("'no' excludes a label"):
        prodigy(tmp_path, line, labels_are="complementary")


def test_how_an_item_is_named(tmp_path: Path) -> None:
    answer = {"label": "sky", "answer": "reject"}
    for fields, name in (
        ({"image": "data:x", "url": "u"}, "u"),
        ({"id": 3, "text": "t"}, "3"),
        ({"item": "a", "id": 1}, "a"),
        ({"_input_hash": 77}, "77"),
        ({"path": "p", "image": "i"}, "p"),
    ):
        assert prodigy(tmp_path, {**fields, **answer}).items == [name]


def test_lines_that_say_nothing(tmp_path: Path) -> None:
    with refused("export.jsonl has no answers"):
        prodigy(tmp_path, "", "  ")
    lines = {"text": "p", "options": OPTIONS, "answer": "reject"}
    dataset = prodigy(tmp_path, lines)
    assert dataset.candidates.all() and dataset.label_names == ["sky", "7", "sun"]
    (tmp_path / "mark.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(lines).encode())
    assert len(read_dataset(tmp_path / "mark.jsonl")) == 1
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "\xff"}')
    with refused("bad.jsonl cannot be read as text in UTF-8"):
        read_dataset(tmp_path / "bad.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with refused("line 1 of deep.jsonl cannot be read as json"):
        read_dataset(tmp_path / "deep.jsonl")
