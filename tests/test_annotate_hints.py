"""Whether an answer was given in sight of a model's guess is stored with it."""

from pathlib import Path

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from annotation_site import HERE, TAB, join, lease, text_project
from comes.annotate.schema import answers
from comes.annotate.web.server import make_app


@pytest.mark.parametrize(
    ("sent", "status", "stored"),
    [
        ({"hint": 0.83}, 200, 0.83),
        ({"hint": None}, 200, None),
        ({}, 200, None),
        ({"hint": 1.2}, 422, None),
        ({"hint": "0.8"}, 422, None),
    ],
)
def test_the_guess_that_a_card_showed_is_stored(
    tmp_path: Path, sent: dict[str, object], status: int, stored: float | None
) -> None:
    project = text_project(tmp_path)
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        card = lease(client)[0]["card"]
        answer = {"card": card, "answer": "yes", "key": "a-key-of-mine", "seconds": 2.0, **sent}
        reply = client.post("/api/answers", json={"tab": TAB, "answers": [answer]})
    assert reply.status_code == status
    with project.reading() as connection:
        found = connection.execute(select(answers.c.hint)).scalars().all()
    assert found == ([stored] if status == 200 else [])
    project.engine.dispose()
