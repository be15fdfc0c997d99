"""Vectors of texts: from files, folders and packages, kept on disk, checked by content."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.tables import texts as texts_module
from comes.tables.texts import Embedding, embed_texts, open_embedding
from refusals import refused
from word_models import save_model, stand_in_for_model2vec

WORDS = {"red": (3.0, 4.0), "sea": (0.0, 2.0)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing of Hugging Face."""
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("COMES_DATA", raising=False)
    return tmp_path / "cache" / "features"


def mean_of(*words: str) -> list[float]:
    """The mean vector of words, of length 1, written as loops."""
    total = [sum(WORDS[word][k] for word in words) / len(words) for k in range(2)]
    length = sum(value**2 for value in total) ** 0.5
    return [value / length for value in total]


def test_vectors_have_length_1_or_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_model2vec(monkeypatch)
    folder = save_model(tmp_path / "data" / "small", WORDS)
    texts = ["Red sea RED", "nothing known", "", "sea"]
    expected = [mean_of("red", "sea", "red"), [0.0, 0.0], [0.0, 0.0], mean_of("sea")]
    for cache in (False, True, True):
        found = embed_texts(texts, open_embedding(folder), cache=cache)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    monkeypatch.setenv("COMES_DATA", str(tmp_path / "data"))
    assert open_embedding("small").n_features == 2


def save_tokens(folder: Path) -> Path:
    """Vectors of tokens and a tokenizer, as model2vec and WordLlama have them."""
    import tokenizers
    from safetensors.numpy import save_file

    folder.mkdir()
    places = {word: row for row, word in enumerate(["[UNK]", "red", "sea"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(places, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    vectors = np.array([[0, 0], WORDS["red"], WORDS["sea"]], dtype=np.float16)
    save_file({"embeddings": vectors}, folder / "vectors.safetensors")
    return folder


@pytest.mark.needs("wordllama", "model2vec")
def test_wordllama_gives_what_the_package_gives() -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    spec = importlib.util.find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    (weights,) = (home / "weights").glob("*.safetensors")
    (tokenizer,) = (home / "tokenizers").glob("*.json")
    (matrix,) = load_file(weights).values()
    own = WordLlamaInference(matrix, Tokenizer.from_file(str(tokenizer)))
    texts = ["I've never been this sad in my life!", "Kings fan here", "😀"]
    found = embed_texts(texts, open_embedding("wordllama"))
    np.testing.assert_allclose(found, own.embed(texts, norm=True), atol=1e-5)
    assert found.shape == (3, 256)


@pytest.mark.needs("model2vec")
def test_a_model_of_model2vec(tmp_path: Path) -> None:
    import model2vec
    from tokenizers import Tokenizer

    folder = save_tokens(tmp_path / "tokens")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    vectors = np.array([[0, 0], WORDS["red"], WORDS["sea"]], dtype=np.float32)
    model = model2vec.StaticModel(vectors, tokenizer, config={"model_type": "model2vec"})
    model.save_pretrained(str(tmp_path / "model"))
    opened = open_embedding(tmp_path / "model")
    assert opened.n_features == 2
    expected = np.array([mean_of("red", "sea"), mean_of("red")])
    np.testing.assert_allclose(opened.embed(["red sea", "red"]), expected, atol=1e-6)


@pytest.mark.needs("sentence_transformers")
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_sentence_transformers(tmp_path: Path) -> None:
    from comes.images.backbones import import_torchvision

    if importlib.util.find_spec("torchvision") is not None:
        import_torchvision("the test")  # transformers imports it, even if it does not fit torch
    import sentence_transformers
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer

    folder = save_tokens(tmp_path / "tokens")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    vectors = np.array([[0, 0], WORDS["red"], WORDS["sea"]], dtype=np.float32)
    module = StaticEmbedding(tokenizer, embedding_weights=vectors)
    model = sentence_transformers.SentenceTransformer(modules=[module], device="cpu")
    model.save(str(tmp_path / "model"))
    opened = open_embedding(tmp_path / "model")
    expected = np.array([mean_of("red", "sea"), mean_of("red")])
    np.testing.assert_allclose(opened.embed(["red sea", "red"]), expected, atol=1e-6)
    assert opened.n_features == 2


class Counting:
    """Vectors that count how many texts they were made for, and stop at a text."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.n, self.stop_at = 0, stop_at

    def __call__(self, texts: Sequence[str]) -> Any:
        if self.stop_at in texts:
            raise KeyboardInterrupt
        self.n += len(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    def as_embedding(self, checksum: str = "c") -> Embedding:
        return Embedding(checksum, 2, self)


def test_vectors_are_computed_once(cache: Path) -> None:
    counting = Counting()
    for _ in range(2):
        found = embed_texts(["a", "bb"], counting.as_embedding())
        assert found.tolist() == [[1.0, 1.0], [2.0, 1.0]]
    assert counting.n == 2 and [path.suffix for path in cache.iterdir()] == [".npy"]
    assert embed_texts(["a", "bbb"], counting.as_embedding())[1, 0] == 3  # another text
    embed_texts(["a", "bb"], counting.as_embedding("d"))  # other vectors
    assert counting.n == 6


def test_an_interrupted_table_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "AT_ONCE", 2)
    texts = [f"text {row}" for row in range(7)]
    stopped, again = Counting(stop_at="text 5"), Counting()
    with pytest.raises(KeyboardInterrupt):
        embed_texts(texts, stopped.as_embedding())
    assert stopped.n == 4
    found = embed_texts([*texts, "one more"], again.as_embedding())
    assert again.n == 4 and found[:, 0].tolist() == [6.0] * 7 + [8.0]


def test_other_vectors_than_those_of_the_model_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_for_model2vec(monkeypatch)
    folder = save_model(tmp_path / "model", WORDS)
    checksum = open_embedding(folder).checksum
    assert open_embedding(folder, checksum).checksum == checksum
    save_model(folder, {"red": (3.5, 4.0)})
    with refused("must be the one that the model was trained with .* fit"):
        open_embedding(folder, checksum)


def test_an_unknown_name_says_what_can_be_named(tmp_path: Path) -> None:
    with refused("neither 'wordllama', nor a folder, .*'hf download x/y'"):
        open_embedding("x/y")
    (tmp_path / "glove.txt").write_text("red 1 2\n")
    with refused("must be the folder of a model; got a file. .*GloVe.* no longer read.*fit again"):
        open_embedding(tmp_path / "glove.txt")
    (tmp_path / "empty").mkdir()
    with refused(
        r"neither a model of model2vec .* nor one of sentence-transformers .*Download it again"
    ):
        open_embedding(tmp_path / "empty")


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / "m2v", WORDS)
    (tmp_path / "st").mkdir()
    (tmp_path / "st" / "modules.json").write_text("[]")
    for package, name in (("sentence_transformers", "st"), ("model2vec", "m2v")):
        monkeypatch.setitem(sys.modules, package, None)
        with refused(rf"cannot be loaded: .*{package}.*'comes\[text\]'"):
            open_embedding(tmp_path / name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refused("'wordllama' needs a package"):
        open_embedding("wordllama")


def test_a_broken_model_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_model2vec(monkeypatch)
    (save_model(tmp_path / "model", WORDS) / "vectors.json").write_text("{")
    with refused("the embedding .*model' cannot be loaded: "):
        open_embedding(tmp_path / "model")
