"""Projects, and how their databases are opened."""

import json
import os
import shutil
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Connection, Engine, func, insert, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from annotation_site import dump
from comes.annotate import Project, collect_answers, create_project, open_project
from comes.annotate.cards import sample_cards
from comes.annotate.project import DATABASE, DESCRIPTION
from comes.annotate.schema import cards, explain, items, open_engine, settings
from comes.datasets import open_dataset
from comes.errors import ComesError
from image_folders import save_images
from projects import Desk, Projects, all_cards, new_answer

# Databases


@pytest.fixture
def project(projects: Projects) -> Project:
    return projects.make()


def test_an_answer_is_on_disk_when_it_is_acknowledged(projects: Projects) -> None:
    with projects.make().engine.connect() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_a_card_needs_an_item_that_there_is(project: Project) -> None:
    row = {"class_id": 1, "turn": 0, "source": "random", "position": 0}
    with pytest.raises(ComesError, match=r"(?i)foreign key"), project.writing() as connection:
        connection.execute(insert(cards).values(item_id=99, **row))


def test_readers_do_not_wait_for_writers(project: Project) -> None:
    with project.writing() as connection:
        connection.execute(insert(settings).values(name="open", value="1"))
        assert project.read_setting("open") is None
    assert project.read_setting("open") == "1"


def test_a_reader_sees_one_moment(project: Project) -> None:
    """Counts that are read one after the other belong together."""

    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(settings)).scalar_one()

    with project.reading() as connection:
        before = count(connection)
        project.write_setting("new", "1")
        assert count(connection) == before
    with project.reading() as connection:
        assert count(connection) == before + 1


def test_other_databases_are_refused() -> None:
    for address in ("nonsense", "mysql://u@h/d", "sqlite://", "oracle+x://h/d", "postgres//h", ""):
        with pytest.raises(ComesError, match="is not the address of a database. Give sqlite:///F"):
            open_engine(address)


def test_a_relative_file_lies_in_the_folder(tmp_path: Path) -> None:
    engine: Engine = open_engine("sqlite:///a.db", tmp_path)
    with engine.begin():
        pass
    engine.dispose()
    assert (tmp_path / "a.db").exists()


WRITTEN = Path(__file__).parent / "goldens" / "written_by_1.0.0" / "project"


def test_a_database_of_version_1_0_0_is_copied_before_it_is_brought_up_to_date(
    tmp_path: Path, projects: Projects
) -> None:
    """That it exports the same answers as then is among the goldens."""
    shutil.copytree(WRITTEN, tmp_path / "old")
    project = projects.keep(open_project(tmp_path / "old"))
    [copy] = (tmp_path / "old").glob("answers-backup-*.db")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(WRITTEN / DATABASE)) as own:
        assert list(old.iterdump()) == list(own.iterdump())
    columns = [column["name"] for column in inspect(project.engine).get_columns("answers")]
    assert "hint" in columns
    projects.keep(open_project(tmp_path / "old"))
    assert list((tmp_path / "old").glob("answers-backup-*.db")) == [copy]  # once


ANNOTATED = WRITTEN.parent / "annotated"
FILES = (
    "project",
    "raw.csv",
    *(f"answers.{ending}" for ending in ("csv", "parquet", "npz", "jsonl")),
)


@pytest.mark.parametrize("name", FILES)
def test_what_version_1_0_0_wrote_reads_to_the_same_answers(
    tmp_path: Path, projects: Projects, name: str
) -> None:
    """A project with decisions, notes, control cards, somebody left out, a model's questions and
    names like formulas, and its exports; answers.json has what 1.0.0 itself read of them.
    """
    if name == "project":
        shutil.copytree(ANNOTATED / name, tmp_path / name)
        dataset = collect_answers(projects.keep(open_project(tmp_path / name)))
    else:
        dataset = open_dataset(ANNOTATED / name)
    read = dataset.known_answers()
    wanted = json.loads((ANNOTATED / "answers.json").read_text(encoding="utf-8"))[name]
    assert dataset.items == wanted["items"]
    assert list(dataset.label_names) == wanted["labels"]
    assert np.asarray(read.codes).tolist() == wanted["codes"]
    assert (None if read.chosen is None else read.chosen.tolist()) == wanted["chosen"]
    said = read.annotations
    assert (said is None) == (wanted["said"] is None)
    if said is not None:
        rows = zip(said.row, said.label, said.person, said.code, strict=True)
        told = [[int(i), int(j), said.people[who], int(code)] for i, j, who, code in rows]
        assert sorted(told) == wanted["said"]


def test_a_database_that_cannot_be_copied_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(WRITTEN, tmp_path / "old")
    failing = Mock(side_effect=OSError("No space left"))
    monkeypatch.setattr("comes.annotate.schema.os.replace", failing)
    with pytest.raises(ComesError, match=r"copied before it is changed; the copy failed: No space"):
        open_project(tmp_path / "old")
    with closing(sqlite3.connect(tmp_path / "old" / DATABASE)) as found:
        assert "hint" not in [row[1] for row in found.execute("PRAGMA table_info(answers)")]
    assert sorted(path.name for path in (tmp_path / "old").glob("*backup*")) == []


def test_what_a_database_says_becomes_one_line(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(SQLAlchemyError) as caught, engine.connect() as connection:
        connection.execute(select(items))
    engine.dispose()
    message = str(explain(caught.value, "news"))
    assert message == "the database of news does not answer: no such table: items"


def test_a_project_of_an_earlier_version_opens(projects: Projects) -> None:
    project = projects.make()
    before = dump(project)
    with project.writing() as connection:
        for name in ("notes", "people", "links"):
            connection.execute(text(f"DROP TABLE {name}"))
        for column in ("probability", "known"):
            connection.execute(text(f"ALTER TABLE cards DROP COLUMN {column}"))
        connection.execute(text("ALTER TABLE classes DROP COLUMN question"))
    again = open_project(project.folder)
    try:
        assert {name: len(rows) for name, rows in dump(again).items()} == {
            name: len(rows) for name, rows in before.items()
        }
        with again.reading() as connection:
            assert connection.execute(select(cards.c.probability).limit(1)).scalar() is None
    finally:
        again.engine.dispose()


# Projects


AWKWARD = [
    "Ünïcödé 中文 🦓",
    'it\'s "quoted" `ticked`',
    "two\nlines\r\nand a tab\t",
    "comma, semicolon; pipe|",
    "x" * 3000,
    "שלום \u202e reversed",
    "  spaces around  ",
    "NA",
    "007",
    "<script>alert(1)</script>",
    "'; DROP TABLE cards; --",
    "%s %(name)s :name ?",
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with texts, pictures and classes."""
    (tmp_path / "texts.csv").write_text("item,text\na,rain\nb,goal\nc,\n")
    (tmp_path / "classes.txt").write_text("sport\n\n  weather  \n")
    (tmp_path / "sky.txt").write_text("sky\n")
    save_images(tmp_path / "photos", ["b.png", "inner/a.jpg", ".hidden.png"])
    (tmp_path / "photos" / "notes.md").write_text("no picture")
    return tmp_path


Create = Callable[..., Any]


@pytest.fixture
def create(home: Path, projects: Projects) -> Create:
    """Make a project of files in the folder."""

    def make(items: str = "texts.csv", classes: str = "classes.txt", **options: Any) -> Any:
        options = {"rate": 1.0, **options}
        folder = home / options.pop("folder", "project")
        return projects.keep(create_project(folder, home / items, home / classes, **options))

    return make


def shown(project: Any) -> list[tuple[str, str | None, str, str]]:
    """Return what is asked, as a browser gets it."""
    found = []
    desk = Desk(project)
    while asked := desk.ask():
        found += [
            (card["name"], card["text"], card["class"], card["description"]) for card in asked
        ]
        desk.send(*(new_answer(card["card"], "no") for card in asked))
    return sorted(found, key=lambda row: (row[2], row[0]))


def test_texts_of_a_csv(create: Create) -> None:
    project = create()
    assert (project.kind, project.source, project.images) == ("text", None, None)
    assert project.class_names == ["sport", "weather"]
    rows = [("a", "rain"), ("b", "goal"), ("c", "")]
    assert shown(project) == [(*row, c, "") for c in ("sport", "weather") for row in rows]


def test_texts_of_parquet_without_names_are_numbered(create: Create, home: Path) -> None:
    pd.DataFrame({"text": ["x", None, "z"]}).to_parquet(home / "texts.parquet")
    project = create("texts.parquet")
    assert project.item_names == ["1", "2", "3"]
    assert [row[1] for row in shown(project)[:3]] == ["x", "", "z"]


def test_names_that_are_numbers_are_written_as_a_person_would(create: Create, home: Path) -> None:
    """So that they meet those of features, which are read the same way."""
    pd.DataFrame({"id": [7.0, 8.0], "text": ["x", "y"]}).to_parquet(home / "texts.parquet")
    assert create("texts.parquet").item_names == ["7", "8"]
    (home / "texts.csv").write_text("id,item,text\n1,007,x\n2,7,NA\n")  # item comes first
    project = create(folder="other")
    assert project.item_names == ["007", "7"] and shown(project)[1][1] == "NA"


def test_pictures_of_a_folder(create: Create, home: Path) -> None:
    project = create("photos")
    assert (project.kind, project.source) == ("image", home / "photos")
    assert project.item_names == ["b.png", "inner/a.jpg"]
    assert project.images is not None and project.images[0].shape == (2, 2, 3)


def test_pictures_of_a_zip(create: Create, home: Path) -> None:
    with zipfile.ZipFile(home / "photos.zip", "w") as archive:
        archive.write(home / "photos" / "b.png", "top/b.png")
        archive.write(home / "photos" / "b.png", "top/a.png")
        archive.writestr("__MACOSX/top/._a.png", b"litter")
    project = create("photos.zip")
    assert (project.kind, project.item_names) == ("image", ["top/a.png", "top/b.png"])
    assert project.images is not None and project.images[1].shape == (2, 2, 3)


def test_pictures_that_a_table_names(create: Create, home: Path) -> None:
    """Also if there is a column of texts: whoever says where pictures are wants pictures."""
    for column in ("item", "image", "file", "filename", "path", "id"):
        (home / "some.csv").write_text(f"{column},text\ninner/a.jpg,about\n")
        project = create("some.csv", images=home / "photos", folder=f"of-{column}")
        assert (project.kind, project.item_names) == ("image", ["inner/a.jpg"]), column
        assert project.images is not None and project.images[0].shape == (2, 2, 3)


def test_the_pictures_are_found_from_anywhere(
    create: Create, home: Path, monkeypatch: pytest.MonkeyPatch, projects: Projects
) -> None:
    monkeypatch.chdir(home)
    projects.keep(create_project("project", "photos", "classes.txt", rate=1))
    monkeypatch.chdir("/")
    project = projects.keep(open_project(home / "project"))
    assert project.images is not None and project.images[0].shape == (2, 2, 3)


def test_classes_with_descriptions(create: Create, home: Path) -> None:
    for column, ending in (("class", "csv"), ("label", "parquet"), ("name", "csv")):
        table = pd.DataFrame({column: ["sport", "NA"], "description": ["balls, and so on", None]})
        path = home / f"classes.{ending}"
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
        project = create(classes=path.name, folder=f"of-{column}")
        assert project.class_names == ["sport", "NA"], column
        described = {("sport", "balls, and so on"), ("NA", "")}
        assert {row[2:] for row in shown(project)} == described, column


def test_classes_in_a_file_with_a_byte_order_mark(create: Create, home: Path) -> None:
    (home / "classes.txt").write_bytes("\ufeffsport\r\nÄpfel\r\n".encode())
    assert create().class_names == ["sport", "Äpfel"]


def test_awkward_names_come_back_as_they_are(projects: Projects) -> None:
    project = projects.make(AWKWARD, AWKWARD[::-1])
    assert project.item_names == AWKWARD
    assert project.class_names == AWKWARD[::-1]
    assert {(row[0], row[2]) for row in shown(project)} == {
        (a, b) for a in AWKWARD for b in AWKWARD
    }


def test_a_project_remembers_how_it_was_drawn(projects: Projects) -> None:
    options: dict[str, Any] = {"rate": 0.5, "seed": 3, "overlap": 0.25, "by": "item"}
    project = projects.make(10, **options)
    assert {name: project.read_setting(name) for name in options} == {
        "rate": "0.5",
        "seed": "3",
        "overlap": "0.25",
        "by": "item",
    }
    drawn = sample_cards(10, 2, 0.5, seed=3, overlap=0.25, by="item")
    found = [(row.item_id - 1, row.class_id - 1, row.turn) for row in all_cards(project)]
    assert found == list(zip(*(column.tolist() for column in drawn), strict=True))
    assert {row.source for row in all_cards(project)} == {"random"}
    assert project.count_cards() == len(found)


def test_a_project_opens_again(projects: Projects) -> None:
    made = projects.make()
    made.write_setting("colour", "blue")
    made.write_setting("colour", "green")
    again = projects.keep(open_project(made.folder))
    assert again.item_names == made.item_names
    assert (again.name, again.kind, again.read_setting("colour")) == ("project", "text", "green")
    assert again.read_setting("shape") is None


def test_a_project_can_be_moved(projects: Projects) -> None:
    made = projects.make()
    Desk(made).answer_all()
    made.engine.dispose()
    made.folder.rename(projects.folder / "moved")
    moved = projects.keep(open_project(projects.folder / "moved"))
    assert Desk(moved).progress()["mine"] == 12


def test_nobody_else_reads_the_address_of_the_database(projects: Projects) -> None:
    """It may hold a password."""
    made = projects.make()
    assert stat.S_IMODE((made.folder / DESCRIPTION).stat().st_mode) == 0o600


def test_an_empty_folder_is_taken(create: Create, home: Path) -> None:
    (home / "project").mkdir()
    assert create().name == "project"


# What goes wrong


BAD_FILES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "texts.csv",
        "item,text\na,x\na,y\n",
        {},
        "texts.csv has 'a' twice. Give each item its",
    ),
    ("texts.csv", "item,text\n,x\nb,y\n", {}, "texts.csv has an empty name. Give each item"),
    ("texts.csv", "item,text\n", {}, "texts.csv has columns but no rows"),
    ("texts.csv", "item,body\na,x\n", {}, "has neither a column text .* it has 'item', 'body'"),
    ("texts.csv", "text\nx\n", {"images": "photos"}, "nor names of images .* it has 'text'"),
    (
        "texts.csv",
        "item\nz.png\n",
        {"images": "photos"},
        "1 of 1 images are not in photos: 'z.png'",
    ),
    ("texts.csv", "item\n../b.png\n", {"images": "photos"}, "is not a name inside the folder"),
    ("texts.csv", "item\nb.png\n", {"images": "nowhere"}, "is neither a folder nor a .zip"),
    ("texts.csv", "item,text\na,x\0y\n", {}, "it holds NUL characters"),
    ("classes.txt", "", {}, "classes.txt has no class. Write the name of one on every line"),
    ("classes.txt", "sky\nsea\nsky\n", {}, "label names must differ; got 'sky' more than once"),
    ("classes.csv", "label\nsky\nsky\n", {}, "label names must differ; got 'sky' more than once"),
    ("classes.csv", "label,description\n,x\n", {}, "label names must not be empty; number 0 is"),
    ("classes.csv", "klass\nsky\n", {}, "no column class or label or name; it has 'klass'"),
    ("classes.csv", "label\n", {}, "classes.csv has columns but no rows"),
]


def test_files_that_cannot_be_used(create: Create, home: Path) -> None:
    texts = (home / "texts.csv").read_text()
    for file, content, options, message in BAD_FILES:
        (home / "texts.csv").write_text(texts)
        (home / file).write_text(content)
        if "images" in options:
            options = {"images": home / options["images"]}
        with pytest.raises(ComesError, match=message):
            create(classes=file if file.startswith("classes") else "sky.txt", **options)
        assert not (home / "project").exists(), message
        assert not list(home.glob(".project*")), message


def test_paths_that_cannot_be_used(create: Create, home: Path) -> None:
    (home / "empty").mkdir()
    (home / "broken.zip").write_bytes(b"PK, but no archive")
    for source, listed, message in (
        ("none.csv", "classes.txt", r"none\.csv does not exist\. Correct the path of the items"),
        ("none.zip", "classes.txt", r"none\.zip does not exist\. Correct the path of the items"),
        ("none", "classes.txt", r"none does not exist\. Correct the path of the items"),
        (
            "classes.txt",
            "classes.txt",
            "items cannot be read from .* Give a folder or .zip",
        ),
        ("texts.csv", "none.txt", r"none\.txt cannot be read as text: .*No such file"),
        ("texts.csv", "none.csv", r"none\.csv cannot be read as csv: \[Errno 2\]"),
        ("texts.csv", "photos", "photos cannot be read"),
        ("texts.csv", "photos/b.png", r"b\.png cannot be read"),
        ("empty", "classes.txt", "empty has no picture"),
        ("broken.zip", "classes.txt", "broken.zip cannot be read as zip"),
    ):
        with pytest.raises(ComesError, match=message) as caught:
            create(source, listed)
        assert "\n" not in str(caught.value)


def test_a_file_whose_name_is_no_text(create: Create, home: Path) -> None:
    odd = home / "photos" / os.fsdecode(b"caf\xe9.png")
    os.rename(home / "photos" / "b.png", odd)
    with pytest.raises(ComesError, match=r"'caf\\udce9.png' holds bytes that are not text. Rename"):
        create("photos")


def test_options_that_cannot_be_used_leave_nothing_behind(create: Create, home: Path) -> None:
    with pytest.raises(ComesError, match="a rate of 0.1 asks about none of 3 items"):
        create(rate=0.1)
    with pytest.raises(ComesError, match=r"overlap must be in \[0, 1\]; got 2"):
        create(overlap=2.0)
    assert not (home / "project").exists()


def test_a_folder_that_holds_something_is_left_alone(create: Create, home: Path) -> None:
    made = create()
    Desk(made).answer_all()
    with pytest.raises(ComesError, match="exists and holds something else .* would be lost"):
        create()
    assert Desk(made).progress()["mine"] == 6
    with pytest.raises(ComesError, match=r"texts\.csv is a file; expected the name of a folder"):
        create(folder="texts.csv")
    with pytest.raises(ComesError, match="is not a folder. Create it first"):
        create(folder="not/there")


def test_a_database_holds_one_project(create: Create, home: Path, projects: Projects) -> None:
    address = f"sqlite:///{home / 'shared.db'}"
    made = create(database=address)
    Desk(made).answer_all()
    with pytest.raises(ComesError, match="the database already holds a project. Give each"):
        create(database=address, folder="second")
    assert not (home / "second").exists()
    again = projects.keep(open_project(home / "project"))
    done = {"total": 6, "done": 6, "mine": 6, "seconds": 0.0, "left": 0}
    assert Desk(again).progress() == done


def test_an_address_that_leads_nowhere(create: Create, home: Path) -> None:
    for address, message in (
        ("mysql://u@h/d", "is not the address of a database. Give sqlite:///FILE or postgresql://"),
        ("answers.db", "'answers.db' is not the address of a database"),
        ("postgresql://u:secret@127.0.0.1:1/d", "the database of project does not answer: "),
        ("sqlite:////no/such/folder/a.db", "the database of project does not answer: unable to"),
    ):
        with pytest.raises(ComesError, match=message) as caught:
            create(database=address)
        assert "secret" not in str(caught.value) and "\n" not in str(caught.value)
        assert not (home / "project").exists()


def test_a_folder_that_is_no_project(tmp_path: Path) -> None:
    described = ["", "[]", "{}", "null", '{"kind": "text"}', '{"kind": "text"', "\xff"]
    for description in (None, *described):
        if description is not None:
            (tmp_path / DESCRIPTION).write_bytes(description.encode("latin-1"))
        with pytest.raises(ComesError, match="is not the folder of a project: .* comes annotate i"):
            open_project(tmp_path)


def test_a_project_whose_answers_are_gone(projects: Projects) -> None:
    folder = projects.make().folder
    (folder / DATABASE).unlink()
    with pytest.raises(ComesError, match=r"has no answers\.db, which holds its answers"):
        open_project(folder)
    assert not (folder / DATABASE).exists()
    (folder / DATABASE).write_bytes(b"this is no database" * 100)
    with pytest.raises(ComesError, match="the database of project does not answer: file is not"):
        open_project(folder)


def test_a_project_whose_server_is_away(projects: Projects) -> None:
    folder = projects.make().folder
    described = json.loads((folder / DESCRIPTION).read_text())
    described["database"] = "postgresql://u:secret@127.0.0.1:1/d"
    (folder / DESCRIPTION).write_text(json.dumps(described))
    with pytest.raises(ComesError, match="the database of project does not answer") as caught:
        open_project(folder)
    assert "secret" not in str(caught.value)
