"""The page of predictions: which pictures it shows and why, and where their evidence is."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from comes.errors import ComesError
from comes.report import write_model_page
from comes.report.model_page import pick_rows
from comes.report.pictures import LONGEST_SIDE_OF_MAP, draw_overlay
from report_pages import Plain, point_left

LABELS = ["sky", "sea", "cat"]
SCORES = np.random.default_rng(0).random((200, 3))


def cards_of(page: Path) -> dict[str, str]:
    """Return the cards of a page, by the names of their pictures."""
    parts = page.read_text(encoding="utf-8").split('<li class="card')[1:]
    return {re.findall(r"<h3><bdi>(.*?)</bdi>", part)[0]: part for part in parts}


def test_the_most_confident_and_doubtful_of_every_label_are_shown() -> None:
    picked = pick_rows(SCORES, 24, seed=0)
    confident = [(row, j) for row, why in picked.items() for j in why.get("confident", ())]
    doubtful = [(row, j) for row, why in picked.items() for j in why.get("doubtful", ())]
    for label in range(3):
        best = np.argsort(-SCORES[:, label])[:4]
        assert {row for row, j in confident if j == label} == set(best.tolist())
        nearest = np.argsort(np.abs(SCORES[:, label] - 0.5))[:2]
        assert {row for row, j in doubtful if j == label} == set(nearest.tolist())
    assert sum("random" in why for why in picked.values()) == 6
    assert len(picked) <= 24


def test_no_more_are_shown_than_asked_for() -> None:
    for n, q, n_examples in ((1, 1, 1), (3, 50, 8), (500, 40, 20)):
        picked = pick_rows(np.random.default_rng(1).random((n, q)), n_examples, seed=0)
        assert 0 < len(picked) <= min(n, n_examples), (n, q, n_examples)


def test_of_many_pictures_few_are_opened_and_the_page_stays_small(tmp_path: Path) -> None:
    images, scores = Plain(100_000), np.random.default_rng(2).random((100_000, 3))
    page = write_model_page(images, LABELS, scores, scores > 0.5, tmp_path / "page", n_examples=40)
    assert page.stat().st_size < 300_000
    assert 30 <= len(set(images.opened)) <= 40
    text = page.read_text(encoding="utf-8")
    assert re.search(r"\b\d\d of 100000 are shown: for every label the most confident", text)
    assert all(f"<td>{share:.1%}</td>" in text for share in (scores > 0.5).mean(axis=0))  # of all


def test_a_card_says_why_it_is_shown(tmp_path: Path) -> None:
    scores = np.array([[0.9, 0.1], [0.2, 0.48], [0.1, 0.2], [0.1, 0.3], [0.1, 0.1]])
    folder = tmp_path / "page"
    page = write_model_page(Plain(5), LABELS[:2], scores, scores > 0.4, folder, n_examples=4)
    cards = cards_of(page)
    assert "most confident: <bdi>sky</bdi>" in " ".join(cards["000000.png"].split())
    assert "most doubtful: <bdi>sea</bdi>" in " ".join(cards["000001.png"].split())
    assert sum("drawn at random" in card for card in cards.values()) == 1
    assert 'data-labels="0"' in cards["000000.png"]


def test_a_broken_picture_has_a_card_without_maps(tmp_path: Path) -> None:
    class Broken(Plain):
        def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]:
            raise ComesError("broken")

    page = write_model_page(
        Broken(1), LABELS, [[0.9, 0.1, 0.1]], [[1, 0, 0]], tmp_path / "page", maps=point_left
    )
    (card,) = cards_of(page).values()
    assert "This image cannot be read." in card and "overlay" not in card


def test_a_map_has_the_proportions_of_its_picture() -> None:
    evidence = np.array([[1.0, -1.0], [0.5, 0.0]])
    drawn = draw_overlay(evidence, (400, 200))
    assert drawn is not None and (drawn.width, drawn.height) == (
        LONGEST_SIDE_OF_MAP,
        LONGEST_SIDE_OF_MAP // 2,
    )
    image = Image.open(io.BytesIO(base64.b64decode(drawn.uri.partition(",")[2]))).convert("RGBA")
    pixels = np.asarray(image).astype(int)
    opacity = pixels[:, :, 3]
    height, width = opacity.shape
    assert opacity[0, 0] == opacity.max() and opacity[0, width - 1] == 0
    assert opacity[height - 1, 0] < opacity[0, 0]  # half the evidence
    assert pixels[0, 0, :3].sum() > pixels[height - 1, 0, :3].sum()  # brighter, for all eyes
    assert draw_overlay(-np.ones((2, 2)), (40, 40)) is None


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    def page(**settings: Any) -> bytes:
        path = write_model_page(
            Plain(200), LABELS, SCORES, SCORES > 0.5, tmp_path / "page", maps=point_left, **settings
        )
        return path.read_bytes()

    assert page(n_examples=12) == page(n_examples=12)
    assert page(n_examples=12) != page(n_examples=12, seed=1)


def test_what_does_not_agree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"need scores of shape \(3, 3\)"):
        write_model_page(Plain(3), LABELS, SCORES, SCORES > 0.5, tmp_path / "page")
    with pytest.raises(ComesError, match="Pass what predict_proba returns"):
        write_model_page(Plain(200), LABELS, 2 * SCORES, SCORES > 0.5, tmp_path / "page")
    assert not (tmp_path / "page").exists()
