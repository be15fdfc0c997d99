"""What the examples in docstrings of `comes.annotate` find: a project."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def project_of_examples(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give examples a ``project`` of two texts and two classes; one question is answered."""
    if not request.node.name.startswith("comes.annotate"):
        yield
        return
    from comes.annotate import create_project, import_answers

    home = request.getfixturevalue("tmp_path")
    (home / "texts.csv").write_text("item,text\nrain,It rains.\ngoal,They scored.\n")
    (home / "classes.txt").write_text("sport\nweather\n")
    (home / "answers.csv").write_text("item,label,answer\nrain,sport,no\n")
    sources = home / "texts.csv", home / "classes.txt"
    project = create_project(home / "news", *sources, rate=1)
    import_answers(project, home / "answers.csv")
    request.getfixturevalue("doctest_namespace")["project"] = project
    yield
    project.engine.dispose()
