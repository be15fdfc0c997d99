"""The worked examples print what their pages show."""

import math
import re
from pathlib import Path

import pytest

from run_examples import ORDER, PAGES, PICTURE, SHOWN, run_script

NEEDED = {
    "emotions_in_texts": ("text",),
    "paper_comparison": ("mulan",),
    "tox21_assays": ("chem", "rdkit"),
    "voc2012_pictures": ("images", "weights"),
}
LUCK = 0.15  # share of the lines that may differ in words: of two labels that are level, the best
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)")


def read_page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def is_alike(shown: str, printed: str) -> bool:
    """Return whether texts have the same words, and numbers that rounding or luck may change."""
    ours, theirs = (NUMBER.split(" ".join(text.split())) for text in (shown, printed))
    if len(ours) != len(theirs) or ours[::2] != theirs[::2]:
        return False
    pairs = zip(ours[1::2], theirs[1::2], strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0.1, abs_tol=0.06) for a, b in pairs)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.needs(*NEEDED.get(name, ()))) for name in ORDER]
)
def test_an_example_prints_what_its_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown = run_script(name)
    printed = "\n".join(cell.text for cell in shown if cell.text).splitlines()
    on_page = "".join(SHOWN.findall(read_page(name))).splitlines()
    assert len(printed) == len(on_page)
    other = [pair for pair in zip(on_page, printed, strict=True) if not is_alike(*pair)]
    assert len(other) <= LUCK * len(on_page), other
    assert sum(len(cell.plots) for cell in shown) == len(PICTURE.findall(read_page(name)))


def test_words_must_be_the_same_and_numbers_near() -> None:
    assert is_alike("precision 0.812\n[1200 rows]", "precision  0.831 [1199 rows]")
    assert not is_alike("precision 0.812", "precision 0.6")
    assert not is_alike("precision 0.812", "recall 0.812")
    assert not is_alike("precision 0.812", "precision 0.812 0.9")
