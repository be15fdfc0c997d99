"""Pages of example predictions: what a card says, and that names and pictures are data."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError
from comes.report import write_model_page
from report_pages import (
    CANDIDATES,
    KNOWN,
    LABELS,
    PREDICTIONS,
    RELEVANT,
    SCORES,
    save_pictures,
    write_three,
)


def text_of(html: str) -> str:
    """Return what is read of a piece of a page, spaces as one."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def cards_of(page: Path) -> list[str]:
    html = page.read_text(encoding="utf-8")
    return [f'<li class="card{part}' for part in html.split('<li class="card')[1:]]


def bars_of(card: str) -> list[str]:
    """Return the labels that are shown before all are asked for."""
    return [
        text_of(bar) for bar in re.findall(r"<li.*?</li>", card.split('<ul class="labels">')[1])
    ]


def test_a_card_says_what_is_predicted_what_is_possible_and_what_is_true(tmp_path: Path) -> None:
    page = write_three(tmp_path, **KNOWN)
    assert page == tmp_path / "page" / "index.html"
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    one, two, three = cards_of(page)
    assert 'alt="one.png"' in one
    assert "one.png most confident: sky · no mistake" in text_of(one)
    assert bars_of(one) == [
        "sky 0.91 predicted candidate right",
        "sea 0.40 candidate",
        "cat 0.30 surely not",
        "dog 0.20 candidate",
        "car 0.10 candidate",
    ]
    assert bars_of(two)[:3] == [
        "sea 0.80 predicted candidate right",
        "cat 0.75 predicted, but surely not false positive",
        "tree 0.62 predicted candidate right",
    ]
    assert bars_of(three)[5:] == ["tree 0.02 candidate missed"]  # far down, and yet shown
    assert " · 1 false positive " in text_of(two)
    assert "three.png · 1 missed " in text_of(three)
    for card in (one, two, three):
        _, everything = card.split("<details>")
        assert "<summary>All 7 labels</summary>" in everything
        assert everything.count("<bdi>") == 7


def test_a_contradiction_is_seen_at_once(tmp_path: Path) -> None:
    page = write_three(tmp_path, answers=KNOWN["answers"])
    one, two, three = cards_of(page)
    assert "Contradiction : cat (0.75) predicted, but surely not there." in text_of(two)
    assert two.startswith('<li class="card confident contradictions"')
    assert two.index("Contradiction") < two.index('<ul class="labels">')
    for card in (one, three):
        assert "Contradiction" not in card
    assert "Surely not: cat All 7 labels" in text_of(one)
    assert "Surely not" not in three
    html = page.read_text(encoding="utf-8")
    assert "Predictions that contradict the annotation, over all pictures: 1." in html
    assert "with contradictions (1)" in html
    for word in ("mistake", "precision", "missed", "false positive"):
        assert word not in text_of(html.split("</head>")[1]), word


def test_a_card_says_what_was_asked_and_said(tmp_path: Path) -> None:
    """Of the first picture: sky yes, sea maybe, cat no; of the third: sky yes, not predicted."""
    codes = np.zeros(SCORES.shape, dtype=np.int8)
    codes[0, :3] = State.YES, State.MAYBE, State.NO
    codes[2, 0] = State.YES
    page = write_three(tmp_path, answers=Answers.from_codes(codes))
    first, second, third = map(text_of, cards_of(page))
    for words in (
        "sky 0.91 predicted answered yes",
        "sea 0.40 answered maybe",
        "cat 0.30 answered no",
    ):
        assert words in first
    assert "dog 0.20 not asked" in first and "surely" not in second
    assert "sky 0.30 surely there, but not predicted" in third
    assert "contradictions" in cards_of(page)[2] and "contradictions" not in cards_of(page)[0]
    table = text_of(page.read_text(encoding="utf-8").partition("<tbody>")[2].partition("</tr>")[0])
    assert table == "sky 33.3% 2 0 0 2 1"  # predicted, asked, no, maybe, yes, contradictions


def test_a_card_lists_what_was_said_and_counts_what_was_not_asked(tmp_path: Path) -> None:
    """Ann and Bob disagree about the sea of the first picture; nobody saw the third."""
    people, words = ["ann", "bob", "ann", "ann"], ["no", "yes", "no", "yes"]
    said = LongAnswers.read([0, 0, 0, 1], [1, 1, 6, 1], words, people)
    rates = {"no": np.full(7, 0.8), "yes": np.full(7, 0.9)}
    page = write_three(tmp_path, answers=Answers.from_long(said, SCORES.shape), rates=rates)
    first, second, third = cards_of(page)
    boxes = [text_of(re.findall(r"<dl.*?</dl>", card, re.S)[0]) for card in (first, second, third)]
    assert boxes == [
        "no tree disagree sea (1 no, 1 yes) not asked 5 of 7 labels",
        "yes sea not asked 6 of 7 labels",
        "not asked all 7 labels",
    ]
    assert bars_of(first)[1] == "sea 0.40 people disagree: 1 no, 1 yes"
    assert bars_of(first)[-1] == "tree 0.02 answered no"  # asked, so shown, though far down
    html = page.read_text(encoding="utf-8")
    assert "with answers (2)" in html and "where people disagree (1)" in html
    (row,) = (text_of(row) for row in re.findall(r"<tr>.*?</tr>", html) if "<bdi>sea" in row)
    # predicted, asked, no, maybe, yes, disagree, no rate, yes rate, contradictions
    assert row == "sea 33.3% 2 0 1 1 1 of 1 0.80 0.90 0"


def test_both_kinds_of_contradiction_are_told_apart(tmp_path: Path) -> None:
    codes = np.zeros(SCORES.shape, dtype=np.int8)
    codes[1, [2, 4]] = State.NO, State.YES
    page = write_three(tmp_path, answers=Answers.from_codes(codes))
    second = text_of(cards_of(page)[1])
    assert "Contradiction : cat (0.75) predicted, but surely not there;" in second
    assert "; car (0.15) surely there, but not predicted." in second


def test_ticked_labels_are_no_candidates(tmp_path: Path) -> None:
    page = write_three(tmp_path, answers=Answers.from_positives(RELEVANT))
    assert bars_of(cards_of(page)[0])[:2] == ["sky 0.91 predicted ticked", "sea 0.40 not ticked"]
    assert "tree 0.02 ticked, but not predicted" in bars_of(cards_of(page)[2])
    assert "candidate" not in text_of(page.read_text(encoding="utf-8").split("</head>")[1])


def test_without_candidates_and_truth_nothing_is_said_of_them(tmp_path: Path) -> None:
    page = write_three(tmp_path)
    text = text_of(page.read_text(encoding="utf-8").split("</head>")[1])
    for word in ("candidate", "surely not", "contradict", "mistake", "recall"):
        assert word not in text, word
    assert bars_of(cards_of(page)[0])[:2] == ["sky 0.91 predicted", "sea 0.40"]


def test_the_table_counts_all_rows(tmp_path: Path) -> None:
    page = write_three(tmp_path, n_examples=1, **KNOWN)
    assert len(cards_of(page)) == 1
    html = page.read_text(encoding="utf-8")
    assert "1 of 3 are shown" in html
    rows = [text_of(row) for row in re.findall(r"<tr>.*?</tr>", html)]
    assert rows == [
        "label predicted near the label&#39;s share is good relevant candidate "
        "contra\xaddictions 0 is best",
        "sky 33.3% 33.3% 100.0% 0",
        "sea 33.3% 33.3% 100.0% 0",
        "cat 33.3% 0.0% 33.3% 1",
        "dog 0.0% 0.0% 100.0% 0",
        "car 0.0% 0.0% 100.0% 0",
        "bus 0.0% 0.0% 100.0% 0",
        "tree 33.3% 66.7% 100.0% 0",
    ]


def test_pictures_are_small_and_inside_the_page(tmp_path: Path) -> None:
    images = save_pictures(tmp_path / "large", ["wide.png"], size=(900, 450))
    page = write_model_page(images, ["sky"], [[0.5]], [[1]], tmp_path / "page")
    html = page.read_text(encoding="utf-8")
    (source,) = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)"', html)
    picture = Image.open(io.BytesIO(base64.b64decode(source)))
    assert (picture.format, picture.size) == ("JPEG", (320, 160))
    assert 'width="320" height="160"' in html
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:\"" in html
    assert "http" not in html.replace("http-equiv", "")
    assert "<script" not in html


def test_a_broken_image_is_a_card_that_says_so(tmp_path: Path) -> None:
    images = save_pictures(tmp_path / "pictures", ["one.png", "two.png", "three.png"])
    (images.sources[0] / "two.png").write_bytes(b"no picture")
    (images.sources[0] / "three.png").unlink()
    one, *broken = cards_of(
        write_model_page(images, LABELS, SCORES, PREDICTIONS, tmp_path / "page")
    )
    assert "cannot be read" not in one
    for card, name in zip(broken, ("two.png", "three.png"), strict=True):
        assert "This image cannot be read." in card
        assert name in card
        assert "<img" not in card
        assert len(bars_of(card)) >= 5


class Dots:
    """Pictures that lie in memory; the second has no pixels."""

    names = ("dot", "nothing")

    def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]:
        return np.zeros((1 - row, 1, 3), dtype=np.uint8)


def test_any_sequence_with_names_will_do(tmp_path: Path) -> None:
    page = write_model_page(Dots(), ["sky"], [[0.5], [0.5]], [[1], [0]], tmp_path / "page")
    dot, nothing = cards_of(page)
    assert 'alt="dot"' in dot
    assert "This image cannot be read." in nothing


def test_names_are_data(tmp_path: Path) -> None:
    hostile = "<script>alert(1)<"
    images = save_pictures(tmp_path / "pictures", [f"{hostile}.png", 'a" onload="x.png'])
    names = [hostile + "b>", "{{ 7 * 7 }}"]
    scores = np.array([[0.9, 0.8], [0.9, 0.8]])
    page = write_model_page(
        images,
        names,
        scores,
        scores > 0.5,
        tmp_path / "page",
        answers=Answers.from_candidates(scores < 0.5),
        title=hostile,
    )
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert 'onload="' not in html
    assert "&lt;script&gt;alert(1)&lt;b&gt;" in html
    assert "{{ 7 * 7 }}" in html
    images.names[1] = "bytes that are no text: \udcff"  # as Python gives names of such files
    write_model_page(images, names, scores, scores > 0.5, tmp_path / "page")


def test_the_same_input_gives_the_same_bytes_and_another_seed_other_rows(tmp_path: Path) -> None:
    images = save_pictures(tmp_path / "pictures", [f"{k}.png" for k in range(30)])
    scores = np.random.default_rng(1).random((30, 7))

    def page(**settings: Any) -> bytes:
        write_model_page(images, LABELS, scores, scores > 0.5, tmp_path / "page", **settings)
        return (tmp_path / "page" / "index.html").read_bytes()

    assert page(n_examples=8) == page(n_examples=8)
    assert 5 < page(n_examples=8).count(b'<li class="card') <= 8
    assert page(n_examples=8) != page(n_examples=8, seed=1)
    assert page(n_examples=1000).count(b'<li class="card') == 30
    assert page(n_examples=1000, seed=1) == page(n_examples=30)  # all, in their order


def test_many_excluded_labels_are_cut_short(tmp_path: Path) -> None:
    images = save_pictures(tmp_path / "pictures", ["one.png"])
    names = [f"label {k}" for k in range(40)]
    none = np.zeros((1, 40))
    page = write_model_page(
        images, names, none, none, tmp_path / "page", answers=Answers.from_candidates(none)
    )
    (card,) = cards_of(page)
    assert "label 29 and 10 more All 40 labels" in text_of(card)


def test_what_does_not_agree_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    images = save_pictures(tmp_path / "pictures", ["one.png", "two.png", "three.png"])
    good: dict[str, Any] = {
        "label_names": LABELS,
        "probabilities": SCORES,
        "predictions": PREDICTIONS,
    }
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"probabilities": SCORES[:2]},
            r"3 rows and 7 label names need scores of shape \(3, 7\); got ",
        ),
        ({"predictions": PREDICTIONS[:, :6]}, r"need predictions of shape \(3, 7\); got \(3, 6\)"),
        ({"answers": Answers.from_candidates(CANDIDATES.T)}, r"answers of shape .* Give a row for"),
        ({"relevant": RELEVANT[:1]}, r"need relevant of shape \(3, 7\); got \(1, 7\)"),
        ({"label_names": LABELS[:2]}, r"3 rows and 2 label names need scores of shape \(3, 2\)"),
        ({"label_names": ["sky", *LABELS[:6]]}, "label names must differ; got 'sky'"),
        ({"predictions": PREDICTIONS * 2}, "predictions must be 0 or 1; got 2 at row 0"),
        (
            {"probabilities": 5 * SCORES},
            r"in \[0, 1\]; got 4.55 at row 0, label 'sky'. Pass what predict",
        ),
        ({"probabilities": np.nan * SCORES}, "must be probabilities .* got nan"),
        ({"n_examples": 0}, "n_examples must be 1 or more; got 0"),
    ]
    for changes, message in refused:
        with pytest.raises(ComesError, match=message):
            write_model_page(images, folder=tmp_path / "page", **(good | changes))
        assert not (tmp_path / "page").exists()
    with pytest.raises(ComesError, match="holds something else"):
        write_model_page(images, LABELS, SCORES, PREDICTIONS, images.sources[0])
    assert len(list(images.sources[0].iterdir())) == 3
