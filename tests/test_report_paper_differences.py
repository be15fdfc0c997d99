"""What a report says of how an experiment differs from the paper's."""

from dataclasses import replace
from typing import Any

from comes.experiment.config import AnswerSpec, DataSpec, SearchSpec
from comes.experiment.results import Result
from comes.report.paper import describe_run
from results import make_result


def describe(*results: Result) -> str:
    return " ".join(describe_run(results, is_papers=True))


def test_what_differs_from_the_paper_is_said() -> None:
    search = SearchSpec(learning_rate=(0.1,), epochs=(3,), held_out=0.2)
    settings = {"epochs": 20, "reduction": "sum"}
    text = describe(make_result(settings=settings, class_prior="estimated", search=search))
    for part in (
        "epochs: 20; the paper says 200",
        "3 of 3 folds; the paper has 10",
        "estimated from candidates, and the paper takes the true class priors: bce.",
        "by the risk of training, on what was said about 20% of the training rows.",
        "reduction sum; normaliser dataset",
        "batch size 256; momentum 0.9",
    ):
        assert part in text
    own = make_result(settings={"batch_size": 32, "model": "linear"})
    text = describe(own, make_result("gdf"))
    assert "batch size 256, 32;" in text
    assert "model: linear, mlp; the paper says mlp" in text
    assert "on images alone" in describe(make_result(folds=None, label_seeds=3))
    plain = describe(make_result("bce", "mirflickr5000", folds=10))
    assert "5000 of the 10433 rows of mirflickr" in plain
    for absent in ("epochs", "images", "estimated", "folds"):
        assert absent not in plain


def test_ties_and_edges_of_a_search_are_said() -> None:
    search = SearchSpec(
        learning_rate=(0.1, 1.0), epochs=(3,), held_out=0.2, criterion="log_likelihood"
    )
    found = make_result(search=search)
    edge = ("learning_rate 0.1 is the least tried",)
    told = [replace(r, tied=k, edges=edge * (k < 1)) for k, r in enumerate(found.repeats)]
    text = describe(replace(found, repeats=tuple(told)))
    assert "by the likelihood, on what was said about 20% of the training rows." in text
    n = len(told)
    assert f"Of {n} choices, {n - 1} were level with others" in text
    assert "and 1 have the least or greatest learning rate that was tried." in text


def test_what_a_method_trains_with_by_default_is_said() -> None:
    default: dict[str, Any] = {"training": "default"}
    text = describe(
        make_result("likelihood", **default), make_result("bce", settings={"epochs": 9})
    )
    assert "epochs: 9, by what was said; the paper says 200." in text
    assert "optimizer: adam, sgd; the paper says sgd." in text
    assert "batch size 256, 64" in text
    assert "With all defaults of `CandidateClassifier`" in text and "said: likelihood." in text
    assert "all defaults" not in describe(make_result("likelihood"))
    assert "optimizer" not in describe(make_result("likelihood"))  # as published


def test_what_a_stored_result_leaves_out_is_as_published() -> None:
    text = describe(make_result("bce"))
    assert "optimizer" not in text and "epochs" not in text
    assert "batch size 256" in text


def test_a_rule_that_was_read_off_test_rows_is_said() -> None:
    flooded = make_result("comes-rl", settings={"flood_level": "auto"})
    assert "read off test rows of mirflickr5000" in describe(flooded)
    for level in ({}, {"flood_level": 2.0}):
        assert "flood level" not in describe(make_result("comes-rl", settings=level))


def test_the_first_folds_of_ten_are_said() -> None:
    assert "3 of 10 folds" in describe(make_result(folds=10, first_folds=3))


def test_experiments_on_images_differ_in_other_ways() -> None:
    text = describe(
        make_result(folds=None, label_seeds=3, images=True, settings={"weights": "a", "epochs": 2})
    )
    assert "fine-tunes a ResNet-50" in text
    assert "bce: epochs 2, weights a; class prior true." in text
    assert "the paper says" not in text


def test_what_was_asked_and_said_and_seen_is_said() -> None:
    answers = AnswerSpec(asked_rate=0.1, no_rate=0.8, yes_rate=0.6)
    data = DataSpec(name="photos", answers=answers)
    text = describe(
        make_result(data_spec=data, sees="all", answer_rates="true"),
        make_result("gdf", data_spec=data, sees="candidates"),
    )
    said = "asked about with probability 0.1; an irrelevant one that is asked about is called no"
    assert f"{said} with 0.8, a relevant one yes with 0.6" in text
    assert text.count("answers are drawn") == 1
    assert "bce sees all answers, and knows the true rates." in text
    assert "gdf sees candidates, whatever is not no." in text
    people = replace(answers, people={"ann": (0.9, 0.5), "bob": (1.0, 1.0)}, people_per_pair=2)
    text = describe(make_result(data_spec=replace(data, answers=people), sees="all"))
    assert "ann, bob answer with rates of their own" in text
    assert "sees" not in describe(make_result())
