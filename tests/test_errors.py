from comes.errors import ComesError, counted, first_line, listed


def test_the_first_line_of_an_error_is_never_empty() -> None:
    assert first_line(OSError("disk full\nat block 7")) == "disk full"
    assert first_line(ValueError("one line")) == "one line"
    assert first_line(TimeoutError()) == "TimeoutError"


def test_long_lists_are_cut_and_say_how_much_is_left() -> None:
    cases = {
        0: "",
        1: "'0'",
        3: "'0', '1', '2'",
        4: "'0', '1', '2' and 1 more",
        9: "'0', '1', '2' and 6 more",
    }
    for n, shown in cases.items():
        assert listed([str(number) for number in range(n)], most=3) == shown


def test_errors_are_value_errors_as_scikit_learn_raises_them() -> None:
    assert issubclass(ComesError, ValueError)


def test_numbers_agree_with_their_noun_and_verb() -> None:
    assert (counted(1, "label"), counted(0, "label")) == ("1 label", "0 labels")
    assert counted(2, "row", "have no candidate") == "2 rows have no candidate"
    for verb, of_one in (("have", "has"), ("are", "is"), ("were", "was"), ("occur", "occurs")):
        assert counted(1, "row", f"{verb} here") == f"1 row {of_one} here"
