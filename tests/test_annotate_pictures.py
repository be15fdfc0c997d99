"""Pictures: display sizes made once, bounds of memory, and what is told when a project is made."""

import io
import os
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile
from starlette.testclient import TestClient

from annotation_site import HERE, decoding_in_threads
from comes.annotate import Project, create_project, open_project
from comes.annotate import pictures as picture_files
from comes.annotate.pictures import UnshownError, find_unshown, make_display
from comes.annotate.web import pictures
from comes.annotate.web.pictures import Decoder, DisplayCache
from comes.annotate.web.server import make_app
from comes.errors import ComesError, ComesWarning

RED_TOP = np.zeros((60, 100, 3), dtype=np.uint8)
RED_TOP[:30, :, 0] = 255  # the upper half is red
LIMIT = 120.0  # seconds; what is waited for takes milliseconds
ENDINGS = ("jpg", "png", "gif", "webp", "tif", "bmp")


@pytest.fixture(autouse=True)
def _decoding_in_threads() -> Iterator[None]:
    with decoding_in_threads():
        yield


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    (tmp_path / "classes.txt").write_text("one\ntwo\n")
    return tmp_path / "photos"


def make(folder: Path, place: Path | None = None, **options: Any) -> Project:
    sources = place or folder, folder.parent / "classes.txt"
    return create_project(folder.parent / "project", *sources, rate=1, **options)


def serve(project: Project) -> TestClient:
    return TestClient(make_app(project), base_url=HERE)


def size_of(reply: Any) -> tuple[int, int]:
    assert reply.status_code == 200, reply.text
    with Image.open(io.BytesIO(reply.content)) as image:
        return image.size


def pack(archive: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.png", content)
    return archive


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


# Sizes


def test_a_picture_comes_in_the_size_that_is_asked_for_and_in_no_other(folder: Path) -> None:
    noise(2400, 1600).save(folder / "large.jpg", quality=95)
    noise(400, 4000).save(folder / "long.png")
    client = serve(make(folder))
    for path, size in {
        "/items/1": (1600, 1067),
        "/items/1?width=640": (640, 427),
        "/items/1?width=160": (160, 107),
        "/items/2": (400, 4000),  # a long picture keeps its width
    }.items():
        assert size_of(client.get(path)) == size, path
    whole = client.get("/items/1/full")
    assert whole.content == (folder / "large.jpg").read_bytes()
    assert whole.headers["content-type"] == "image/jpeg"
    for width in ("161", "-1", "160000", "", "x", "1600.0"):
        reply = client.get(f"/items/1?width={width}")
        assert reply.status_code == 400, width
        assert reply.json()["error"] == "width must be 160 or 640 or 1600"


def test_a_picture_is_turned_upright(folder: Path) -> None:
    """The same scene, stored in the eight ways that a camera can be held."""
    upright = Image.fromarray(RED_TOP).resize((1700, 1020))
    ways = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    for orientation, undo in ways.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored = upright if undo is None else upright.transpose(undo)
        stored.save(folder / f"turned-{orientation}.jpg", exif=exif)
    client = serve(make(folder))
    for orientation in ways:
        reply = client.get(f"/items/{orientation}")
        assert size_of(reply) == (1600, 960), orientation
        with Image.open(io.BytesIO(reply.content)) as image:
            shown = np.asarray(image).astype(int)
        assert shown[:400, :, 0].min() > 200 and shown[560:, :, 0].max() < 60, orientation


def test_colours_that_a_browser_does_not_show_are_converted(folder: Path) -> None:
    noise(100, 100).convert("CMYK").save(folder / "print.tif")
    deep = (np.arange(3000 * 100).reshape(100, 3000) % 65536).astype(np.uint16)
    Image.fromarray(deep).save(folder / "x-ray.tif")
    Image.new("RGBA", (2000, 50), (255, 0, 0, 0)).save(folder / "glass.png")
    noise(1700, 34).quantize(8).save(folder / "few.png")
    client = serve(make(folder))
    for number, size in ((1, (1600, 32)), (2, (1600, 40)), (3, (100, 100)), (4, (1600, 53))):
        assert size_of(client.get(f"/items/{number}")) == size
        assert size_of(client.get(f"/items/{number}/full"))
    with Image.open(io.BytesIO(client.get("/items/2").content)) as image:
        assert min(np.asarray(image)[20, 800].tolist()) > 250  # what is transparent is white


# Made once


def count_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with every picture that is made."""
    made: list[Any] = []
    real = Decoder.make

    def count(*given: Any) -> Any:
        made.append(given)
        return real(*given)

    monkeypatch.setattr(Decoder, "make", count)
    return made


def test_a_display_size_is_made_once_and_again_when_its_file_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = count_made(monkeypatch)
    noise(1800, 900).save(folder / "a.jpg")
    project = make(folder)
    for _ in range(2):  # the second server finds what the first one made
        with serve(project) as client:
            first = client.get("/items/1")
            assert client.get("/items/1").content == first.content
    assert len(made) == 1
    Image.new("RGB", (1800, 900), "red").save(folder / "a.jpg")
    with serve(project) as client:
        again = client.get("/items/1")
        assert again.content != first.content and again.headers["etag"] != first.headers["etag"]
        headers = {"if-none-match": again.headers["etag"]}
        assert client.get("/items/1", headers=headers).status_code == 304
    assert len(made) == 2


def test_what_is_broken_is_remembered_until_it_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise(20, 20).save(folder / "a.png")
    project = make(folder)
    (folder / "a.png").write_bytes(b"no picture")
    made = count_made(monkeypatch)
    with serve(project) as client:
        for _ in range(3):
            reply = client.get("/items/1")
            assert (reply.status_code, reply.json()["error"]) == (
                422,
                "this picture is not an image",
            )
        assert len(made) == 1
        noise(20, 20).save(folder / "a.png")
        assert client.get("/items/1").status_code == 200


def test_display_sizes_are_for_their_owner_alone(folder: Path) -> None:
    noise(1800, 900).save(folder / "a.jpg")
    project = make(folder)
    assert serve(project).get("/items/1").status_code == 200
    made = [project.folder, *project.folder.rglob("*")]
    assert any(path.name.endswith("-1600") for path in made)
    for path in made:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_the_cache_is_bounded_and_keeps_what_is_asked_for(tmp_path: Path) -> None:
    cache = DisplayCache(tmp_path / "display", most=1000)
    for number in range(9):
        cache.write(f"aa{number}", bytes(100))
        os.utime(tmp_path / "display" / "aa" / f"aa{number}", (number, number))
    assert cache.read("aa0") is not None  # the oldest, asked for again
    for number in range(9, 12):
        cache.write(f"aa{number}", bytes(100))
    left = {path.name for path in (tmp_path / "display").glob("*/*")}
    assert "aa0" in left and "aa11" in left and "aa1" not in left
    assert len(left) <= 10


def test_without_a_place_to_keep_them_pictures_are_still_shown(folder: Path) -> None:
    noise(1800, 900).save(folder / "a.jpg")
    project = make(folder)
    (project.folder / "display").write_text("in the way")
    assert size_of(serve(project).get("/items/1")) == (1600, 800)


# Bounds


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, "this takes too long"
        time.sleep(0.01)


def test_two_decode_at_once_others_wait_and_too_many_are_sent_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        noise(20 + number, 20).save(folder / f"{number}.bmp")
    asked: list[Decoder] = []
    now, most, goes_on = [0], [0], threading.Event()
    lock, real_make, real_run = threading.Lock(), Decoder.make, Decoder.run

    async def run(self: Decoder, *given: Any) -> Any:
        asked.append(self)
        return await real_run(self, *given)

    def make_slowly(*given: Any) -> Any:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        goes_on.wait(LIMIT)
        with lock:
            now[0] -= 1
        return real_make(*given)

    monkeypatch.setattr(Decoder, "run", run)
    monkeypatch.setattr(Decoder, "make", make_slowly)
    monkeypatch.setattr(pictures, "AT_ONCE", 2)
    monkeypatch.setattr(pictures, "MOST_WAITING", 3)
    with serve(make(folder)) as client, ThreadPoolExecutor(20) as pool:
        same = [pool.submit(client.get, "/items/1") for _ in range(6)]
        wait_until(lambda: len(asked) == 6)
        waiting = [pool.submit(client.get, f"/items/{number}") for number in (2, 3, 4, 5)]
        wait_until(lambda: len(asked) == 10 and len(asked[0]._running) == 5 and now[0] == 2)
        refused = client.get("/items/6")
        assert refused.status_code == 503 and "try again" in refused.text
        goes_on.set()
        assert [job.result().status_code for job in (*same, *waiting)] == [200] * 10
        assert most[0] == 2
        assert client.get("/items/6").status_code == 200


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (4000, 2000)).save(folder / "bomb.png")
    noise(4000, 2000).save(folder / "photo.jpg")
    monkeypatch.setattr(picture_files, "MOST_PIXELS", 5_000_000)
    decoded: list[tuple[int, int]] = []
    real = ImageFile.ImageFile.load

    def load(self: Any) -> Any:
        decoded.append(self.size)
        return real(self)

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    with pytest.warns(ComesWarning, match="1 of 2 .* bomb.png .has 8 megapixels, too many"):
        make(folder).engine.dispose()
    for width in (1600, None):
        with (folder / "bomb.png").open("rb") as file, pytest.raises(UnshownError, match="8 mega"):
            make_display(file, width)
    assert decoded == []
    with (folder / "photo.jpg").open("rb") as file:
        make_display(file, 1600)
    assert decoded[0] == (2000, 1000)  # half its size


@pytest.mark.parametrize("error", [KeyError("chunk"), ZeroDivisionError(), RuntimeError("odd")])
def test_whatever_a_decoder_raises_the_picture_is_broken_and_the_server_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    noise(20, 20).save(folder / "a.bmp")
    project = make(folder)

    def fail(_: Any) -> None:
        raise error

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    refused = serve(project).get("/items/1")
    assert refused.status_code == 422 and "this picture cannot be read" in refused.text


# Archives


def test_a_member_that_unpacks_to_too_much_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_files, "LARGEST_MEMBER", 100_000)
    small = png(noise(20, 20))
    archive = pack(folder.parent / "photos.zip", a=small, bomb=small + bytes(9 << 20))
    with pytest.warns(ComesWarning, match="bomb.png .has 9 MB unpacked"):
        project = make(folder, archive)
    with serve(project) as client:
        for path, status in {"1": 200, "1/full": 200, "2": 422, "2/full": 422}.items():
            assert client.get(f"/items/{path}").status_code == status, path


def test_an_archive_that_is_replaced_shows_its_new_pictures(folder: Path) -> None:
    red, blue = (png(Image.new("RGB", (10, 10), colour)) for colour in ("red", "blue"))
    archive = folder.parent / "photos.zip"
    client = serve(make(folder, pack(archive, a=red)))
    assert client.get("/items/1").content == red
    pack(archive, a=blue)
    assert client.get("/items/1").content == blue


# Links


def test_links_out_of_the_folder_are_neither_accepted_nor_served(folder: Path) -> None:
    noise(20, 20).save(folder / "a.png")
    secret = folder.parent / "secret.png"
    noise(30, 30).save(secret)
    (folder / "inside.png").symlink_to(folder / "a.png")
    project = make(folder)  # a link to a neighbour is a picture like others
    assert project.item_names == ["a.png", "inside.png"]
    (folder / "a.png").unlink()
    (folder / "a.png").symlink_to(secret)
    with serve(project) as client:
        for path in ("/items/1", "/items/1/full", "/items/2", "/items/2/full"):
            refused = client.get(path)
            assert refused.status_code == 422 and "link out of its folder" in refused.text


def test_links_out_of_the_folder_are_named_when_a_project_is_made(folder: Path) -> None:
    noise(20, 20).save(folder / "a.png")
    outside = folder.parent / "elsewhere"
    outside.mkdir()
    noise(20, 20).save(outside / "b.png")
    (folder / "linked").symlink_to(outside)
    (folder.parent / "items.csv").write_text("item\nlinked/b.png\n")
    with pytest.raises(ComesError, match="links out of it"):  # through a linked folder
        make(folder, folder.parent / "items.csv", images=folder)
    (folder / "b.png").symlink_to(outside / "b.png")
    with pytest.raises(ComesError, match="1 of 2 are links out of it: 'b.png'"):
        make(folder)
    with pytest.warns(ComesWarning, match="b.png .is a link out of its folder"):
        assert make(folder, skip_broken=True).item_names == ["a.png"]


def test_a_folder_that_is_itself_a_link_is_fine(folder: Path) -> None:
    noise(20, 20).save(folder / "a.png")
    (folder.parent / "linked").symlink_to(folder)
    assert serve(make(folder, folder.parent / "linked")).get("/items/1").status_code == 200


# What is told when a project is made


def test_broken_pictures_are_told_and_left_out_if_wanted(folder: Path) -> None:
    (folder / "page.png").write_text("<html>")
    with pytest.raises(ComesError, match="none of the 1 pictures in photos can be shown"):
        make(folder)
    noise(60, 60).save(folder / "good.jpg")
    whole = (folder / "good.jpg").read_bytes()
    (folder / "half.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.gif").write_bytes(b"")
    (folder / "longer.jpg").write_bytes(whole + b"of a camera" * 100)
    with pytest.warns(ComesWarning) as said:
        project = make(folder)
    [message] = [str(one.message) for one in said]
    assert message.startswith("3 of 5 pictures cannot be shown: empty.gif (is not an image), half")
    assert "--skip-broken" in message
    assert len(project.item_names) == 5
    project.engine.dispose()
    other = folder.parent / "other"
    with pytest.warns(ComesWarning, match="They are left out"):
        sources = folder, folder.parent / "classes.txt"
        project = create_project(other, *sources, rate=1, skip_broken=True)
    assert project.item_names == ["good.jpg", "longer.jpg"]


def test_whole_pictures_are_not_decoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in ENDINGS:
        noise(60, 60).save(folder / f"a.{ending}")

    def fail(*_: Any) -> None:
        raise AssertionError("a header is enough")

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    assert find_unshown(folder, [path.name for path in folder.iterdir()]) == {}


# Files of a project


@pytest.mark.parametrize(
    ("before", "after"),
    [((0o755, 0o644), (0o700, 0o600)), ((0o770, 0o660), (0o770, 0o660))],
    ids=["of an earlier version", "that a group shares"],
)
def test_a_project_that_everybody_could_read_becomes_private(
    folder: Path, before: tuple[int, int], after: tuple[int, int]
) -> None:
    noise(20, 20).save(folder / "a.png")
    project = make(folder)
    project.engine.dispose()
    project.folder.chmod(before[0])
    (project.folder / "answers.db").chmod(before[1])
    again = open_project(project.folder)
    again.write_setting("note", "with -wal and -shm beside it")
    assert stat.S_IMODE(project.folder.stat().st_mode) == after[0]
    for path in project.folder.glob("answers.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == after[1], path
    again.engine.dispose()
