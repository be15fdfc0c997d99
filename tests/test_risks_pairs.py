"""How sums over pairs of labels are computed; that they are right is tested with the risks."""

import itertools

import pytest
import torch

from comes.risks import choose_pair_sums, pairs

CPU, CUDA, MPS = (torch.device(name) for name in ("cpu", "cuda", "mps"))


def test_from_many_labels_on_sums_take_linear_time() -> None:
    for device in (CPU, CUDA):
        many = pairs.MANY_LABELS[device.type]
        assert choose_pair_sums(1, many, device) == "in linear time"
        assert choose_pair_sums(1, many - 1, device) == "whole"


def test_a_device_without_linear_sums_forms_differences() -> None:
    assert choose_pair_sums(1, 1000, MPS) == "whole"
    assert choose_pair_sums(10, 1000, MPS) == "in parts"


def test_more_differences_than_fit_are_formed_in_parts() -> None:
    for device, q in itertools.product((CPU, CUDA), (1, 16)):
        fitting = pairs.DIFFERENCES_AT_ONCE[device.type] // (q * q)
        assert choose_pair_sums(fitting, q, device) == "whole"
        assert choose_pair_sums(fitting + 1, q, device) == "in parts"


def test_sums_are_made_in_as_many_parts_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of four labels; a part is at least one label wide."""
    scores = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    excluded = torch.arange(12).reshape(3, 4) % 3 + 0.5
    expected = (excluded[:, :, None] * (scores[:, :, None] - scores[:, None, :]).exp()).sum((0, 2))
    cases = {48: [4], 47: [3, 1], 36: [3, 1], 35: [2, 2], 24: [2, 2], 23: [1] * 4, 1: [1] * 4}
    for at_once, expected_widths in cases.items():
        monkeypatch.setattr(pairs, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
        widths: list[int] = []

        def exp_of_part(differences: torch.Tensor, widths: list[int] = widths) -> torch.Tensor:
            widths.append(differences.shape[1])
            return differences.exp()

        torch.testing.assert_close(pairs.sum_over_pairs(scores, excluded, exp_of_part), expected)
        assert widths == expected_widths, at_once
        assert choose_pair_sums(3, 4, CPU) == ("whole" if widths == [4] else "in parts"), at_once
