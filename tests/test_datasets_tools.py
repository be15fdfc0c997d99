"""Exports of Label Studio and Prodigy, and COCO json, with images or without."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes.answers import State
from comes.datasets import open_dataset
from image_folders import COCO, save_images
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
    return open_dataset(folder / "export.json", **options)


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
    with refused("task 0 of export.json .* has no field 'name'"):
        label_studio(tmp_path, tasks, item="name")


def test_other_json_than_label_studios_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ([{"image": "p", "not": "sky"}], r"task 0 .* \(not JSON_MIN\)"),
        ([TASKS[3]], "no choices that somebody made"),
        ([], "no choices that somebody made"),
        ([{**TASKS[0], "annotations": [3]}], "task 0 .* cannot be read as Label Studio's"),
        (
            [{**TASKS[0], "annotations": [{"result": [{"type": "choices"}]}]}],
            "'value' is missing",
        ),
        ([task("p", {"result": None})], "no choices that somebody made"),
        (
            [task("p", done({"type": "choices", "from_name": "n", "value": {"choices": "sky"}}))],
            "a list",
        ),
        ([3], "task 0 of export.json cannot be read as"),
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
    return open_dataset(folder / "export.jsonl", **options)


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
        (
            '{"text": "p", "label"',
            "line 2 of export.jsonl cannot be read as a line of Prodigy: Expecting",
        ),
        ("[1]", "line 2 of export.jsonl cannot be read as a line of Prodigy"),
        ({"text": "p", "label": "sky", "answer": "yes"}, "line 2 .* accept, reject or ignore; got"),
        ({"text": "p", "answer": "accept"}, "line 2 .* neither a label nor options"),
        ({"label": "sky", "answer": "accept"}, "line 2 .* no field that names its item"),
    ]
    for line, message in cases:
        with refused(message):
            prodigy(tmp_path, {"text": "p", "label": "sky", "answer": "reject"}, line)
    forms: list[tuple[dict[str, Any], str]] = [
        ({"options": ["sky"], "accept": []}, "string indices"),
        ({"options": [{"text": "sky"}]}, "'id' is missing"),
        ({"options": OPTIONS, "accept": "sky"}, "a list of label names was wanted; got 'sky'"),
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
    assert len(open_dataset(tmp_path / "mark.jsonl")) == 1
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "\xff"}')
    with refused("line 1 of bad.jsonl cannot be read as a line of Prodigy: .utf-8. codec"):
        open_dataset(tmp_path / "bad.jsonl")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with refused("line 1 of deep.jsonl cannot be read as a line"):
        open_dataset(tmp_path / "deep.jsonl")


def write_json(folder: Path, content: Any) -> Path:
    (folder / "instances.json").write_text(json.dumps(content))
    return folder / "instances.json"


def test_coco_images_without_annotation_are_left_out_unless_asked(tmp_path: Path) -> None:
    path = write_json(tmp_path, COCO)
    dataset = open_dataset(path)
    assert dataset.label_names == ["person", "toothbrush"] and dataset.items == ["9.jpg", "4.jpg"]
    assert dataset.known_relevant().tolist() == [[False, True], [True, False]]
    kept = open_dataset(path, unannotated="keep")
    assert kept.items == ["7.jpg", "9.jpg", "4.jpg"]
    assert not kept.known_relevant()[0].any()
    np.testing.assert_array_equal(
        open_dataset(path, labels_are="candidates").candidates, dataset.relevant
    )


def test_categories_verified_absent_are_answers(tmp_path: Path) -> None:
    """As in LVIS: what is neither annotated nor verified absent was not asked."""
    images = [dict(image) for image in COCO["images"]]
    images[0]["neg_category_ids"], images[1]["neg_category_ids"] = [90], [1]
    dataset = open_dataset(write_json(tmp_path, {**COCO, "images": images}))
    assert dataset.relevant is None and not dataset.from_complementary
    assert dataset.known_answers().codes.tolist() == [[0, 1], [1, 2], [2, 0]]


def test_a_bad_coco_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"images": None}, "cannot be read as COCO json"),
        ({"categories": [{"id": 1}]}, "'name' is missing"),
        (
            {"annotations": [{"image_id": 9, "category_id": 3}]},
            "no image or category has the id 3 of an ann",
        ),
        ({"images": COCO["images"] + COCO["images"][:1]}, "names of items must differ; '7.jpg'"),
        (
            {"images": [*COCO["images"], {"id": 4, "file_name": "5.jpg"}], "annotations": []},
            "3 rows need as many names .* got 4",
        ),
        ({"images": [], "annotations": []}, "0 rows and 2 labels"),
        (
            {"categories": [COCO["categories"][0], {"id": 1, "name": "b"}], "annotations": []},
            r"so relevant must have shape \(3, 2\); got \(3, 1\)",
        ),
        ({"categories": [], "annotations": []}, "3 rows and 0 labels"),
        ({"annotations": [{"image_id": [9], "category_id": 1}]}, "unhashable"),
    ]
    for change, message in cases:
        with refused(message):
            open_dataset(write_json(tmp_path, {**COCO, **change}))

    (tmp_path / "cut.json").write_text('{"images": [')
    with refused("cut.json cannot be read as json"):
        open_dataset(tmp_path / "cut.json")
    for content in (3, "text", {"a": 1}):
        with refused("cannot be read as COCO json"):
            open_dataset(write_json(tmp_path, content))


def test_images_of_a_coco_file_from_a_zip(tmp_path: Path) -> None:
    save_images(tmp_path, ["4.jpg", "9.jpg"])
    with zipfile.ZipFile(tmp_path / "val.zip", "w") as archive:
        for name in ("4.jpg", "9.jpg"):
            archive.write(tmp_path / name, f"val2014/{name}")
    dataset = open_dataset(write_json(tmp_path, COCO), images=tmp_path / "val.zip")
    assert dataset.X.names == ["val2014/9.jpg", "val2014/4.jpg"] and dataset.X[0].size
    assert dataset.items == ["9.jpg", "4.jpg"]


def test_coco_in_other_views_and_forms(tmp_path: Path) -> None:
    path = write_json(tmp_path, COCO)
    dataset = open_dataset(path, labels_are="complementary")
    np.testing.assert_array_equal(dataset.candidates, ~open_dataset(path).known_relevant())
    for options in ({"labels": ["a"]}, {"item": "b"}, {"words": {"1": "yes"}}):
        with refused("does not apply to instances.json, a COCO file, which names its labels"):
            open_dataset(path, **options)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(COCO).encode())
    assert len(open_dataset(path)) == 2
    path.write_text("[" * 100_000)
    with refused("cannot be read as json"):
        open_dataset(path)
    without = {k: v for k, v in COCO.items() if k != "annotations"}
    with refused("no image in .* has an annotation.*--unannotated keep"):
        open_dataset(write_json(tmp_path, without))


def test_what_is_annotated_cannot_be_verified_absent(tmp_path: Path) -> None:
    """Nor is the truth known where absence was verified; LVIS names images by their address."""
    images: list[dict[str, Any]]
    images = [{"id": k, "coco_url": f"http://x/val/{k}.jpg"} for k in (7, 9, 4)]
    images[1]["neg_category_ids"] = [90, 1]
    path = write_json(tmp_path, {**COCO, "images": images})
    with refused("1 pairs have two answers; row 1, label 'toothbrush' has 'no' and 'yes'"):
        open_dataset(path)
    images[1]["neg_category_ids"] = [1]
    path = write_json(tmp_path, {**COCO, "images": images})
    dataset = open_dataset(path)
    assert dataset.items == ["7.jpg", "9.jpg", "4.jpg"]
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, True], [False, True], [True, True]]
    with refused("instances.json .* its labels are verified. Leave 'unannotated' out"):
        open_dataset(path, unannotated="keep")


def test_many_verified_categories_stay_sparse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comes.datasets.dataset.MANY_PAIRS", 5)
    monkeypatch.setattr("comes.datasets.dataset.FEW", 0.5)
    images = [{**image, "neg_category_ids": []} for image in COCO["images"]]
    images[0]["neg_category_ids"] = [90, 90]
    answers = open_dataset(write_json(tmp_path, {**COCO, "images": images})).known_answers()
    assert answers.is_sparse and answers.codes.tolist() == [[0, 1], [0, 2], [2, 0]]
    plain = open_dataset(write_json(tmp_path, COCO), unannotated="keep")
    assert sparse.issparse(plain.relevant)
    assert len(open_dataset(write_json(tmp_path, COCO))) == 2
    images[1]["neg_category_ids"] = [90]
    with refused("1 pairs have two answers; row 1, label 'toothbrush'"):
        open_dataset(write_json(tmp_path, {**COCO, "images": images}))
    images[1]["neg_category_ids"] = [[90]]
    with refused("instances.json cannot be read as COCO json.*unhashable"):
        open_dataset(write_json(tmp_path, {**COCO, "images": images}))
