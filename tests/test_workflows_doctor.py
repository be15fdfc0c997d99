"""``comes doctor``: a healthy place, one broken in every way, and what is told of each."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import comes
from comes.workflows.doctor import EXTRAS, check_installation
from command_line import Run, command_runner

ROOT = Path(__file__).parent.parent


run = pytest.fixture(command_runner)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data, and a cache that can be made."""
    monkeypatch.delenv("COMES_DATA", raising=False)
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


def write_metadata(folder: Path, name: str, version: str, *lines: str) -> None:
    """Write what pip leaves of a package: its name, version, and what it asks for."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    text = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines])
    (info / "METADATA").write_text(text + "\n")


def test_a_healthy_place_is_told_to_be_so(tmp_path: Path, run: Run) -> None:
    told = run("doctor").stdout
    assert told.startswith("Nothing is broken.\n")
    assert f"comes {comes.__version__}, Python {sys.version.split()[0]}" in told
    found = json.loads(run("doctor", "--json").stdout)
    assert found["problems"] == [] and found["datasets"] == []
    assert {"numpy", "torch", "scikit-learn"} <= set(found["versions"])
    assert found["devices"]["threads"] >= 1
    (cache,) = found["folders"]
    assert (cache["exists"], cache["is_writable"]) == (False, True)
    assert not (tmp_path / "cache").exists()  # nothing is changed


def test_data_sets_at_hand_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mulan").mkdir()
    for name in ("emotions.arff", "emotions.xml"):
        (tmp_path / "mulan" / name).touch()
    monkeypatch.setenv("COMES_DATA", str(tmp_path))
    assert check_installation()["datasets"] == ["emotions"]


def test_a_folder_that_is_not_there_is_a_problem(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("COMES_DATA", str(tmp_path / "gone"))
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "file" / "cache"))
    told = run("doctor", code=1).stdout
    assert told.startswith(f"Problem: COMES_DATA names {tmp_path / 'gone'}, which is not a folder.")
    assert "  Correct or unset it.\n" in told
    assert "cannot be written, so nothing can be downloaded.\n  Let COMES_CACHE name" in told
    assert "Data sets at hand" not in told


def test_a_package_that_is_too_old_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "numpy", "1.20.0")
    monkeypatch.syspath_prepend(tmp_path)
    (problem,) = check_installation()["problems"]
    assert problem["what"].startswith("numpy is 1.20.0; comes needs numpy>=")
    assert problem["cure"].startswith("pip install 'numpy>=")


def test_a_gpu_that_torch_does_not_see_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA T4 (UUID: GPU-1)'\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (problem,) = check_installation()["problems"]
    assert problem["what"] == f"torch {torch.__version__} does not see the GPU: NVIDIA T4."
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # hidden on purpose
    assert not check_installation()["problems"]


def test_packages_that_are_missing_or_cannot_be_imported_are_problems(tmp_path: Path) -> None:
    """In a process of its own, where comes asks for three packages and torch is broken."""
    asks = ["jinja2>=3", "torch>=2", "nowhere>=1"]
    asks += ["pillow>=10; extra == 'images'", "far-away; extra == 'chem'"]
    write_metadata(tmp_path, "comes", "1.0", *(f"Requires-Dist: {text}" for text in asks))
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so: cannot open')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "comes", "doctor", "--json"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    torch, nowhere = found["problems"]
    assert "cannot be imported: libcudart.so: cannot open" in torch["what"]
    assert torch["cure"] == "pip install --force-reinstall 'torch>=2'"
    assert nowhere["what"] == "nowhere is not installed; comes needs nowhere>=1."
    assert found["datasets"] is None and found["versions"]["nowhere"] is None
    (chem,) = (extra for extra in found["extras"] if extra["name"] == "chem")
    assert chem["missing"] == ["far-away"] and not chem["installed"]
    assert chem["command"] == "pip install 'comes[chem]'"


def test_extras_that_are_missing_are_no_problem(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "comes", "1.0", "Requires-Dist: far-away; extra == 'chem'")
    monkeypatch.syspath_prepend(tmp_path)
    told = run("doctor").stdout
    assert "pip install 'comes[chem]'" in told and told.startswith("Nothing is broken.")


def test_every_extra_says_what_it_gives() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"all", "dev", "docs"}  # the last two for comes itself


def test_paths_do_not_name_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (cache,) = check_installation()["folders"]
    assert cache["path"] == os.path.join("~", "cache")
