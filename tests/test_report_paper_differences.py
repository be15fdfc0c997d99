"""What a report says of how an experiment was run, beside what the paper says."""

from dataclasses import replace
from typing import Any

from comes.experiment.config import AnswerSpec, DataSpec, SearchSpec
from comes.experiment.results import Result
from comes.report.paper import describe_run, list_notes
from results import make_result


def describe(*results: Result) -> dict[str, list[str]]:
    return {what: said for what, *said in describe_run(results)}


def test_settings_stand_beside_those_of_the_paper() -> None:
    search = SearchSpec(learning_rate=(0.1,), held_out=0.2)
    settings = {"epochs": 20, "reduction": "sum"}
    found = describe(
        make_result(data="YeastCC", settings=settings, class_prior="estimated", search=search)
    )
    assert found["repeats"] == ["3 of 3 folds", "10 of 10 folds"]
    assert found["class prior"] == ["estimated", "true"]
    assert found["epochs"] == ["20", "200"] and found["reduction"] == ["sum", "not said"]
    assert found["learning rate"] == ["searched", "0.005"]
    told = "learning rate, by trained_risk, on what was said about 20% of the training rows"
    assert found["search"] == [told, "not said"]
    assert describe(make_result())["epochs"] == ["200"]  # not the paper's data
    assert describe(make_result(folds=None, label_seeds=3))["repeats"] == ["3 label seeds"]
    assert describe(make_result(folds=10, first_folds=3))["repeats"] == ["3 of 10 folds"]


def test_methods_are_named_where_they_differ() -> None:
    default: dict[str, Any] = {"training": "default"}
    found = describe(
        make_result("likelihood", **default),
        make_result("bce", settings={"epochs": 9, "model": "linear"}),
        make_result("gdf"),
    )
    assert found["epochs"] == ["by what was said (likelihood); 9 (bce); 200 (gdf)"]
    assert found["optimizer"] == ["adam (likelihood); sgd (others)"]
    assert found["model"] == ["mlp (others); linear (bce)"]
    assert found["batch size"] == ["64 (likelihood); 256 (others)"]


def test_experiments_on_images_have_settings_of_their_own() -> None:
    seeds: dict[str, Any] = {"folds": None, "label_seeds": 3, "images": True}
    found = describe(make_result(data="VOC2012", settings={"weights": "a", "epochs": 2}, **seeds))
    assert found["weights"] == ["a", "imagenet"] and found["epochs"] == ["2", "30"]
    assert "momentum" not in found


def test_what_was_asked_and_said_and_seen_is_said() -> None:
    answers = AnswerSpec(asked_rate=0.1, no_rate=0.8, yes_rate=0.6)
    data = DataSpec(name="photos", answers=answers)
    found = describe(
        make_result(data_spec=data, sees="all", answer_rates="true"),
        make_result("gdf", data_spec=data, sees="candidates"),
    )
    assert found["drawn"] == ["answers: asked 0.1, no 0.8, yes 0.6"]
    assert found["sees"] == ["all (bce); candidates (gdf)"]
    assert found["answer rates"] == ["true (bce); estimated (gdf)"]
    assert "drawn" not in describe(make_result())


def test_ties_and_edges_of_a_search_are_said() -> None:
    found = make_result()
    edge = ("learning_rate 0.1 is the least tried",)
    told = [replace(r, tied=k, edges=edge * (k < 1)) for k, r in enumerate(found.repeats)]
    text = " ".join(list_notes([replace(found, repeats=tuple(told))]))
    n = len(told)
    assert f"Of {n} choices, {n - 1} were level with others" in text
    assert "and 1 have the least or greatest learning rate that was tried." in text


def test_parts_of_data_and_rules_that_were_read_off_test_rows_are_said() -> None:
    flooded = {"flood_level": "auto"}
    (part, rule, _) = list_notes([make_result("comes-rl", "mirflickr5000", settings=flooded)])
    assert "5000 of the 10433 rows of mirflickr" in part
    assert "read off test rows of mirflickr5000" in rule
    for data, level in (("YeastCC", {"flood_level": 2.0}), ("photos", flooded)):
        assert len(list_notes([make_result("comes-rl", data, settings=level)])) == 1
