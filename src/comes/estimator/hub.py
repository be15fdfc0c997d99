"""Models on a hub: saved with a card, loaded and handed on by the name of a repository."""

import tempfile
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from comes.errors import ComesError, first_line
from comes.estimator.model_cards import MARK, write_card
from comes.files import expanded, replacing_folder

CARD = "README.md"
PATTERNS = ["model.json", "model.safetensors", CARD]


class SharesModels:
    """What makes a model one that others can find, judge and load."""

    def save_pretrained(self, path: str | Path, *, name: str | None = None) -> Path:
        """Write the model and its card, a README.md, to a folder.

        The card states assumptions, class priors, rates, labels, what was trained on and how to
        load the model. A README.md that is not one of ours stays as it is.

        Parameters
        ----------
        path : path
            A folder; one that holds a model is replaced.
        name : str, optional
            What the card calls the model; by default the name of the folder.

        Returns
        -------
        path : Path

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
        >>> folder = model.save_pretrained(Path(tempfile.mkdtemp()) / "photos")
        >>> sorted(file.name for file in folder.iterdir())
        ['README.md', 'model.json', 'model.safetensors']
        """
        check_is_fitted(self)
        folder = expanded(path)
        card = folder / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else MARK
        if MARK in text:
            text = write_card(self, name or folder.name)  # type: ignore[arg-type]
        with replacing_folder(folder, PATTERNS) as temporary:
            self.save(temporary)  # type: ignore[attr-defined]
            (temporary / CARD).write_text(text, encoding="utf-8")
        return folder

    def push_to_hub(
        self,
        repository: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        message: str = "Upload a model of comes",
    ) -> str:
        """Upload the model and its card to the Hugging Face Hub.

        Parameters
        ----------
        repository : str
            "owner/name"; made if it does not exist.
        private : bool, optional
            Of a new repository.
        token : str, optional
            By default the one that ``hf auth login`` stored.
        message : str
            Of the commit.

        Returns
        -------
        address : str
            Of the commit.

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
        >>> model.push_to_hub("photos")
        Traceback (most recent call last):
        comes.errors.ComesError: repository must be "owner/name"; got 'photos'.
        """
        check_is_fitted(self)
        owner, _, rest = repository.partition("/")
        if not owner or not rest or "/" in rest:
            raise ComesError(f'repository must be "owner/name"; got {repository!r}.')
        hub = _import_hub()
        with tempfile.TemporaryDirectory() as folder:
            written = self.save_pretrained(Path(folder) / "model", name=repository)
            try:
                api = hub.HfApi(token=token)
                api.create_repo(repository, private=private, exist_ok=True)
                commit = api.upload_folder(
                    repo_id=repository,
                    folder_path=str(written),
                    commit_message=message,
                    allow_patterns=PATTERNS,
                )
            except Exception as error:  # of the network, of rights, of names
                raise ComesError(
                    f"{repository} could not be uploaded ({first_line(error)}). Log in with 'hf "
                    "auth login', or pass token=."
                ) from error
        return str(getattr(commit, "commit_url", commit))

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        **own: Any,
    ) -> Self:
        """Load a model from a folder, or from a repository of the Hugging Face Hub.

        Parameters
        ----------
        name : path or str
            A folder, or "owner/name".
        revision : str, optional
            A branch, tag or commit. Name a commit to be sure what you load.
        token : str, optional
        **own
            A network of your own, as in `load`: ``model=`` of rows, ``backbone=`` of images.

        Returns
        -------
        model
            Weights are read from safetensors, so that no code of the repository is run.

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
        >>> folder = model.save_pretrained(Path(tempfile.mkdtemp()) / "photos")
        >>> CandidateClassifier.from_pretrained(folder).method
        'bce'
        """
        folder = expanded(name)
        if not folder.is_dir():
            folder = _download(str(name), revision, token)
        loaded: Self = cls.load(folder, **own)  # type: ignore[attr-defined]
        return loaded


def _download(name: str, revision: str | None, token: str | None) -> Path:
    """Return the folder that a repository was downloaded to."""
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise ComesError(
            f'{name} is neither a folder nor a repository, "owner/name". Correct the name.'
        )
    try:
        found = _import_hub().snapshot_download(
            name, revision=revision, token=token, allow_patterns=PATTERNS
        )
    except ComesError:
        raise
    except Exception as error:  # of the network, of rights, of names
        raise ComesError(
            f"{name} is no folder, and could not be downloaded from the hub ({first_line(error)}). "
            "Correct the name, or download it and give the folder."
        ) from error
    return Path(found)


def _import_hub() -> Any:
    """Return huggingface_hub, or say how to install it."""
    try:
        import huggingface_hub
    except ImportError:
        raise ComesError(
            "the Hugging Face Hub needs huggingface_hub, which is not installed: pip install "
            "'comes[hub]'."
        ) from None
    return huggingface_hub
