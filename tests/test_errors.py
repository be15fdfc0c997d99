import pytest

from comes.errors import ComesError, first_line, listed


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("disk full\nat block 7"), "disk full"),
        (ValueError("one line"), "one line"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_the_first_line_of_an_error_says_something(error: Exception, said: str) -> None:
    assert first_line(error) == said


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, ""),
        (1, "'0'"),
        (3, "'0', '1', '2'"),
        (4, "'0', '1', '2' and 1 more"),
        (9, "'0', '1', '2' and 6 more"),
    ],
)
def test_long_lists_are_cut_and_say_how_much_is_left(n: int, shown: str) -> None:
    assert listed([str(number) for number in range(n)], most=3) == shown


def test_errors_are_value_errors_as_scikit_learn_raises_them() -> None:
    assert issubclass(ComesError, ValueError)
