"""Pictures decoded by processes of their own: how many at once, which die, and very large ones."""

import os
import warnings
from pathlib import Path

import pytest
from PIL import Image

from comes.annotate.display_sizes import UnshownError
from comes.annotate.web import pictures
from comes.annotate.web.pictures import Decoder
from comes.errors import ComesWarning
from test_annotate_pictures import folder as folder  # a fixture
from test_annotate_pictures import make, noise, serve, size_of


def test_a_bomb_is_refused_by_the_server(folder: Path) -> None:
    Image.new("RGB", (12_000, 12_000)).save(folder / "bomb.png")
    noise(20, 20).save(folder / "small.png")
    with pytest.warns(ComesWarning, match="bomb.png .has 144 megapixels"):
        project = make(folder)
    with serve(project) as client:
        for path in ("/items/1", "/items/1/full", "/items/1?width=160"):
            refused = client.get(path)
            assert refused.status_code == 422
            assert refused.json()["error"] == (
                "this picture has 144 megapixels, too many to be shown"
            )


def test_a_decoder_that_dies_or_hangs_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise(1700, 20).save(folder / "a.png")
    decoder = Decoder()
    assert decoder.make(folder / "a.png", 640).kind == "image/jpeg"
    for _ in range(pictures.AT_ONCE):
        program = decoder._programs.get()
        program._start().kill()
        decoder._programs.put(program)
    for _ in range(3):  # one that died in between is started anew
        assert decoder.make((folder / "a.png").read_bytes(), 640).content
    monkeypatch.setattr(pictures, "LONGEST", 0.2)
    os.mkfifo(folder / "endless.png")  # nobody ever writes to it
    with pytest.raises(UnshownError, match="takes too long"):
        decoder.make(folder / "endless.png", 640)
    monkeypatch.undo()
    assert decoder.make(folder / "a.png", 640).content


def test_large_pictures_do_not_fill_the_terminal_with_warnings(folder: Path) -> None:
    Image.new("1", (10_000, 9_500)).save(folder / "map.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project = make(folder)
        assert size_of(serve(project).get("/items/1?width=640")) == (640, 608)
