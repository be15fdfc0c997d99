"""Yes, no, maybe and not asked in every form of file, and what cannot be meant."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.answers import Answers, State
from comes.datasets import Dataset, open_dataset, write_dataset
from comes.datasets.matrices import write_npz
from comes.errors import ComesWarning
from refusals import refused

NOTHING, NO, YES, MAYBE = (int(state) for state in State)


def written(folder: Path, text: str, name: str = "a.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def read_codes(path: Path, **fields: Any) -> list[list[int]]:
    answers = open_dataset(path, **fields).known_answers()
    assert answers.kind == "answers"
    return [list(map(int, row)) for row in answers.codes]


WIDE = "photo,x,sky,sea\np,1,yes,no\nq,2,Maybe,\nr,3,not asked,yes\n"
SETS = "photo,x,no,yes,maybe\np,1,sea,sky,\nq,2,,(none),sky\nr,3,,sea,\n"
LONG = "item,label,answer\np,sky,yes\np,sea,no\nq,sky,maybe\nr,sea,yes\n"
CODES = [[YES, NO], [MAYBE, NOTHING], [NOTHING, YES]]


def test_four_states_in_every_form_of_table(tmp_path: Path) -> None:
    assert read_codes(written(tmp_path, WIDE), labels=["sky", "sea"], item="photo") == CODES
    names = ["sky", "sea"]
    sets = written(tmp_path, SETS)
    assert read_codes(sets, item="photo", label_names=names) == CODES
    assert read_codes(sets, labels=["no", "yes", "maybe"], item="photo", label_names=names) == CODES
    assert list(open_dataset(sets, item="photo").X.columns) == ["x"]
    assert read_codes(written(tmp_path, LONG)) == CODES

    path = written(tmp_path, "x,maybe\n1,sky;sea\n2,sky\n")
    assert open_dataset(path, labels=["maybe"]).known_answers().kind == "candidates"


def test_truth_beside_sets_of_answers(tmp_path: Path) -> None:
    path = written(tmp_path, "x,no,yes,relevant\n1,sea,,sky;sun\n2,,sea,sea\n")
    dataset = open_dataset(path)
    assert dataset.label_names == ["sea", "sky", "sun"]
    assert dataset.known_answers().codes.tolist() == [[NO, NOTHING, NOTHING], [YES, NOTHING, 0]]
    assert dataset.known_relevant().tolist() == [[False, True, True], [True, False, False]]


def test_public_data_with_answers(tmp_path: Path) -> None:
    chexpert = "Path,Age,Edema,Fracture\na.jpg,60,1.0,-1.0\nb.jpg,51,0.0,\n"
    words = {"1": "yes", "0": "no"}
    codes = read_codes(
        written(tmp_path, chexpert),
        labels=["Edema", "Fracture"],
        item="Path",
        words={**words, "-1": "maybe"},
    )
    assert codes == [[YES, MAYBE], [NO, NOTHING]]
    tox21 = "NR-AR,NR-AhR,mw\n1,,3.5\n0,1,2\n"
    codes = read_codes(written(tmp_path, tox21), labels=["NR-*"], words=words)
    assert codes == [[YES, NOTHING], [NO, YES]]
    open_images = (
        "ImageID,Source,LabelName,Confidence\n"
        "a,verification,/m/0,1\na,verification,/m/1,0\nb,crowdsource-verification,/m/1,1\n"
    )
    columns = ["ImageID", "LabelName", "Confidence"]
    assert read_codes(written(tmp_path, open_images), long=columns, words=words) == [
        [YES, NO],
        [NOTHING, YES],
    ]


def test_numbers_with_gaps_name_the_option_to_add(tmp_path: Path) -> None:
    path = written(tmp_path, "x,sky,sea\n1,1,\n2,0,1\n")
    with refused(r"row 2 is empty.*--answers 1=yes,0=no"):
        open_dataset(path, labels=["sky", "sea"])
    path = written(tmp_path, "x,sky\n1,1\n2,\n3,0\n")
    with refused(r"'sky' must be 0 or 1; row 3 is empty.*1=yes,0=no"):
        open_dataset(path, labels=["sky"])
    path = written(tmp_path, "x,sky,sea\n1,1,-1\n2,0,1\n")
    with refused("found '-1' .1 cell.*--answers '-1=...,0=no,1=yes'"):
        open_dataset(path, labels=["sky", "sea"])


def test_nothing_but_no_are_candidates(tmp_path: Path) -> None:
    """As in Answers(no): who was asked is not known."""
    for text, fields in (
        ("x,sky,sea\n1,no,\n2,,no\n", {"labels": ["sky", "sea"]}),
        ("item,label,answer\np,sky,no\nq,sea,no\n", {}),
    ):
        dataset = open_dataset(written(tmp_path, text), **fields)  # type: ignore[arg-type]
        assert dataset.known_answers().kind == "candidates" and dataset.asked is None
        assert dataset.known_candidates().tolist() == [[False, True], [True, False]]


def test_nothing_but_yes_may_be_ticked_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "item,label,answer\np,sky,yes\nq,sea,yes\n")
    with pytest.warns(ComesWarning, match="every answer is 'yes'.*--positives"):
        assert open_dataset(path).known_answers().kind == "answers"
    ticked = open_dataset(path, labels_are="positives").known_answers()
    assert ticked.kind == "positives" and ticked.codes.tolist() == [[YES, NOTHING], [NOTHING, YES]]
    path = written(tmp_path, LONG)
    with refused("ticked labels are all 'yes'.*--positives"):
        open_dataset(path, labels_are="positives")


def test_ticked_labels_are_read_and_written_in_every_format(tmp_path: Path) -> None:
    ticked = [[True, True], [False, False], [True, False]]
    names = written(tmp_path, "x,tags\n1,sea;sky\n2,\n3,sea\n")
    columns = written(tmp_path, "x,sea,sky\n1,1,1\n2,0,0\n3,1,0\n", "wide.csv")
    blanks = written(tmp_path, "x,sea,sky\n1,1,1\n2,,\n3,1,\n", "blanks.csv")
    libsvm = written(tmp_path, "0,1 1:1\n 1:2\n0 1:3\n", "a.svm")
    wide = ["sea", "sky"]
    for path, labels in ((names, ["tags"]), (columns, wide), (blanks, wide), (libsvm, None)):
        answers = open_dataset(path, labels=labels, labels_are="positives").known_answers()
        assert answers.kind == "positives" and answers.confirmed.tolist() == ticked

    answers = Answers.from_positives([[1, 0], [1, 1]])
    dataset = Dataset(np.eye(2), ["sea", "sky"], answers=answers)
    for name, form in (
        ("a.npz", "wide"),
        ("a.csv", "wide"),
        ("a.csv", "names"),
        ("a.parquet", "wide"),
        ("a.mat", "wide"),
    ):
        write_dataset(dataset, tmp_path / name, form)  # type: ignore[arg-type]
        again = open_dataset(tmp_path / name).known_answers()
        assert again.kind == "positives"
        np.testing.assert_array_equal(again.codes, answers.codes)
        with refused("positives"):
            open_dataset(tmp_path / name, labels_are="complementary")
    with pytest.warns(ComesWarning, match="cannot hold features and that the labels were ticked"):
        write_dataset(dataset, tmp_path / "long.csv", "long")


def test_a_contradiction_or_unknown_word_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("item,label,answer\np,sky,yes\np,sky,no\n", "'p' has both 'yes' and 'no' about .* 'sky'"),
        (
            "item,label,answer,person\np,sky,yes,ann\nq,sky,no,ann\np,sky,no,ann\n",
            "item 'p' has both 'yes' and 'no' about the label 'sky', said by 'ann'",
        ),
        ("x,no,yes\n1,sky;sea,sky\n2,sea,sky\n", "row 0, label 'sky' has 'no' and 'yes'"),
        (
            "item,label,answer\np,sky,ja\n",
            "'answer' should .*; found 'ja' .1 cell.*--answers 'ja=...'",
        ),
    ]
    for text, message in cases:
        with refused(message):
            open_dataset(written(tmp_path, text))


def test_people_may_disagree_and_repeat_themselves(tmp_path: Path) -> None:
    text = "item,label,answer,person\np,sky,yes,ann\np,sky,no,bob\np,sea,no,ann\nq,sea,,\n"
    answers = open_dataset(written(tmp_path, text + "p,sea,no,ann\n")).known_answers()
    assert answers.codes.tolist() == [[MAYBE, NO], [NOTHING, NOTHING]]
    assert answers.annotations is not None and answers.annotations.people == ("ann", "bob")
    assert (
        answers.annotations.count_disagreements(answers.shape) == 1
        and len(answers.annotations) == 4
    )


def test_columns_of_people_and_sources_can_be_named(tmp_path: Path) -> None:
    text = "i,l,a,who,how\np,sky,yes,7,model\nq,sky,no,8,x\n"
    answers = open_dataset(written(tmp_path, text), long=["i", "l", "a", "who", "how"]).answers
    assert answers is not None and answers.annotations is not None and answers.chosen is not None
    assert answers.annotations.people == ("7", "8") and answers.chosen.ravel().tolist() == [
        True,
        False,
    ]
    with refused("long must name three columns"):
        open_dataset(tmp_path / "a.csv", long=["i", "l", "a", "who", "how", "x"])


def test_answers_take_no_other_view(tmp_path: Path) -> None:
    for text, fields in ((WIDE, {"labels": ["sky", "sea"]}), (SETS, {})):
        with refused(r"are answers, .* leave out labels_are \(--positives"):
            open_dataset(written(tmp_path, text), labels_are="positives", **fields)  # type: ignore[arg-type]


def test_arrays_of_answers_made_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    no, yes = np.array([[1, 0], [0, 0]]), np.array([[0, 1], [0, 0]])
    np.savez(path, X=np.eye(2), no=no, yes=yes)
    assert read_codes(path) == [[NO, YES], [NOTHING, NOTHING]]
    np.savez(path, X=np.eye(2), no=no)
    assert open_dataset(path).known_answers().kind == "candidates"
    for arrays, message in (
        ({"no": no, "yes": no}, "row 0, label 0 has 'no' and 'yes'"),
        ({"yes": yes}, "needs an array .*'no', 'positives'.* it has X, yes"),
        ({"no": no, "candidates": no}, "'candidates' and 'no'"),
        ({"no": no, "yes": yes[:1]}, "must have one shape"),
        ({"no": no, "yes": yes, "said_row": [0]}, "who said what in rows of numbers"),
        ({"no": no, "yes": yes, **say(code=[2])}, "which make its answers"),
        ({"no": no, "yes": yes, **say(row=[7])}, "who said what in rows of numbers"),
        ({"no": no, "yes": yes, **say(person=[0.5])}, "who said what in rows of numbers"),
    ):
        np.savez(path, X=np.eye(2), **arrays)
        with refused(f"a.npz.*{message}"):
            open_dataset(path)


def say(**changes: Any) -> dict[str, Any]:
    """Return arrays that say who said what, one answer by default."""
    parts = {"row": [0], "label": [0], "person": [0], "code": [1], "people": ["ann"], **changes}
    return {f"said_{name}": values for name, values in parts.items()}


def test_complementary_answers_keep_what_they_are(tmp_path: Path) -> None:
    no = np.array([[True, False]])
    answers = Answers(no=no, maybe=~no)
    dataset = Dataset(np.eye(1), ["a", "b"], answers=answers, from_complementary=True)
    write_npz(dataset, tmp_path / "a.npz")
    again = open_dataset(tmp_path / "a.npz")
    assert again.from_complementary and again.known_answers().codes.tolist() == [[NO, MAYBE]]


def prodigy(folder: Path, *lines: dict[str, Any], **fields: Any) -> Answers:
    path = written(folder, "".join(json.dumps(line) + "\n" for line in lines), "a.jsonl")
    return open_dataset(path, **fields).known_answers()


def test_accept_and_ticks_of_prodigy_are_what_the_user_says(tmp_path: Path) -> None:
    lines = (
        {"text": "p", "label": "sky", "answer": "accept", "_annotator_id": "ann"},
        {"text": "p", "label": "sky", "answer": "reject", "_annotator_id": "bob"},
        {"text": "p", "label": "sea", "answer": "accept", "_session_id": "s"},
        {"text": "q", "label": "sea", "answer": "ignore"},
    )
    assert prodigy(tmp_path, *lines).codes.tolist() == [[MAYBE, MAYBE], [NOTHING, NOTHING]]
    answers = prodigy(tmp_path, *lines, words={"accept": "yes"})
    assert answers.codes.tolist() == [[MAYBE, YES], [NOTHING, NOTHING]]
    assert answers.annotations is not None and answers.annotations.people == ("ann", "bob", "s")
    with refused("'p' has both 'yes' and 'no' .*'sky', said by 'ann'"):
        prodigy(tmp_path, lines[0], {**lines[1], "_annotator_id": "ann"}, words={"accept": "yes"})
    with refused(r"leave out labels_are \(--positives\)"):
        prodigy(tmp_path, *lines, labels_are="positives")

    options = [{"id": name} for name in ("sky", "sea", "sun")]
    line = {"text": "p", "options": options, "accept": ["sky"], "answer": "accept"}
    assert prodigy(tmp_path, line).codes.tolist() == [[MAYBE, NO, NO]]
    assert prodigy(tmp_path, line, words={"accept": "yes"}).codes.tolist() == [[YES, NO, NO]]
    words = {"accept": "yes", "reject": "maybe"}
    assert prodigy(tmp_path, line, words=words).codes.tolist() == [[YES, MAYBE, MAYBE]]
    ticked = prodigy(tmp_path, line, labels_are="positives")
    assert ticked.kind == "positives" and ticked.codes.tolist() == [[YES, NOTHING, NOTHING]]


def label_studio(folder: Path, *annotations: dict[str, Any], **fields: Any) -> Answers:
    task = {"data": {"image": "p"}, "annotations": list(annotations)}
    return open_dataset(written(folder, json.dumps([task]), "a.json"), **fields).known_answers()


def chosen(control: str, *choices: str, **more: Any) -> dict[str, Any]:
    result = {"type": "choices", "from_name": control, "value": {"choices": list(choices)}}
    return {"result": [result], **more}


def test_label_studio_says_who_and_what(tmp_path: Path) -> None:
    ann = chosen("sky", "yes", completed_by={"id": 1, "email": "ann@x.org"})
    bob = chosen("sky", "no", completed_by=2)
    answers = label_studio(tmp_path, ann, bob)
    assert answers.codes.tolist() == [[MAYBE]]
    assert answers.annotations is not None and answers.annotations.people == ("2", "ann@x.org")
    with refused("both 'yes' and 'no'.*said by '2'"):
        label_studio(tmp_path, chosen("sky", "yes", completed_by=2), bob)
    perhaps = chosen("sky", "perhaps"), chosen("sky", "yes")
    words = {"perhaps": "maybe"}
    assert label_studio(tmp_path, *perhaps, words=words).codes.tolist() == [[MAYBE]]

    made = chosen("labels", "sky", "sea")
    names = ["sky", "sea", "sun"]
    codes = label_studio(tmp_path, made, label_names=names, words={"accept": "yes"}).codes
    assert codes.tolist() == [[YES, YES, NO]]
    ticked = label_studio(tmp_path, made, label_names=names, labels_are="positives")
    assert ticked.kind == "positives" and ticked.codes.tolist() == [[YES, YES, NOTHING]]


def test_a_yes_survives_prodigy(tmp_path: Path) -> None:
    answers = Answers(no=[[1, 0, 0]], yes=[[0, 1, 0]], maybe=[[0, 0, 1]])
    dataset = Dataset(None, ["a", "b", "c"], answers=answers, items=["p"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_dataset(dataset, tmp_path / "a.jsonl")
    assert read_codes(tmp_path / "a.jsonl") == [[NO, YES, MAYBE]]
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line["answer"] for line in lines] == ["reject", "accept", "accept"]
    line = {**lines[1], "said": "surely"}
    with refused("line 1 of a.jsonl .*'said' should be no, yes, .* got 'surely'"):
        prodigy(tmp_path, line)
