"""The wheel and the sdist: what is in them, what they need, and what happens without an extra."""

import email
import email.message
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import comes

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "comes"
PYTHONS = ["3.11", "3.12", "3.13"]
FEATURES = {"annotate", "chem", "images", "onnx", "remote", "scale", "text"}
FOR_READERS = {
    "all",
    "dev",
    "recipes",
    "docs",
}  # what several features, contributors or a page need


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints; fail with its errors."""
    isolated = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=isolated)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(source: Path, out: Path, target: str) -> Path:
    """Build a wheel or an sdist of a folder, offline."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "-d", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl" if target == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        name = f"comes-{comes.__version__}.dist-info/METADATA"
        return email.message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def bare(
    wheel: Path, metadata: email.message.Message, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The binaries of an environment that sees the wheel and what it requires, and no more."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True)
    packages = next((home / "lib").glob("python*")) / "site-packages"
    for name in required(metadata.get_all("Requires-Dist", [])):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(found.locate_file(top)))
    pip = ("-m", "pip", "--python", home / "bin" / "python", "install", "--quiet", "--no-deps")
    run(sys.executable, *pip, "--no-index", wheel, cwd=home)
    return home / "bin"


def required(wanted: list[str]) -> set[str]:
    """Return the names of all distributions that are required without an extra."""
    found: set[str] = set()
    stack = [(Requirement(line), "") for line in wanted]
    while stack:
        requirement, extra = stack.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            lines = distribution(requirement.name).requires or []
            for of_extra in ("", *requirement.extras):
                stack += [(Requirement(line), of_extra) for line in lines]
    return found


# What is in them


def test_the_wheel_has_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    files = {path for path in HOUSE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {path.relative_to(HOUSE.parent).as_posix() for path in files}
    assert {"comes/py.typed", "comes/report/page.html.jinja"} < inside
    assert "comes/annotate/web/static/annotate.js" in inside


def test_the_sdist_is_small_and_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, tmp_path, "sdist")
    assert sdist.stat().st_size < 2_000_000
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"comes-{comes.__version__}"
    assert {path.name for path in source.iterdir()} == {
        *("CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md"),
        *(".gitignore", "pyproject.toml", "src"),
    }
    again = build(source, tmp_path, "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert {i.filename: i.CRC for i in one.infolist()} == {
            i.filename: i.CRC for i in other.infolist()
        }


def test_the_metadata_says_what_is_supported(metadata: email.message.Message) -> None:
    assert metadata["Version"] == comes.__version__
    assert metadata["Requires-Python"] == f">={PYTHONS[0]}"
    prefix = "Programming Language :: Python :: 3."
    listed = [c for c in metadata.get_all("Classifier", []) if c.startswith(prefix)]
    assert [c.rpartition(" ")[2] for c in listed] == PYTHONS
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert set(metadata.get_all("Provides-Extra", [])) == FEATURES | FOR_READERS


def test_all_has_the_packages_of_every_feature(metadata: email.message.Message) -> None:
    wanted = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]

    def of(extra: str) -> set[str]:
        found = {
            (one.name, *one.extras)
            for one in wanted
            if one.marker and one.marker.evaluate({"extra": extra})
        }
        deeper = [of(name) for package, *names in found if package == "comes" for name in names]
        return {name for name, *_ in found if name != "comes"}.union(*deeper)

    assert of("all") == set[str]().union(*map(of, FEATURES))


def test_links_of_the_readme_lead_somewhere_on_the_package_index(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        '[a](docs/a.md#b) ![c](docs/c.png) <img src="docs/d.svg"> [e](https://e.org) [f](#f)\n'
    )
    address = "https://example.org/comes"
    run(ROOT / ".ci" / "absolute_links", tmp_path / "README.md", address, "v1", cwd=tmp_path)
    assert (tmp_path / "README.md").read_text() == (
        f"[a]({address}/blob/v1/docs/a.md#b) ![c]({address}/raw/v1/docs/c.png) "
        f'<img src="{address}/raw/v1/docs/d.svg"> [e](https://e.org) [f](#f)\n'
    )


# Without an extra

USE = """
import json, sys, tempfile
from pathlib import Path

import comes
heavy = sorted({"torch", "numpy", "pandas"} & set(sys.modules))
said = {}

def attempt(extra, use):
    try:
        use()
    except comes.errors.ComesError as error:
        said[extra] = str(error)

import comes.annotate
from comes import CandidateClassifier
from comes.experiment.run import run_tasks
from comes.tables.texts import open_embedding
from comes.datasets import Images, open_shards
from comes.datasets.catalogue import morgan_fingerprints
from comes.estimator import export_onnx
from comes.images import make_backbone

model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
attempt("annotate", lambda: comes.annotate.open_project)
attempt("chem", lambda: morgan_fingerprints(["CCO"]))
attempt("images", lambda: make_backbone("timm:resnet18"))
attempt("onnx", lambda: export_onnx(model, "model.onnx"))
attempt("remote", lambda: open_shards("s3://bucket/rows", labels=["label"]))
attempt("scale", lambda: run_tasks([], Path("runs"), backend="ray"))
attempt("text", lambda: open_embedding("wordllama"))
print(json.dumps({"heavy": heavy, "said": said}))
"""


def test_without_an_extra_one_sentence_names_it(bare: Path, tmp_path: Path) -> None:
    found = json.loads(run(bare / "python", "-W", "ignore", "-c", USE, cwd=tmp_path))
    assert found["heavy"] == []  # import comes is cheap
    assert set(found["said"]) == FEATURES
    for extra, sentence in found["said"].items():
        assert f"pip install 'comes[{extra}]'" in sentence
        assert "\n" not in sentence and len(sentence) < 250


def test_the_demo_needs_no_extra(bare: Path, tmp_path: Path) -> None:
    shown = run(bare / "comes", "demo", cwd=tmp_path)
    assert "candidates, likelihood" in shown


@pytest.mark.smoke
def test_an_installed_wheel_fits_and_predicts_without_an_extra(bare: Path, tmp_path: Path) -> None:
    rows = [f"{k},{k % 7},{k % 2},{int(k > 20)}" for k in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["height,width,has_a,has_b", *rows]))
    fit = ("fit", "table.csv", "--labels", "has_*", "-o", "model")
    run(bare / "comes", *fit, "--method", "bce", "--epochs", "1", cwd=tmp_path)
    predict = ("predict", "table.csv", "--model", "model", "-o", "predictions.csv")
    run(bare / "comes", *predict, cwd=tmp_path)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 41


def test_the_types_are_seen_where_it_is_installed(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text("from comes.errors import counted\nreveal_type(counted)\n")
    (tmp_path / "mypy.ini").write_text(  # the rest of the house would take a minute
        "[mypy]\n[mypy-comes.answers.*,comes.estimator.*,comes.priors.*]\nfollow_imports = skip\n"
    )
    python = ("--python-executable", bare / "python", "--config-file", "mypy.ini")
    shown = run(sys.executable, "-m", "mypy", *python, "user.py", cwd=tmp_path)
    assert "(number: int, noun: str, verb: str =) -> str" in shown.replace("builtins.", "")
