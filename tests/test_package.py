"""What a release is made of: names, versions, extras, images for containers."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

import comes
from comes.cli import app

ROOT = Path(__file__).parent.parent
HOME = ROOT / "src" / "comes"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(SETTINGS["optional-dependencies"])


def test_public_names_exist_and_are_documented() -> None:
    assert set(comes.__all__) <= set(dir(comes))
    for name in comes.__all__:
        assert getattr(comes, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        comes.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("from comes import Answers", {"torch", "scipy", "pandas", "sklearn"}),
        ("import comes.workflows.split", {"torch", "sklearn", "matplotlib"}),
        (
            "import comes.workflows.fit, comes.workflows.predict",
            {"sklearn.cluster", "sklearn.pipeline", "matplotlib", "requests", "torch._dynamo"},
        ),
    ],
)
def test_what_is_heavy_is_imported_where_it_is_used(program: str, unused: set[str]) -> None:
    shown = f"{program}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert not unused & {*done.stdout.split()}


def test_every_release_has_its_version_in_all_places() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", changes, re.MULTILINE)
    dated = dict(release for release in releases if release[0] != "Unreleased")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert next(iter(dated)) == comes.__version__
    assert f"\nversion: {comes.__version__}\n" in citation
    assert f"\ndate-released: {dated[comes.__version__]}\n" in citation


def test_messages_and_documents_name_extras_that_exist() -> None:
    for path in [*HOME.rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        for names in re.findall(r"comes\[([a-z,]+)\]", path.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= EXTRAS, path


def test_images_for_containers_name_extras_and_commands_that_exist() -> None:
    group = typer.main.get_command(app)
    files = sorted((ROOT / "docker").glob("*.Dockerfile"))
    assert [file.stem for file in files] == ["annotate", "gpu"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", text)
        assert set(extras.split(",")) <= EXTRAS
        words = " ".join(re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE))
        command: object = group
        for word in re.findall(r'"([a-z]+)"', words)[1:]:
            if isinstance(command, typer.core.TyperGroup):
                command = command.commands[word]
        assert re.search(r"^FROM [\w./-]+:[\w.-]*\d[\w.-]*$", text, re.MULTILINE)
        assert re.search(r"^USER (?!root|0)", text, re.MULTILINE)


def test_the_workflow_tests_the_supported_pythons() -> None:
    prefix = "Programming Language :: Python :: 3."
    listed = [c.rpartition(" ")[2] for c in SETTINGS["classifiers"] if c.startswith(prefix)]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow) == listed
    assert SETTINGS["requires-python"] == f">={listed[0]}"


def test_no_tracked_file_names_a_folder_of_this_machine() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")[:-1]
    home = os.path.sep.join(["", "work", ""]).encode()
    for name in tracked:
        if (ROOT / name).is_file():
            assert home not in (ROOT / name).read_bytes(), name
