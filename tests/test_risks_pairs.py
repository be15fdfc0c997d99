"""How sums over pairs of labels are computed; that they are right is tested with the risks."""

import pytest
import torch

from comes.risks import choose_pair_sums, pairs

CPU, CUDA, MPS = (torch.device(name) for name in ("cpu", "cuda", "mps"))


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_from_many_labels_on_sums_take_linear_time(device: torch.device) -> None:
    many = pairs.MANY_LABELS[device.type]
    assert choose_pair_sums(1, many, device) == "in linear time"
    assert choose_pair_sums(1, many - 1, device) == "whole"


def test_a_device_without_linear_sums_forms_differences() -> None:
    assert choose_pair_sums(1, 1000, MPS) == "whole"
    assert choose_pair_sums(10, 1000, MPS) == "in parts"


@pytest.mark.parametrize("q", [1, 16])
@pytest.mark.parametrize("device", [CPU, CUDA])
def test_more_differences_than_fit_are_formed_in_parts(device: torch.device, q: int) -> None:
    fitting = pairs.DIFFERENCES_AT_ONCE[device.type] // (q * q)
    assert choose_pair_sums(fitting, q, device) == "whole"
    assert choose_pair_sums(fitting + 1, q, device) == "in parts"


@pytest.mark.parametrize(("at_once", "n_parts"), [(3 * 4 * 4, 0), (3 * 4 * 2, 2), (1, 4)])
def test_sums_are_made_in_as_many_parts_as_needed(
    at_once: int, n_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows of four labels; a part is at least one label wide."""
    monkeypatch.setattr(pairs, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
    widths = []

    def sum_part(differences: torch.Tensor) -> torch.Tensor:
        widths.append(differences.shape[1])
        return differences.exp()

    scores, excluded = torch.zeros(3, 4), torch.ones(3, 4)
    sums = pairs.sum_over_pairs(scores, excluded, sum_part)
    assert sums.tolist() == [12.0] * 4
    assert widths == ([4 // n_parts] * n_parts if n_parts else [4])
    assert choose_pair_sums(3, 4, CPU) == ("in parts" if n_parts else "whole")
