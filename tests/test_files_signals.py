"""`run_interruptible`; blocks that defer are in `test_workflows_fit`."""

import signal
from collections.abc import Iterator

import pytest

from comes.files import run_interruptible


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    done = []

    def run() -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            done.append("tidied up")
            raise
        return 0

    assert run_interruptible(run) == 128 + number
    assert done == ["tidied up"]
    signal.raise_signal(number)  # too late, and ignored


def test_a_command_that_ends_itself_has_its_own_code() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert run_interruptible(lambda: 3) == 3
    assert run_interruptible(interrupted) == 130


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    def run() -> int:
        signal.raise_signal(signal.SIGHUP)
        return 0

    assert run_interruptible(run) == 0
