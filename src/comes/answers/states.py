"""What can be said about a pair of item and label."""

from enum import IntEnum


class State(IntEnum):
    """What is known about a pair of item and label; its number stands in `Answers.codes`.

    Examples
    --------
    >>> State.NO.word, State.NOT_ASKED.word
    ('no', 'not asked')
    >>> State.of_word("yes") == 2
    True
    """

    NOT_ASKED = 0  # or no answer: nothing is known
    NO = 1  # surely irrelevant
    YES = 2  # surely relevant
    MAYBE = 3  # asked, and could not tell

    @property
    def word(self) -> str:
        """How tables write it."""
        return self.name.lower().replace("_", " ")

    @classmethod
    def of_word(cls, word: str) -> "State":
        """Return the state that a table writes so."""
        return cls[word.upper().replace(" ", "_")]
