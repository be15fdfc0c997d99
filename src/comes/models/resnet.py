"""ResNets of bottlenecks with torchvision's names of weights, without needing torchvision.

There are two variants with the same names and shapes. The original paper halves the resolution in
the first 1x1 convolution of a stage ("v1"), torchvision in the 3x3 convolution after it ("v1.5").
Weights of one load into the other without an error, and give wrong features:
`comes.models.backbones.choose_strides` finds out which variant they belong to.
"""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

Strides = Literal["v1", "v1.5"]


class ResNet(nn.Module):
    """A ResNet without its classifier: images of shape (n, 3, h, w) to features (n, 32 * width).

    Parameters
    ----------
    depths : four ints
        Number of bottlenecks of each stage; (3, 4, 6, 3) is ResNet-50.
    width : int
        Channels after the first convolution; 64 is ResNet-50.
    strides : {"v1.5", "v1"}
        Which convolution halves the resolution: the 3x3 (torchvision) or the 1x1 before it.

    Examples
    --------
    >>> import torch
    >>> ResNet((1, 1, 1, 1), width=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 128])
    """

    def __init__(
        self, depths: Sequence[int] = (3, 4, 6, 3), width: int = 64, strides: Strides = "v1.5"
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = [f"layer{stage + 1}" for stage in range(len(depths))]
        n_inputs = width
        for stage, depth in enumerate(depths):
            blocks = []
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(n_inputs, width * 2**stage, stride))
                n_inputs = 4 * width * 2**stage
            self.add_module(self.stages[stage], nn.Sequential(*blocks))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        self.set_strides(strides)

    def set_strides(self, strides: Strides) -> None:
        """Change the variant; no weight changes."""
        for module in self.modules():
            if isinstance(module, Bottleneck):
                first, second = (module.stride, 1) if strides == "v1" else (1, module.stride)
                module.conv1.stride, module.conv2.stride = (first, first), (second, second)
        self.strides = strides

    def forward(self, x: Tensor) -> Tensor:
        """Return the features: the means of the last feature maps."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = self.get_submodule(stage)(x)
        return x.mean(dim=(2, 3))


class Bottleneck(nn.Module):
    """A 1x1, a 3x3 and a 1x1 convolution with a shortcut around them."""

    downsample: nn.Module | None

    def __init__(self, n_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        n_outputs, self.stride = 4 * width, stride
        self.conv1 = nn.Conv2d(n_inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, n_outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or n_inputs != n_outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_inputs, n_outputs, 1, stride, bias=False), nn.BatchNorm2d(n_outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return maps of 4 * width channels."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(y.add_(shortcut))  # type: ignore[no-any-return]
