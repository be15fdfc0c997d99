"""Rows mixed in pairs, with their targets."""

import torch
from torch import nn

from comes.training import TrainOptions, make_optimizer, train
from comes.training.mixing import mix_pairs


def test_a_row_keeps_the_larger_share_and_takes_the_rest_from_the_row_before() -> None:
    torch.manual_seed(0)
    x, targets = torch.rand(50, 3, 4), torch.rand(50, 2)
    mixed, mixed_targets = mix_pairs(x, targets)
    shares = []
    for i in range(50):
        own = ((mixed[i] - x[i - 1]) / (x[i] - x[i - 1])).median()
        shares.append(float(own))
        torch.testing.assert_close(mixed[i], own * x[i] + (1 - own) * x[i - 1])
        expected = own * targets[i] + (1 - own) * targets[i - 1]
        torch.testing.assert_close(mixed_targets[i], expected, rtol=1e-4, atol=1e-5)
    assert 0.5 <= min(shares) < 0.6 and 0.9 < max(shares) <= 1  # even over [1/2, 1]


def test_pixels_become_floats() -> None:
    mixed, _ = mix_pairs(torch.full((4, 3, 2, 2), 255, dtype=torch.uint8), torch.ones(4, 1))
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, torch.full((4, 3, 2, 2), 255.0))


def test_training_sees_mixed_rows_only_if_asked() -> None:
    class Spy(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.detach().clone())
            return super().forward(x)

    X, targets = torch.eye(6), torch.eye(6)
    for mixes in (False, True):
        seen: list[torch.Tensor] = []
        options = TrainOptions(
            make_optimizer("sgd", learning_rate=0.1), epochs=1, mixes_pairs=mixes, progress=False
        )
        loss = nn.functional.binary_cross_entropy_with_logits
        train(Spy(6, 6), X, targets, loss, options)
        is_plain = all(set(batch.unique().tolist()) <= {0.0, 1.0} for batch in seen)
        assert is_plain != mixes
