"""What methods see of drawn answers, and what they are told of the rates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from comes.answers import Answers, LongAnswers
from comes.errors import ComesError
from comes.experiment import tasks as fitting
from comes.experiment.config import AnswerSpec, DataSpec, Sees, TaskSpec, read_experiment
from comes.experiment.results import read_results
from comes.experiment.tasks import (
    draw_labels,
    draw_repeats,
    load_data,
    run_task,
    tasks_of,
    true_rates,
)
from comes.generation import simulate_answers
from results import make_result, write_results
from small_experiments import DATA, SETTINGS, small_experiment, small_tasks

ANSWERS = {"asked_rate": 0.3, "no_rate": 0.7, "yes_rate": 0.6}
SCENES = [{"name": "scenes", "rows": 300}]
PEOPLE = {"people": {"ann": (0.9, 0.8), "bob": (0.5, 0.4)}, "people_per_pair": 2}


def make_spec(sees: Sees | None = "all", **answers: Any) -> TaskSpec:
    data = DataSpec(name="scenes", rows=300, answers=AnswerSpec(**ANSWERS | answers))
    return TaskSpec(data=data, method="bce", folds=3, sees=sees)


DATASET = load_data(make_spec().data)[0]
ROWS = np.random.default_rng(0).permutation(300)[:200]


def draw(sees: Sees | None, **answers: Any) -> Any:
    return draw_labels(make_spec(sees, **answers), DATASET, ROWS, seed=3)


def test_all_methods_see_the_same_answers_or_less_of_them() -> None:
    relevant = DATASET.known_relevant()
    drawn = simulate_answers(relevant[ROWS], **ANSWERS, seed=3)  # type: ignore[arg-type]
    every = draw("all")
    assert isinstance(every, Answers) and every.shape == relevant.shape
    np.testing.assert_array_equal(every[ROWS].codes, drawn.codes)
    others = np.setdiff1d(np.arange(300), ROWS)
    assert not every.codes[others].any()  # nobody is asked about rows to test on
    hidden = draw("no_maybe")
    np.testing.assert_array_equal(hidden.asked, every.asked)
    np.testing.assert_array_equal(hidden.excluded, every.excluded)
    assert every.confirmed.any() and not hidden.confirmed.any()
    np.testing.assert_array_equal(draw("candidates"), every.candidates)
    truth = draw("truth")
    np.testing.assert_array_equal(truth[ROWS], relevant[ROWS])
    assert truth[others].all()


def test_what_several_people_say_is_kept_and_their_yes_hidden() -> None:
    every, hidden = draw("all", **PEOPLE), draw("no_maybe", **PEOPLE)
    assert isinstance(every.annotations, LongAnswers) and every.annotations.people == ("ann", "bob")
    assert set(every.annotations.row) <= set(ROWS)
    assert len(every.annotations) == 2 * every.asked.sum() == len(hidden.annotations)
    assert 2 in every.annotations.code and 2 not in hidden.annotations.code
    np.testing.assert_array_equal(draw("candidates", **PEOPLE), every.candidates)


def test_answers_that_depend_on_the_features_are_drawn_with_them() -> None:
    even = draw("all").codes
    for strength in ("doubt_strength", "asked_strength"):
        assert (draw("all", **{strength: 5.0}).codes != even).any()


def test_true_rates_are_those_that_were_drawn_with() -> None:
    assert true_rates(make_spec("all")) == {"no_rate": 0.7, "yes_rate": 0.6}
    assert true_rates(make_spec("no_maybe")) == {"no_rate": 0.7, "yes_rate": 0.0}
    assert true_rates(make_spec("candidates")) == {"exclude_rate": pytest.approx(0.21)}
    assert true_rates(make_spec("truth")) == {"exclude_rate": 1.0}
    for case, rate, expected in (("a", 0.7, 0.3), ("b", 0.2, 0.2), ("independent", None, 0.1)):
        data = DataSpec(name="scenes", case=case, rate=rate)  # type: ignore[arg-type]
        found = true_rates(TaskSpec(data=data, method="likelihood", folds=3))
        assert found == {"exclude_rate": pytest.approx(expected)}
    for data in (DataSpec(name="scenes", case="one"), DataSpec(name="mirflickr5000")):
        with pytest.raises(ComesError, match=r"exclude rate of .* is not known"):
            true_rates(TaskSpec(data=data, method="likelihood", folds=3))
    with pytest.raises(ComesError, match="people have their own rates"):
        true_rates(make_spec("all", **PEOPLE))


def test_answers_of_the_experiment_are_those_of_data_that_have_none() -> None:
    data = [*SCENES, SCENES[0] | {"answers": {"asked_rate": 0.5}}, *DATA]
    tasks = small_tasks(data=data, answers=ANSWERS, methods=[{"method": "bce"}])
    assert [task.names.data for task in tasks] == [
        "scenes, asked 0.3, no 0.7, yes 0.6",
        "scenes, asked 0.5, no 0.8, yes 0.8",
        "scenes, case b 0.5",
    ]
    rates = [task.spec.data.answers and task.spec.data.answers.asked_rate for task in tasks]
    assert rates == [0.3, 0.5, None]
    assert [task.spec.sees for task in tasks] == ["all", "all", None]


def test_titles_say_what_was_asked_and_said() -> None:
    for answers, title in (
        ({"yes_rate": 0.0, "mistake_rate": 0.05}, "asked 0.1, no 0.8, yes 0, mistakes 0.05"),
        ({"asked_strength": 2.0}, "asked 0.1, no 0.8, yes 0.8, asked strength 2"),
        (PEOPLE, "asked 0.1, people 2"),
    ):
        (task,) = small_tasks(data=SCENES, answers=answers, methods=[{"method": "bce"}])
        assert task.names.data == f"scenes, {title}"


def test_what_methods_see_and_know_makes_tasks_of_their_own_on_the_same_draws() -> None:
    methods = [
        {"method": "bce", "label": sees, "sees": sees, "answer_rates": rates}
        for sees in ("all", "no_maybe", "candidates", "truth")
        for rates in (("true", "estimated") if sees == "all" else ("estimated",))
    ]
    methods[1]["label"] = "estimated"
    tasks = small_tasks(data=SCENES, answers=ANSWERS, methods=methods)
    assert len({task.key for task in tasks}) == 5
    assert [task.spec.answer_rates for task in tasks] == ["true", None, None, None, None]
    asked = [next(draw_repeats(t.spec, DATASET)).labels for t in tasks[:3]]
    assert all((a.asked == asked[0].asked).all() for a in asked)


def test_classifiers_are_given_what_they_may_see_and_know(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[dict[str, Any], Any]] = []

    def spy(classifiers: Any, X: Any, labels: Any, rows: Any, **options: Any) -> Any:
        given.append((classifiers[0].get_params(), labels[0]))
        raise InterruptedError

    monkeypatch.setattr(fitting, "fit_together", spy)
    for sees, rates, told in (
        ("all", "true", {"no": 0.7, "yes": 0.6}),
        ("no_maybe", "true", {"no": 0.7, "yes": 0.0}),
        ("candidates", "true", {"exclude": pytest.approx(0.21)}),
        ("all", "estimated", None),
    ):
        method = {"method": "likelihood", "sees": sees, "answer_rates": rates}
        changes = {"answers": ANSWERS, "class_prior": "estimated", "methods": [method]}
        (task,) = small_tasks(data=SCENES, **changes)
        with pytest.raises(InterruptedError):
            run_task(task)
        settings, labels = given.pop()
        assert settings["rates"] == told
        assert settings["class_prior"] is None
        assert isinstance(labels, Answers) == (sees != "candidates")


def test_methods_learn_from_what_they_see() -> None:
    """With everything asked and sure, all answers are worth as much as the truth."""
    everything = {"asked_rate": 1.0, "no_rate": 1.0, "yes_rate": 1.0}
    settings = SETTINGS | {"epochs": 20, "prior_weight": 0.0}
    changes = {"settings": settings, "answer_rates": "true", "first_folds": 1}
    for method in ("likelihood", "comes-hl", "bce"):
        ways = [{"method": method, "label": sees, "sees": sees} for sees in ("all", "truth")]
        answered, supervised = (
            run_task(task).values("average_precision").mean()
            for task in small_tasks(data=SCENES, answers=everything, methods=ways, **changes)
        )
        assert answered == pytest.approx(supervised, abs=1e-3), method


def test_old_experiments_keep_their_keys() -> None:
    """Neither of the new fields is part of a spec that leaves them unset."""
    spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    assert spec.key == "55cf8858d1e5c08f"
    (task,) = small_tasks(methods=[{"method": "bce"}], answer_rates="estimated")
    assert task.spec.sees is None and task.spec.answer_rates is None


def test_a_result_with_answers_is_read_as_it_was_written(tmp_path: Path) -> None:
    spec = make_spec("no_maybe", **PEOPLE)
    full = make_result(data_spec=spec.data, sees="no_maybe", answer_rates="true")
    (again,) = read_results([write_results(tmp_path, [full])])
    assert again == full and again.spec.key == full.spec.key


def test_a_mistake_is_found_before_anything_is_run() -> None:
    mistakes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"answers": {"asked_rat": 0.1}}, "asked_rat"),
        ({"answers": {"no_rate": 1.5}}, "less than or equal to 1"),
        ({"answers": {"people": {"ann": (0.5, 2)}}}, "less than or equal to 1"),
        ({"answers": {"people_per_pair": 2}}, "people_per_pair is 2: name as many people"),
        ({"data": [DATA[0] | {"answers": {}}]}, "a case or answers, not both"),
        ({"data": DATA, "methods": [{"method": "bce", "sees": "all"}]}, "sees needs answers"),
        ({"methods": [{"method": "bce", "sees": "everything"}]}, "Input should be 'all'"),
    )
    for changes, message in mistakes:
        with pytest.raises(ValidationError, match=message):
            small_experiment(**{"data": SCENES, "answers": ANSWERS} | changes)


def test_a_file_with_answers_is_read_and_label_seeds_may_repeat_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = "name = 'mine'\nlabel_seeds = 2\n[answers]\nasked_rate = 0.2\n"
    text += "[[data]]\nname = 'scenes'\n[[methods]]\nmethod = 'bce'\nsees = 'candidates'\n"
    path.write_text(text)
    (task,) = tasks_of(read_experiment(path))
    assert task.name == "bce on scenes, asked 0.2, no 0.8, yes 0.8"
    one, two = draw_repeats(task.spec, DATASET)
    assert (one.test == two.test).all() and (one.labels != two.labels).any()
    path.write_text(text.replace("asked_rate", "asked_rte"))
    wrong = r"answers.asked_rte is not a key .* mean 'asked_rate'"
    with pytest.raises(ComesError, match=wrong):
        read_experiment(path)
    path.write_text(text.replace("'scenes'\n", "'scenes'\nanswers = { asked_rte = 0.1 }\n"))
    with pytest.raises(ComesError, match=f"data.0.{wrong}"):
        read_experiment(path)
