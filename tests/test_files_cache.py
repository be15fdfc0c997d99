"""Downloads from a server on this machine, archives, and features that several write at once.

Kills and other processes are in `system/test_images_feature_processes`.
"""

import hashlib
import io
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from comes.errors import ComesError
from comes.files import cache_folder, data_folder, download, unpack_tar
from comes.files.features import Features, grow_features
from refusals import refused
from serving import CHECKSUM, CONTENT, Server


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address of this machine where nobody listens, and nobody else will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/data.bin"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_downloaded_once(server: Server, nobody: str, tmp_path: Path) -> None:
    path = tmp_path / "sub" / "data.bin"
    assert download(server.address(), CHECKSUM, path) == path
    assert path.read_bytes() == CONTENT
    assert server.asked == [None] and files(path.parent) == ["data.bin"]
    download(nobody, CHECKSUM, path)  # there: the network is not touched
    assert len(server.asked) == 1


def test_a_wrong_checksum_keeps_nothing(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    with refused("its checksum differs from md5:0000.* was not kept"):
        download(server.address(), f"md5:{'0' * 32}", path)
    assert files(tmp_path) == []
    download(server.address(), f"md5:{hashlib.md5(CONTENT).hexdigest()}", path)
    assert path.read_bytes() == CONTENT


def test_a_broken_download_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    server.break_after = 300_000
    with refused("could not be downloaded.*goes on where it stopped"):
        download(server.address(), CHECKSUM, path)
    assert files(tmp_path) == ["data.bin.part"]
    half = (tmp_path / "data.bin.part").stat().st_size
    assert 0 < half <= 300_000
    server.break_after = None
    download(server.address(), CHECKSUM, path)
    assert server.asked == [None, f"bytes={half}-"]
    assert path.read_bytes() == CONTENT and files(tmp_path) == ["data.bin"]


def test_a_server_that_knows_no_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    server.knows_ranges = False
    download(server.address(), CHECKSUM, tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_what_was_complete_but_not_renamed_is_taken(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    download(server.address(), CHECKSUM, tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_part_of_another_file_is_found_out_and_forgotten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    with refused("checksum differs"):
        download(server.address(), CHECKSUM, tmp_path / "data.bin")
    assert files(tmp_path) == []
    download(server.address(), CHECKSUM, tmp_path / "data.bin")


def test_no_server_and_no_such_file_say_where_to_put_it(
    server: Server, nobody: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.bin"
    with refused(r"no connection to 127.0.0.1.*put the file at .*data.bin"):
        download(nobody, CHECKSUM, path)
    server.status = 404
    with refused("404"):
        download(server.address(), CHECKSUM, path)
    assert files(tmp_path) == []


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("COMES_CACHE")
    assert cache_folder().name == "comes"


def test_the_folder_of_data_sets_must_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMES_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("COMES_DATA", str(tmp_path / "nowhere"))
    with refused("COMES_DATA names .*nowhere, which is not a folder"):
        data_folder()
    monkeypatch.delenv("COMES_DATA")
    assert data_folder() is None


def make_tar(path: Path, members: dict[str, bytes], link: str | None = None) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        if link is not None:
            entry = tarfile.TarInfo("link")
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
    return path


def test_a_tar_is_unpacked_beside_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "VOC").mkdir()
    (tmp_path / "VOC" / "test.txt").write_text("old")
    archive = make_tar(tmp_path / "a.tar", {"VOC/train.txt": b"1", "VOC/sub/x.txt": b"2"})
    unpack_tar(archive, tmp_path)
    assert not archive.exists()
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["VOC/sub/x.txt", "VOC/test.txt", "VOC/train.txt"]


def test_a_tar_cannot_write_elsewhere(tmp_path: Path) -> None:
    for k, name in enumerate(("../escaped.txt", str(tmp_path / "escaped.txt"))):
        folder = tmp_path / str(k) / "cache"
        folder.mkdir(parents=True)
        archive = make_tar(folder / "a.tar", {"good.txt": b"1", name: b"2"})
        try:
            unpack_tar(archive, folder)  # a leading / is taken off, which is as good
        except ComesError as error:
            assert "cannot be unpacked" in str(error)
            assert files(folder) == ["a.tar"]
        assert files(folder.parent) == ["cache"] and not (tmp_path / "escaped.txt").exists()


def test_a_tar_with_a_link_outside_or_cut_short_is_refused(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "link.tar", {"good.txt": b"1"}, link="/etc/passwd")
    with refused("link.tar cannot be unpacked"):
        unpack_tar(archive, tmp_path)
    assert files(tmp_path) == ["link.tar"]
    archive = make_tar(tmp_path / "cut.tar", {"big.txt": b"1" * 100_000})
    archive.write_bytes(archive.read_bytes()[:50_000])
    with refused("cut.tar cannot be unpacked"):
        unpack_tar(archive, tmp_path)
    assert files(tmp_path) == ["cut.tar", "link.tar"]


def test_a_compressed_tar_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    with tarfile.open(tmp_path / "cut.tgz", "w:gz") as archive:
        entry = tarfile.TarInfo("big.bin")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    whole = (tmp_path / "cut.tgz").read_bytes()
    (tmp_path / "cut.tgz").write_bytes(whole[: len(whole) // 2])
    with refused("cut.tgz cannot be unpacked"):
        unpack_tar(tmp_path / "cut.tgz", tmp_path)


# Features


def test_one_at_a_time_writes_a_part_that_many_share(tmp_path: Path) -> None:
    writing, waited = threading.Lock(), []

    def grow(number: int) -> list[float]:
        def compute(start: int) -> Iterator[Features]:
            assert writing.acquire(blocking=False), "two write at once"
            for row in range(start, 3):
                time.sleep(0.01)
                yield np.full((1, 2), number + row, np.float32)
            writing.release()

        path, items = tmp_path / f"{number}.npy", [b"%d" % number] * 3
        found = grow_features(
            path,
            tmp_path / "all.part",
            (3, 2),
            lambda: iter(items),
            compute,
            lambda: waited.append(1),
        )
        return [float(value) for value in found[:, 1]]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(grow, range(16))) == [[k, k + 1, k + 2] for k in range(16)]
    assert waited
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}


def test_a_lock_that_a_killed_process_left_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.lock").touch()
    rows = np.ones((2, 1), np.float32)
    part, items = tmp_path / "a.part", [b"x", b"y"]
    for _ in range(2):  # computed, and read
        found = grow_features(
            tmp_path / "a.npy",
            part,
            (2, 1),
            lambda: iter(items),
            lambda _: iter([rows]),
            pytest.fail,
        )
        np.testing.assert_array_equal(found, rows)
    assert files(tmp_path) == ["a.npy"]


def test_features_in_a_folder_that_is_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    path = tmp_path / "taken" / "a.npy"
    with refused("features cannot be written to .*taken.*COMES_CACHE"):
        grow_features(path, path.with_suffix(".part"), (1, 1), lambda: iter([]), lambda _: iter([]))
