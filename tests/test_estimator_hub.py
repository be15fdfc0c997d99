"""Models with cards, in folders and on a hub: a local fake, never the internet."""

import inspect
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pandas as pd
import pytest

from comes import Answers, CandidateClassifier, ImageClassifier
from comes.errors import ComesError
from comes.estimator import hub as hub_module
from comes.estimator import load_model, write_card
from comes.generation import case_b
from comes.methods import METHODS
from comes.priors import ClassPriorEstimate
from pictures import SIZE, pictures, tiny
from quick_priors import quick_priors

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["height", "width", "depth"])
RELEVANT = X.to_numpy()[:, :2] > 0.3
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
NAMES = ["blue sky", "sea | lake"]
# Of priors that are estimated in a few steps.
pytestmark = pytest.mark.filterwarnings("ignore:.*standard error is:comes.errors.ComesWarning")


@pytest.fixture(autouse=True, scope="module")
def quickly_estimated() -> Iterator[None]:
    with quick_priors():
        yield


def make(method: str | None = None, **options: Any) -> CandidateClassifier:
    return CandidateClassifier(method, epochs=1, hidden=4, random_state=0, **options)


@pytest.fixture(scope="module")
def known() -> CandidateClassifier:
    """A model whose class priors were given."""
    return make(class_prior=[0.4, 0.5]).fit(X, CANDIDATES, label_names=NAMES)


class FakeHub:
    """Repositories as folders of this machine, with the functions that are used of the hub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[str, Any]] = []

    def HfApi(self, token: str | None = None) -> Any:  # noqa: N802 - as the hub has it
        self.calls.append(("token", token))
        return SimpleNamespace(create_repo=self.create_repo, upload_folder=self.upload_folder)

    def create_repo(self, repo_id: str, *, private: bool | None, exist_ok: bool) -> None:
        self.calls.append(("create_repo", (repo_id, private, exist_ok)))
        if repo_id.startswith("forbidden/"):
            raise PermissionError("403 Forbidden\nmore lines")
        (self.folder / repo_id).mkdir(parents=True, exist_ok=True)

    def upload_folder(
        self, *, repo_id: str, folder_path: str, commit_message: str, allow_patterns: list[str]
    ) -> Any:
        self.calls.append(("upload_folder", (repo_id, commit_message, allow_patterns)))
        for file in Path(folder_path).iterdir():
            assert file.name in allow_patterns
            shutil.copy(file, self.folder / repo_id / file.name)
        return SimpleNamespace(commit_url=f"https://hub/{repo_id}/commit/1")

    def snapshot_download(
        self, repo_id: str, *, revision: str | None, token: str | None, allow_patterns: list[str]
    ) -> str:
        self.calls.append(("snapshot_download", (repo_id, revision, token)))
        if not (self.folder / repo_id).exists():
            raise OSError(f"404: {repo_id} not found")
        return str(self.folder / repo_id)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setattr(hub_module, "_import_hub", lambda: fake)
    return fake


def test_the_functions_of_the_fake_are_those_of_the_hub() -> None:
    api = huggingface_hub.HfApi
    for function, names in (
        (api.create_repo, {"repo_id", "private", "exist_ok"}),
        (api.upload_folder, {"repo_id", "folder_path", "commit_message", "allow_patterns"}),
        (
            huggingface_hub.snapshot_download,
            {"repo_id", "revision", "token", "allow_patterns"},
        ),
    ):
        assert names <= set(inspect.signature(function).parameters)


def test_a_model_goes_to_the_hub_and_comes_back(hub: FakeHub, known: CandidateClassifier) -> None:
    address = known.push_to_hub("me/photos", private=True, token="secret", message="First")
    assert address == "https://hub/me/photos/commit/1"
    assert ("create_repo", ("me/photos", True, True)) in hub.calls
    assert hub.calls[0] == ("token", "secret")
    assert hub.calls[-1][1][:2] == ("me/photos", "First")
    loaded = CandidateClassifier.from_pretrained("me/photos", revision="abc")
    np.testing.assert_array_equal(loaded.predict_proba(X), known.predict_proba(X))
    assert hub.calls[-1] == ("snapshot_download", ("me/photos", "abc", None))
    card = (hub.folder / "me/photos/README.md").read_text(encoding="utf-8")
    assert 'CandidateClassifier.from_pretrained("me/photos")' in card and "secret" not in card


def test_what_goes_wrong_with_a_hub_is_said(hub: FakeHub, known: CandidateClassifier) -> None:
    with pytest.raises(ComesError, match=r"could not be uploaded \(403 Forbidden\).*hf auth login"):
        known.push_to_hub("forbidden/photos")
    with pytest.raises(ComesError, match=r"no folder, and could not be downloaded .*404: me/none"):
        CandidateClassifier.from_pretrained("me/none")
    for wrong in ("photos", "a/b/c", "/photos", "me/"):
        with pytest.raises(ComesError, match='must be "owner/name"'):
            known.push_to_hub(wrong)
    for wrong in ("photos", "./me/photos", "../photos"):
        with pytest.raises(ComesError, match='neither a folder nor a repository, "owner/name"'):
            CandidateClassifier.from_pretrained(wrong)
    with pytest.raises(Exception, match="not fitted"):
        CandidateClassifier().push_to_hub("me/photos")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ComesError, match=r"needs huggingface_hub.*pip install 'comes\[hub\]'"):
        CandidateClassifier.from_pretrained("me/photos")


def test_a_folder_holds_the_model_and_its_card(known: CandidateClassifier, tmp_path: Path) -> None:
    folder = known.save_pretrained(tmp_path / "photos")
    loaded = CandidateClassifier.from_pretrained(folder)
    np.testing.assert_array_equal(loaded.predict_proba(X), known.predict_proba(X))
    assert isinstance(load_model(folder), CandidateClassifier)
    known.save_pretrained(folder)  # a model that is there is replaced
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["README.md", "model.json", "model.safetensors"]
    assert [p.name for p in tmp_path.iterdir()] == ["photos"], "nothing is left beside it"


def test_a_card_that_somebody_wrote_stays(known: CandidateClassifier, tmp_path: Path) -> None:
    folder = known.save_pretrained(tmp_path / "photos")
    (folder / "README.md").write_text("# Mine\n", encoding="utf-8")
    known.save_pretrained(folder)
    assert (folder / "README.md").read_text(encoding="utf-8") == "# Mine\n"
    with pytest.raises(ComesError, match="README.md"):
        known.save(folder)  # would lose it
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ComesError, match=r"holds something else \(notes.txt\)"):
        known.save_pretrained(folder)
    assert (folder / "notes.txt").exists()


# Cards


def test_a_card_states_assumptions_priors_rates_and_size(known: CandidateClassifier) -> None:
    card = write_card(known, "me/photos")
    assert card.startswith("---\nlibrary_name: comes\npipeline_tag: tabular-classification\n")
    assert "Every relevant label of a row was among its candidates." in card
    assert "with a probability that depends on the label alone" in card
    assert "Class priors given" in card and "Trained on 200 rows with candidates." in card
    assert known.no_rate_ is not None
    row = f"| blue sky | 0.400 | {known.no_rate_[0]:.3f} | 0.000 | {known.threshold_[0]:.3f} |"
    assert row in card and "| sea \\| lake |" in card, "a bar in a name does not break the table"
    assert "3 features: height, width, depth." in card
    assert "1 epochs in" in card and "Calibrated afterwards: no." in card
    estimated = write_card(make().fit(X, CANDIDATES), "x")
    assert "Class priors estimated from what was said" in estimated
    assert "standard error" in estimated
    prior, error = np.array([0.4, 0.5]), np.array([0.1, 0.2])
    flags = ("ok", "never excluded")
    passed = ClassPriorEstimate(prior, prior, prior, prior, error, flags)
    half_known = write_card(make(class_prior=passed).fit(X, CANDIDATES), "x")
    assert "| standard error |" in half_known and "| 0.100 |" in half_known


def test_a_card_of_answers_and_of_a_ranking_risk() -> None:
    said = Answers(no=~RELEVANT, yes=RELEVANT, maybe=np.zeros_like(RELEVANT))
    clf = make(mistake_rate=0.01)
    card = write_card(clf.fit(X, answers=said))
    assert "did not depend on its truth" in card and "Rate of mistakes: 0.01." in card
    assert "Trained on 200 rows with answers." in card
    ranking = write_card(make("comes-rl", class_prior=[0.4, 0.5]).fit(X, CANDIDATES))
    assert "The risk ranks labels" in ranking and "Method: COMES-RL" in ranking


@pytest.mark.long
def test_every_method_has_a_card(tmp_path: Path) -> None:
    for method, named in METHODS.items():
        clf = make(method).fit(X, CANDIDATES, label_names=NAMES)
        clf.save(tmp_path / "model")
        card = write_card(clf, "me/photos")
        assert write_card(load_model(tmp_path / "model"), "me/photos") == card, method
        assert named.title in card
        assert "nan" not in card.lower().replace("names", "") and "None" not in card, method


def test_an_earlier_model_says_that_its_rows_are_not_recorded() -> None:
    before = load_model(Path(__file__).parent / "data" / "models_before_tables" / "answers")
    assert "is not recorded" in write_card(before)


def test_a_stream_counts_all_its_rows() -> None:
    clf = make(class_prior=[0.4, 0.5])
    clf.partial_fit(X[:150], CANDIDATES[:150]).partial_fit(X[150:], CANDIDATES[150:])
    assert clf.trained_on_ == {"rows": 200, "kind": "candidates"}


def test_models_of_images_have_cards_too(tmp_path: Path) -> None:
    pixels, relevant = pictures(40)
    clf = ImageClassifier(
        "bce", backbone=tiny(), weights=None, image_size=SIZE, random_state=0
    ).fit(pixels, relevant)
    folder = clf.save_pretrained(tmp_path / "pictures")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: image-classification" in card and "model.predict_proba(images)" in card
    assert "Trained on 40 rows with candidates." in card
    loaded = ImageClassifier.from_pretrained(folder, backbone=tiny())
    np.testing.assert_allclose(loaded.predict_proba(pixels), clf.predict_proba(pixels), atol=1e-6)
    clf.calibrate(pixels, relevant=relevant).save(tmp_path / "calibrated")
    again = ImageClassifier.load(tmp_path / "calibrated", backbone=tiny())
    assert again.calibration_ is not None
