import numpy as np
from sklearn.datasets import load_digits

from comes.datasets import make_scenes


def cells(X: np.ndarray) -> np.ndarray:
    """Return the four 8 x 8 cells of every canvas, (n, 4, 64)."""
    return X.reshape(-1, 2, 8, 2, 8).swapaxes(2, 3).reshape(-1, 4, 64)


def handwritten(X: np.ndarray) -> set[bytes]:
    return {cell.tobytes() for cell in cells(X).reshape(-1, 64) if cell.any()}


def test_labels_are_the_digits_on_the_canvas() -> None:
    scenes = make_scenes("train", n=100)
    images, digits = load_digits(return_X_y=True)
    keys = [image.tobytes() for image in (images / 16).astype(np.float32)]
    digit_of = dict(zip(keys, digits, strict=True))
    for canvas, truth in zip(cells(scenes.X), scenes.known_relevant(), strict=True):
        shown = {digit_of[cell.tobytes()] for cell in canvas if cell.any()}
        assert shown == set(np.flatnonzero(truth))


def test_the_seed_decides_and_there_are_one_to_four_digits() -> None:
    first, again, other = (make_scenes("train", n=100, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()
    n_digits = cells(first.X).any(axis=2).sum(axis=1)
    assert set(n_digits) == {1, 2, 3, 4}


def test_training_and_test_scenes_share_no_handwritten_digit() -> None:
    scenes = make_scenes("train")
    assert scenes.X.shape == (5000, 256)  # by default
    train, test = handwritten(scenes.X), handwritten(make_scenes("test", n=1000).X)
    assert len(train) > 1000 and len(test) > 500
    assert not train & test
