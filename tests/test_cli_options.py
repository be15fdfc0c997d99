"""What options mean to the library, what commands print, and what errors advise."""

import inspect
import json
import math
from typing import Any

import pytest
import typer

from comes.cli import app
from comes.cli.model import training_options
from comes.cli.options import METHOD_NAMES, parse_numbers, parse_pairs, reading_options, split_names
from comes.cli.printing import print_json, print_rows
from comes.datasets import ReadOptions
from comes.errors import ComesError
from comes.methods import DEFAULT, METHODS
from command_line import command_runner


def test_every_reading_option_is_in_the_reading() -> None:
    assert reading_options() == ReadOptions()
    options: dict[str, Any] = {
        "labels": "has_*, has no",
        "relevant": "is_*",
        "ignore": "id",
        "text": "body,title",
        "category": "zip",
        "number": "price",
        "date": "sold",
        "item": "photo",
        "long": "who,what,said",
        "answers": "0=no,1 = maybe",
        "images": "photos/",
        "skip_broken": True,
        "complementary": True,
        "separator": "|",
        "label_names": "sky,sea",
        "difficult": "relevant",
        "unannotated": "keep",
    }
    assert reading_options(**options) == ReadOptions(
        labels=["has_*", "has no"],
        relevant=["is_*"],
        ignore=["id"],
        text=["body", "title"],
        category=["zip"],
        number=["price"],
        date=["sold"],
        item="photo",
        long=["who", "what", "said"],
        words={"0": "no", "1": "maybe"},
        images="photos/",
        skip_broken=True,
        labels_are="complementary",
        separator="|",
        label_names=["sky", "sea"],
        difficult="relevant",
        unannotated="keep",
    )
    assert reading_options(features="X.npz", candidates=True) == ReadOptions(
        features="X.npz", labels_are="candidates"
    )
    assert reading_options(positives=True) == ReadOptions(labels_are="positives")
    seen = {*options, "features", "candidates", "positives"}
    assert seen == set(inspect.signature(reading_options).parameters)


def test_options_that_repeat_add_up() -> None:
    """Every option that takes several names or numbers."""
    several = 0
    for command in ("fit", "priors", "predict", "evaluate"):
        for option in COMMAND.commands[command].params:  # type: ignore[attr-defined]
            takes_several = "Columns" in (getattr(option, "help", "") or "")
            assert option.multiple or not takes_several, (command, option.name)
            several += takes_several
    assert several >= 20
    reading = reading_options(ignore=["a", "b,c"], long=["who", "what,said"])
    assert reading == ReadOptions(ignore=["a", "b", "c"], long=["who", "what", "said"])


def test_every_training_option_is_a_setting() -> None:
    names = set(inspect.signature(training_options).parameters) - {"settings"}
    given: dict[str, Any] = {name: f"the {name}" for name in names}
    assert training_options(**given) == {
        {"seed": "random_state"}.get(name, name): value for name, value in given.items()
    }


def test_any_other_setting_has_a_name_and_a_value() -> None:
    others = ["flood_level=0.5", "reduction=sum", "augment=null", "hidden=[8, 4]"]
    others += ["no_rate=.5,1", "yes_rate=.5", "weights=a,b.pth"]
    found = training_options(method="comes-rl", settings=others)
    assert (found["flood_level"], found["reduction"]) == (0.5, "sum")
    assert (found["augment"], found["hidden"]) == (None, [8, 4])
    assert (found["no_rate"], found["yes_rate"]) == ([0.5, 1], 0.5)
    assert found["weights"] == "a,b.pth"
    assert training_options(settings=["uses_maybe=false"])["uses_maybe"] is False
    for wrong in ("flood_level", "flood_level=", "=1"):
        with pytest.raises(ComesError, match=f"--set should be NAME=VALUE.*; got '{wrong}'"):
            training_options(settings=[wrong])


def test_help_names_methods_as_they_are() -> None:
    """Their file takes long to import, so that their names stand in the help."""
    assert tuple(METHODS) == METHOD_NAMES
    (option,) = inspect.signature(training_options).parameters["method"].annotation.__metadata__
    assert f"or auto. Default: {DEFAULT}." in option.help


def test_settings_that_were_not_given_are_left_to_the_classifier() -> None:
    assert training_options() == {
        "threshold": "auto",
        "early_stopping": False,
        "device": "auto",
        "random_state": 0,
    }


def test_lists_of_names_and_numbers() -> None:
    assert split_names(None) is None
    assert split_names(" sky,, sea ") == split_names(["sky", "sea"]) == ["sky", "sea"]
    assert parse_numbers(None, "--rate") is None
    assert parse_numbers("0.5", "--rate") == 0.5
    assert parse_numbers([".5", "0.2,1"], "--rate") == [0.5, 0.2, 1]
    for wrong in ("", ",", "half"):
        with pytest.raises(ComesError, match="--rate should be a number, or one per label; got"):
            parse_numbers(wrong, "--rate")


def test_a_word_of_answers_means_one_thing() -> None:
    assert parse_pairs("1=yes, 0=no", "--answers") == {"1": "yes", "0": "no"}
    assert parse_pairs(["1=yes", "0=no"], "--answers") == {"1": "yes", "0": "no"}
    with pytest.raises(ComesError, match="--answers should say once what '1' means; got '1=yes"):
        parse_pairs("1=yes,1=no", "--answers")


def test_a_missing_number_is_a_dash_among_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"data": "a", "mean_rank": math.nan}, {"data": "b", "mean_rank": 1 / 3}])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]
    assert [line.split() for line in lines] == [
        ["data", "mean", "rank"],
        ["a", "–"],
        ["b", "0.333"],
    ]
    assert len({len(line.rstrip()) for line in lines}) == 1  # right-aligned


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"values": [math.nan, math.inf, 0.5], "inner": {"x": math.nan}})
    found = json.loads(capsys.readouterr().out)
    assert found == {"values": [None, None, 0.5], "inner": {"x": None}}


def test_brackets_in_a_table_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"label [x]": "comes[chem]", "other": "[bold]"}])
    told = capsys.readouterr().out
    assert "label [x]" in told and "comes[chem]" in told and "[bold]" in told


COMMAND = typer.main.get_command(app)


def test_brackets_with_options_of_other_commands_are_dropped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "column 'a' must be numeric (got text). Ignore it (--ignore on the command line)."

    def fail(*_: Any, **__: Any) -> None:
        raise ComesError(message)

    monkeypatch.setattr("comes.workflows.predict.export_model", fail)
    monkeypatch.setattr("comes.workflows.data.as_dataset", fail)
    run = command_runner(monkeypatch, capsys)
    assert run("datasets", "--json", "a.csv", code=1).stderr == f"Error: {message}\n"
    told = run("export", "m", "-o", "a.onnx", code=1).stderr
    assert told == "Error: column 'a' must be numeric (got text). Ignore it.\n"
