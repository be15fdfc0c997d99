"""Numbers that no refactoring may change, and what version 1.0.0 left on disk.

``make goldens GOLDENS=fixed`` writes them again, and prints what moved and by how much. Only a
change of defaults may rewrite the set ``default``.
"""

from pathlib import Path

import pytest

from goldens import cases, files

SETS = {"fixed": cases.FIXED, "stored": cases.STORED, "default": cases.DEFAULT}
CASES = [(group, name) for group, named in SETS.items() for name in named]


@pytest.mark.parametrize(("group", "name"), CASES, ids=[f"{g}: {n}" for g, n in CASES])
def test_gives_the_stored_numbers(
    group: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    moved = files.compare(group, name, SETS[group][name](tmp_path))
    assert not moved, "\n".join([f"{len(moved)} values moved:", *moved[:10]])


def test_every_golden_file_belongs_to_a_case() -> None:
    wanted = {files.path_of(group, name).stem for group, name in CASES}
    stored = {path.name.split(".")[0] for group in SETS for path in (files.HOME / group).iterdir()}
    assert stored == {stem.split(".")[0] for stem in wanted}
