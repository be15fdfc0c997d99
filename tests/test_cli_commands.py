"""Commands from a file to a model, its predictions and its quality."""

import json
import re
import shutil
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import comes
from comes.datasets import Dataset, make_scenes, open_dataset, write_dataset
from comes.datasets.matrices import write_npz
from comes.generation import case_b, simulate_answers
from comes.training import loop
from command_line import Run, command_runner, default_ctrl_c

N = 120
SCENES = make_scenes("train", n=N)
X = SCENES.X[:, :16]  # 0 and 8 among them are constant
RELEVANT = SCENES.known_relevant()
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
SHORT = ("--epochs", "2")
QUICK = ("--method", "bce", *SHORT)  # without a class prior to estimate
KNOWN = ("--set", "exclude_rate=0.5", *SHORT)  # nor a rate
IGNORED = ("--ignore", "id,not_*,is_*")


ctrl_c = pytest.fixture(default_ctrl_c)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenes as npz and as a table."""
    folder = tmp_path_factory.mktemp("scenes")
    dataset = Dataset(X, [f"digit {j}" for j in range(10)], CANDIDATES, RELEVANT)
    write_npz(dataset, folder / "scenes.npz")
    table = pd.DataFrame(X).add_prefix("pixel_")
    for j in range(10):
        table[f"maybe_{j}"] = CANDIDATES[:, j].astype(int)
        table[f"not_{j}"] = (~CANDIDATES[:, j]).astype(int)
        table[f"is_{j}"] = RELEVANT[:, j].astype(int)
    table["id"] = [f"scene {i}" for i in range(N)]
    table.to_csv(folder / "scenes.csv", index=False)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "scenes"))


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in the folder of scenes, and check its exit code."""
    monkeypatch.chdir(folder)
    return command_runner(monkeypatch, capsys)


def test_fit_predict_evaluate_on_an_archive(run: Run, folder: Path) -> None:
    fitted = run("fit", "scenes.npz", "-o", "model", *KNOWN)
    assert f"{N} rows, 16 features, 10 labels" in fitted.stdout
    assert "epochs: 2" in fitted.stdout
    run("predict", "scenes.npz", "-m", "model", "-o", "predictions.csv", "--scores")
    predictions = pd.read_csv(folder / "predictions.csv")
    assert list(predictions.columns)[:3] == ["item", "predicted", "probability:digit 0"]
    assert predictions["item"].tolist() == list(range(N))
    classifier = comes.CandidateClassifier.load(folder / "model")
    scores, chances = classifier.decision_function(X), classifier.predict_proba(X)
    np.testing.assert_allclose(predictions.filter(like="score:"), scores, rtol=1e-5)
    np.testing.assert_allclose(predictions.filter(like="probability:"), chances, atol=1e-6)
    evaluated = run("evaluate", "scenes.npz", "-m", "model")
    assert "average" in evaluated.stdout
    assert "rows without relevant" not in evaluated.stdout  # there are none
    options = ("-m", "model", "--convention", "sklearn", "--json")
    values = json.loads(run("evaluate", "scenes.npz", *options).stdout)
    assert values["convention"] == "sklearn" and values["coverage"] > 1  # counted from 1


def test_a_table_by_either_view_gives_the_same_model(run: Run, folder: Path) -> None:
    ignore = ("--ignore", "id,is_*,not_*")
    run("fit", "scenes.csv", "--labels", "maybe_*", *ignore, "-o", "one", *QUICK)
    ignore = ("--ignore", "id,is_*,maybe_*")
    options = ("--labels", "not_*", "--complementary", *ignore, *QUICK)
    run("fit", "scenes.csv", *options, "-o", "other")
    scores = []
    for model in ("one", "other"):
        run("predict", "scenes.csv", "-m", model, "-o", f"{model}.parquet")
        predictions = pd.read_parquet(folder / f"{model}.parquet").set_index("item")
        assert list(predictions.index[:2]) == ["scene 0", "scene 1"]  # the ids name the items
        scores.append(predictions.drop(columns="predicted").to_numpy())
    np.testing.assert_array_equal(scores[0], scores[1])
    output = run("evaluate", "scenes.csv", "-m", "one", "--relevant", "is_*", "--json")
    values = json.loads(output.stdout)
    assert 0 < values["average_precision"] < 1
    assert values["convention"] == "pml"
    assert values["rows_without_relevant"] == 0


def test_json_of_fit_and_predict(run: Run, folder: Path) -> None:
    prior = pd.DataFrame({"label": [f"digit {j}" for j in range(10)], "class_prior": 0.2})
    prior.to_csv(folder / "priors.csv", index=False)
    for method in ("comes-hl", "comes-rl", "bce"):
        how = ("--method", method, "--priors", "priors.csv", "--json", *SHORT)
        summary = json.loads(run("fit", "scenes.npz", "-o", "m", *how).stdout)
        assert (summary["method"], summary["epochs"]) == (method, 2)
    predicted = run("predict", "scenes.npz", "-m", "m", "-o", "p.csv", "--json")
    assert json.loads(predicted.stdout) == {"rows": N, "labels": 10, "file": "p.csv"}


def test_an_error_is_one_sentence_and_exit_code_1(run: Run) -> None:
    fit = ("fit", "scenes.npz", "-o")
    for arguments, message in (
        (("fit", "scene.npz", "-o", "m"), "scene.npz does not exist.*Did you mean scenes.npz"),
        (("fit", "scenes.csv", "-o", "m"), "which columns hold the labels"),
        (("fit", "scenes.csv", "-o", "m", "--labels", "may"), "there is no column 'may'"),
        ((*fit, "m", "--method", "magic"), "method must be one of comes-hl"),
        ((*fit, "no/m"), "no is not a folder"),
        ((*fit, "."), "the current folder cannot be replaced"),
        (("predict", "scenes.npz", "-m", "m", "-o", "p.csv"), "m is not a saved model"),
        (("evaluate", "scenes.npz", "-m", "scenes.npz"), "not a saved model"),
    ):
        error = run(*arguments, code=1).stderr
        assert error.startswith("Error: ") and error.count("\n") == 1, arguments
        assert re.search(message, error), error


def test_a_mistake_in_the_options_is_exit_code_2(run: Run) -> None:
    run("fit", "scenes.npz", code=2)
    run("fit", "scenes.npz", "-o", "m", "--epochs", "-1", code=2)


def test_warnings_are_one_line(run: Run, folder: Path) -> None:
    candidates = CANDIDATES.copy()
    candidates[:, 3] = True
    names = [f"digit {j}" for j in range(10)]
    write_npz(Dataset(X, names, candidates), folder / "odd.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("fit", "odd.npz", "-o", "m", *KNOWN)
    assert result.stderr.startswith("Warning: No row excludes label 'digit 3'")
    assert all(line.startswith("Warning: ") for line in result.stderr.splitlines())
    assert result.stderr.count("No row excludes") == 1


@pytest.mark.usefixtures("ctrl_c")
def test_a_failed_or_interrupted_fit_leaves_the_model_untouched(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("fit", "scenes.npz", "-o", "model", *QUICK)
    before = (folder / "model" / "model.safetensors").read_bytes()
    run("fit", "scenes.npz", *QUICK, "-o", "model", "--learning-rate", "1e30", code=1)
    real = loop.check_finite

    def interrupting(risk: float, epoch: int) -> float:
        if epoch == 3:
            signal.raise_signal(signal.SIGINT)
        return real(risk, epoch)

    monkeypatch.setattr(loop, "check_finite", interrupting)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        long = ("--method", "bce", "--epochs", "200")
        result = run("fit", "scenes.npz", *long, "-o", "model", code=130)
    assert "Interrupted after 3 of 200 epochs" in result.stderr
    assert "model: model.partial" in result.stdout
    assert (folder / "model" / "model.safetensors").read_bytes() == before
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["model", "model.partial", "scenes.csv", "scenes.npz"]


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set is at hand."""
    monkeypatch.delenv("COMES_DATA", raising=False)
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


def test_datasets_lists_what_is_known_and_what_is_at_hand(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, no_data: None
) -> None:
    names = {row["name"]: row for row in json.loads(run("datasets", "--json").stdout)}
    assert names["YeastBP"] == {
        "name": "YeastBP",
        "rows": 6139,
        "features": 6139,
        "labels": 217,
        "at_hand": False,
        "download": True,
        "about": "proteins, biological processes",
    }
    assert not names["mirflickr"]["download"] and names["CUB:test"]["rows"] == 5794
    (folder / "mirflickr.mat").touch()
    monkeypatch.setenv("COMES_DATA", str(folder))
    text = run("datasets").stdout
    assert re.search(r"mirflickr +10433 +100 +7 +at hand", text)
    assert re.search(r"music_style +6839 +98 +10 +by hand", text)
    assert re.search(r"VOC2007:test +4952 +images +20 +download", text)


def test_datasets_describes_and_checks_a_file(run: Run) -> None:
    text = run("datasets", "scenes.npz").stdout
    assert text.startswith("120 rows, 16 features, 10 labels, ")
    assert "features are constant: 0, 8" in text
    values = json.loads(run("datasets", "show", "scenes.npz", "--json").stdout)
    assert values["data"]["rows"] == 120 and values["findings"]["constant_features"] > 0
    assert values["data"]["labels_are"] == "candidates" and len(values["labels"]) == 10
    assert "data" in json.loads(run("datasets", "--json", "scenes.npz").stdout)


@pytest.mark.filterwarnings("default::comes.errors.ComesWarning")
def test_datasets_convert_there_and_back(run: Run, folder: Path) -> None:
    run("datasets", "convert", "scenes.npz", "-o", "copy.csv")
    run("datasets", "convert", "copy.csv", "-o", "back.npz")
    with np.load(folder / "scenes.npz") as first, np.load(folder / "back.npz") as back:
        for name in ("candidates", "relevant", "label_names"):
            np.testing.assert_array_equal(first[name], back[name])
        np.testing.assert_allclose(first["X"], back["X"], rtol=1e-6)
    result = run("datasets", "convert", "scenes.npz", "-o", "long.csv", "--form", "long", "--json")
    assert json.loads(result.stdout)["file"] == "long.csv"
    assert "Warning: long.csv cannot hold features and relevant" in result.stderr
    assert "should end in" in run("datasets", "convert", "scenes.npz", "-o", "x.doc", code=1).stderr


SIMULATE = ("datasets", "convert", "scenes.npz", "-o", "made.npz", "--simulate")


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_simulated_candidates_are_those_of_the_process(run: Run, folder: Path) -> None:
    result = run(*SIMULATE, "b", "--rate", "0.5", "--seed", "3", "--json")
    assert json.loads(result.stdout)["simulated"] == "b"
    with np.load(folder / "made.npz") as made:
        np.testing.assert_array_equal(made["candidates"], case_b(RELEVANT, 0.5, seed=3))
        np.testing.assert_array_equal(made["relevant"], RELEVANT)
    run("fit", "made.npz", *QUICK, "-o", "model")


def test_every_process_can_be_simulated(run: Run, folder: Path) -> None:
    for case in ("a", "independent", "one", "size", "instance"):
        run(*SIMULATE, case)
        with np.load(folder / "made.npz") as made:
            excluded = ~made["candidates"]
        assert not (excluded & RELEVANT).any(), case
        if case == "one":
            assert (excluded.sum(axis=1) == 1).all()
        elif case != "size":  # a tenth, as in the paper
            assert excluded.sum() / (~RELEVANT).sum() == pytest.approx(0.1, abs=0.03), case


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_simulated_answers_are_those_of_the_process(run: Run, folder: Path) -> None:
    rates: dict[str, Any] = {
        "asked_rate": 0.5,
        "no_rate": 0.9,
        "yes_rate": 0.7,
        "mistake_rate": 0.05,
    }
    rates |= {"doubt_strength": 2, "asked_strength": 1}
    how = [part for name, value in rates.items() for part in ("--set", f"{name}={value}")]
    printed = json.loads(run(*SIMULATE, "answers", *how, "--seed", "3", "--json").stdout)
    expected = simulate_answers(RELEVANT, X, **rates, seed=3)
    assert printed["simulated"] == "answers"
    assert f"{expected.confirmed.sum()} yes" in printed["data"]
    answers = open_dataset(folder / "made.npz").answers
    assert answers is not None
    np.testing.assert_array_equal(answers.codes, expected.codes)
    run("fit", "made.npz", *QUICK, "-o", "model")


def test_a_simulation_that_makes_no_sense_is_refused(run: Run) -> None:
    for options, message in (
        (("one", "--rate", "0.5"), "case one has no rate"),
        (("b", "--rate", "half"), "--rate should be a number"),
        (("b", "--rate", ","), "--rate should be a number"),
        (("b", "--rate", "0.1,0.2"), "one for each of the 10 labels"),
        (("b", "--set", "strength=5"), "case b has no strength"),
        (("instance", "--set", "strength=nan"), "strength must be a finite number"),
        (("answers", "--rate", "0.1"), "case answers has no rate; got 0.1"),
        (("answers", "--set", "strength=1"), "case answers has no strength"),
        (("instance", "--set", "strength=1,2"), "strength must be one number; got [1.0, 2.0]"),
        (("b", "--set", "yes_rate=0"), "case b has no yes_rate; got 0.0. Leave it out"),
        (("answers", "--set", "no_rate=2"), "no_rate must be one number in [0, 1]"),
        (("answers", "--set", "no_rate=often"), "--set no_rate should be a number"),
        (("answers", "--set", "output=2"), "--set takes a rate or strength"),
        (("answers", "--set", "no_rate"), "--set no_rate should be a number"),
        (("answers", "--set", "mistake_rate=0,1"), "mistake_rate must be one number"),
        (("answers", "--set", "asked_rate=0"), "nothing was asked"),
    ):
        result = run(*SIMULATE, *options, code=1)
        assert message in result.stderr, options
    run(*SIMULATE, "z", code=2)
    told = run("datasets", "convert", "scenes.npz", "-o", "m.csv", "--rate", "0.5", code=1).stderr
    assert "--rate and --set are for simulated labels. Add --simulate b" in told
    assert "Leave one out" in run(*SIMULATE, "b", "--backbone", "resnet50", code=1).stderr


def test_fit_on_answers_with_features_of_another_file(run: Run, folder: Path) -> None:
    items = [f"scene {row}" for row in range(N)]
    pd.DataFrame(X).add_prefix("pixel_").assign(item=items).sample(
        frac=1, random_state=0
    ).to_parquet(folder / "X.parquet")
    dataset = Dataset(None, SCENES.label_names, CANDIDATES, items=items)
    write_dataset(dataset, folder / "answers.csv", form="long")
    run("fit", "answers.csv", "--features", "X.parquet", *QUICK, "-o", "by-item")
    run("fit", "scenes.csv", "--labels", "maybe_*", *IGNORED, *QUICK, "-o", "by-row")
    for name in ("by-item", "by-row"):
        run("predict", "X.parquet", "--model", name, "-o", f"{name}.csv")
    by_item, by_row = (pd.read_csv(folder / f"by-{way}.csv") for way in ("item", "row"))
    np.testing.assert_allclose(by_item.filter(like="score"), by_row.filter(like="score"), atol=1e-4)
    assert "--features" in run("fit", "answers.csv", "-o", "none", code=1).stderr


def test_answers_in_words_of_ones_own(run: Run, folder: Path) -> None:
    (folder / "votes.csv").write_text("item,label,answer\np,sky,0\np,sea,1\n")
    assert "--answers" in run("datasets", "votes.csv", code=1).stderr
    text = run("datasets", "votes.csv", "--answers", "0=no,1=maybe").stdout
    assert text.startswith("1 row without features, 2 labels, 2 of 2 pairs asked: 1 no, 0 yes")
    assert "pairs such as" in run("datasets", "votes.csv", "--answers", "0", code=1).stderr


def test_datasets_counts_what_was_said_by_label(run: Run, folder: Path) -> None:
    text = "id,size,sky,sea\n1,3,1,\n2,4,0,1\n3,3,-1,0\n4,1,,\n"
    (folder / "photos.csv").write_text(text)
    command = ("datasets", "photos.csv", "--labels", "sky,sea", "--answers", "1=yes,0=no,-1=maybe")
    shown = run(*command).stdout
    assert "5 of 8 pairs asked: 2 no, 2 yes, 1 maybe" in shown
    assert re.search(r"id +id +it counts the rows +0 +left out; it names the items", shown)
    assert re.search(r"size +number +numbers +0 +a feature, standardised", shown)
    assert re.search(r"sky +3 +1 +1 +1", shown) and re.search(r"sea +2 +1 +1 +0", shown)
    values = json.loads(run(*command, "--json").stdout)
    assert values["data"]["feature_names"] == ["id", "size"] and values["data"]["asked"] == 5
    assert values["labels"][0] == {"label": "sky", "asked": 3, "no": 1, "yes": 1, "maybe": 1}
    assert [row["taken_for"] for row in values["columns"]] == ["id", "number", "label", "label"]
    assert values["findings"] == {"duplicate_rows": 1}  # the id aside


def test_ticked_labels_on_the_command_line(run: Run, folder: Path) -> None:
    (folder / "tags.csv").write_text("x,tags\n1,sea|sky\n2,\n3,sea\n")
    command = ("datasets", "tags.csv", "--labels", "tags", "--positives")
    assert run(*command).stdout == run(*command, "--separator", "|").stdout
    shown = run(*command, "--separator", "|").stdout
    assert "1.00 ticked labels per row" in shown and re.search(r"sea +2", shown)
    both = run(*command, "--candidates", code=1).stderr
    assert "labels are candidates or positives; got both" in both
    both = run("datasets", "tags.csv", "--candidates", "--complementary", code=1).stderr
    assert "got both options" in both


def test_predictions_carry_the_names_of_the_items(run: Run, folder: Path) -> None:
    items = [f"scene {row}" for row in range(N)]
    write_npz(Dataset(X, SCENES.label_names, CANDIDATES, items=items), folder / "named.npz")
    run("fit", "named.npz", *QUICK, "-o", "model")
    run("predict", "named.npz", "-m", "model", "-o", "p.csv")
    assert pd.read_csv(folder / "p.csv")["item"].tolist() == items


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_a_sparse_test_file_may_not_show_the_last_features(run: Run, folder: Path) -> None:
    lines = [f"{k % 3},{(k + 1) % 3} 1:1 {k % 4 + 2}:{k}\n" for k in range(40)]
    (folder / "train.svm").write_text("".join(lines))
    (folder / "test.svm").write_text("1 1:1 2:1\n0 1:2\n2 1:1\n")
    run("fit", "train.svm", "--candidates", *QUICK, "-o", "model")
    run("evaluate", "test.svm", "-m", "model")
    run("predict", "test.svm", "-m", "model", "-o", "p.csv")
    assert len(pd.read_csv(folder / "p.csv")) == 3
    error = run("evaluate", "test.svm", "-m", "model", "--label-names", "a", code=1).stderr
    assert "the model knows its labels" in error


@pytest.mark.filterwarnings("default::comes.errors.ComesWarning")
def test_priors_are_estimated_written_and_used(run: Run, folder: Path) -> None:
    estimate = ("priors", "scenes.npz", "--exclude-rate", "0.5")
    text = run(*estimate, "-o", "priors.csv").stdout
    assert "digit 3" in text and "mean absolute error" in text
    table = pd.read_csv(folder / "priors.csv")
    assert list(table["label"]) == [f"digit {j}" for j in range(10)]
    np.testing.assert_allclose(table["true_prior"], RELEVANT.mean(axis=0))
    rows = json.loads(run("priors", "scenes.npz", "--exclude-rate", "1", "--json").stdout)
    assert rows[0]["class_prior"] == pytest.approx(CANDIDATES[:, 0].mean(), abs=0.01)
    table.iloc[::-1].to_csv(folder / "priors.csv", index=False)  # matched by name
    run("fit", "scenes.npz", "--priors", "priors.csv", *SHORT, "-o", "model")
    fitted = comes.CandidateClassifier.load(folder / "model")
    assert fitted.class_prior_ is not None
    np.testing.assert_allclose(fitted.class_prior_, table["class_prior"], rtol=1e-5)


@pytest.mark.filterwarnings("default::comes.errors.ComesWarning")
def test_priors_without_the_truth_and_mistakes(run: Run, folder: Path) -> None:
    write_npz(Dataset(X, SCENES.label_names, CANDIDATES), folder / "blind.npz")
    text = run("priors", "blind.npz", "--exclude-rate", "0.5").stdout
    assert "true prior" not in text
    assert "method must be one of" in run("priors", "blind.npz", "--method", "x", code=1).stderr
    assert "should end in .csv" in run("priors", "blind.npz", "-o", "x.doc", code=1).stderr
    (folder / "p.csv").write_text("label,class_prior\na,0.5\n")
    error = run("fit", "blind.npz", "--priors", "p.csv", *SHORT, "-o", "m", code=1).stderr
    assert "expected the labels '0', '1'" in error and "got 'a'" in error


def test_a_training_that_ran_away_is_an_error(run: Run, folder: Path) -> None:
    for how in (("--set", "exclude_rate=0.5"), ("--method", "bce")):
        settings = (*how, "--learning-rate", "1e9", "--epochs", "20", "-o", "m")
        error = run("fit", "scenes.npz", *settings, code=1).stderr
        assert "ran away" in error or "became" in error
        assert "ower the learning rate" in error and not (folder / "m").exists()


def test_training_rows_are_noticed_with_true_labels_alone(run: Run, folder: Path) -> None:
    names = [f"digit {j}" for j in range(10)]
    true = Dataset(SCENES.X, names, relevant=RELEVANT)  # of 16 features, rows may be copies
    write_dataset(Dataset(SCENES.X, names, CANDIDATES).take(range(50)), folder / "d.npz")
    write_dataset(true.take(range(40)), folder / "seen.npz")
    write_dataset(true.take(range(50, 100)), folder / "unseen.npz")
    run("fit", "d.npz", *QUICK, "-o", "m")
    text = "The numbers are too good: training saw"
    seen = " ".join(run("evaluate", "seen.npz", "-m", "m").stdout.split())
    assert f"{text} 40 of these 40 rows" in seen
    assert '"rows_seen_in_training": 40' in run("evaluate", "seen.npz", "-m", "m", "--json").stdout
    assert text not in run("evaluate", "unseen.npz", "-m", "m").stdout


@pytest.mark.filterwarnings("always::comes.errors.ComesWarning")
@pytest.mark.long
def test_a_label_that_cannot_be_estimated_is_called_by_its_name(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    table = table.assign(has_sky=(table["a"] > 0).astype(int), has_sun=1)
    table.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "--labels", "has_*", "--method", "bce", "--epochs", "1", "-o", "m")
    run(*fit)
    result = run("evaluate", "d.csv", "--labels", "has_*", "-m", "m", "--json")
    assert "class prior of label 'has_sun'" in result.stderr
    estimated = json.loads(result.stdout)["estimated"]
    assert estimated["class_prior"] == "estimated from these rows"
