"""From pictures to features: preprocessing, networks by name and in folders, weights in files.

Nothing is downloaded.
"""

import copy
import gc
import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from comes.errors import ComesError
from comes.estimator import pretrained_backbone
from comes.models import Backbone, Preprocessing, make_backbone
from comes.models.backbones import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    import_torchvision,
    load_weights,
    root_probabilities,
)
from comes.training.pixels import PixelRows
from pictures import randomised, some_pixels, tiny

CPU = torch.device("cpu")
CLIP_MEAN, CLIP_STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)
STATE = tiny().state_dict()


def normalised(mean: Any, std: Any) -> Tensor:
    """Return pictures as a network takes them, without a backbone."""
    shift, scale = (torch.tensor(numbers)[:, None, None] for numbers in (mean, std))
    return (some_pixels(4) / 255 - shift) / scale


# What the network sees


def picture(height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return a picture with slow waves, so that a shift by a pixel shows."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / 9), np.cos(columns / 7), np.sin((rows + columns) / 11)]
    return np.stack([127 + 120 * wave for wave in waves], axis=2).astype(np.uint8)


INTERPOLATIONS: list[Any] = ["bilinear", "bicubic"]


def test_the_whole_picture_is_stretched_and_one_of_the_size_is_left_alone() -> None:
    for interpolation in INTERPOLATIONS:
        shown = Preprocessing(32, interpolation).apply(picture(50, 70))
        how = Image.Resampling[interpolation.upper()]
        expected = np.asarray(Image.fromarray(picture(50, 70)).resize((32, 32), how))
        np.testing.assert_array_equal(shown, expected)
    assert (same := picture(32, 32)) is Preprocessing(32).apply(same)
    assert Preprocessing(32).apply(picture(32, 40)).shape == (32, 32, 3)


def test_the_centre_is_that_of_torchvision() -> None:
    """Resize the shorter side, keep proportions, cut out the centre; 1 of 255 for rounding."""
    transforms = import_torchvision("a test").transforms
    for interpolation in INTERPOLATIONS:
        resize = transforms.Resize(37, transforms.InterpolationMode(interpolation))
        theirs = transforms.Compose([resize, transforms.CenterCrop(32)])
        own = Preprocessing(32, interpolation, short_side=37)
        for shape in ((60, 90), (91, 40), (64, 64), (33, 32)):
            expected = np.asarray(theirs(Image.fromarray(picture(*shape)))).astype(int)
            difference = np.abs(own.apply(picture(*shape)) - expected).max()
            assert difference <= 1, (interpolation, shape)


def test_another_size_keeps_the_share_that_is_cut_out() -> None:
    own = Preprocessing(224, short_side=256)
    assert own.sized(None) is own
    assert own.sized(112) == Preprocessing(112, short_side=128)
    assert type(own.sized(np.int64(112)).size) is int  # type: ignore[arg-type]
    assert own.cropped(False).short_side is None
    assert own.cropped(True) == own == Preprocessing(224).cropped(True)


def test_libraries_bring_their_own() -> None:
    half = (0.5, 0.5, 0.5)
    vit = make_backbone("timm:vit_tiny_patch16_224", centre_crop=True)
    assert vit.preprocessing == Preprocessing(224, "bicubic", 248, half, half)
    assert vit.mean.flatten().tolist() == [127.5] * 3
    small = make_backbone("timm:resnet10t").preprocessing
    assert (small.size, small.short_side, small.interpolation) == (176, None, "bicubic")
    mobile = make_backbone("torchvision:mobilenet_v3_small", centre_crop=True).preprocessing
    assert mobile == Preprocessing(224, "bilinear", 256)


def test_what_is_built_in_stretches_as_ever() -> None:
    assert make_backbone("resnet50").preprocessing == Preprocessing(224, "bilinear", None)
    assert make_backbone(tiny(), size=64).preprocessing == Preprocessing(64)


def test_a_backbone_keeps_its_own_way_at_another_size() -> None:
    own = Backbone(tiny(), preprocessing=Preprocessing(224, "bicubic", 256))
    made = pretrained_backbone(own, None, [], 112, CPU)
    assert made.preprocessing == Preprocessing(112, "bicubic", 128)
    assert own.preprocessing.size == 224  # a copy was changed


def test_a_network_of_one_size_is_made_for_another() -> None:
    backbone = pretrained_backbone("timm:vit_tiny_patch16_224", None, [], 64, CPU)
    assert backbone.preprocessing.size == 64
    assert backbone.count_features() == 1000


def test_a_size_that_a_network_does_not_take_is_refused() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(len(x), 3 * 16 * 16)

    assert pretrained_backbone(Square(), None, [], 16, CPU).count_features() == 3 * 16 * 16
    with pytest.raises(ComesError, match="does not take pictures of 20 x 20 .*Leave image_size"):
        pretrained_backbone(Square(), None, [], 20, CPU)


def test_pixels_are_what_the_network_wants() -> None:
    own = Preprocessing(16, "bicubic", 20)
    pictures = [picture(40, 60), picture(60, 40)]
    (pixels,) = PixelRows(pictures, own, CPU).batches([torch.arange(2)])
    expected = np.stack([own.apply(one) for one in pictures]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(pixels, expected)


# Features


def test_pixels_are_normalised_and_maps_averaged() -> None:
    pixels, mean, std = some_pixels(), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    parts = [(pixels[:, c] / 255 - mean[c]) / std[c] for c in range(3)]
    expected = torch.stack(parts, dim=1)
    own = Preprocessing(mean=mean, std=std)
    torch.testing.assert_close(Backbone(nn.Flatten(), None, own)(pixels), expected.flatten(1))
    maps = Backbone(nn.Identity(), None, own)
    torch.testing.assert_close(maps(pixels), expected.mean(dim=(2, 3)))
    assert maps.count_features(8) == 3


def test_counting_features_leaves_the_mode_alone() -> None:
    backbone = Backbone(tiny()).train()
    statistics = copy.deepcopy(backbone.state_dict())
    assert backbone.count_features(32) == 256
    assert backbone.training
    for name, tensor in backbone.state_dict().items():
        torch.testing.assert_close(tensor, statistics[name], rtol=0, atol=0)
    assert backbone.eval().count_features(32) == 256
    assert not backbone.training


def test_class_features_are_roots_of_probabilities_at_the_temperature() -> None:
    classifier = nn.Linear(256, 6)
    backbone = Backbone(tiny(), classifier, temperature=3.0).eval()
    with torch.no_grad():
        features = backbone(some_pixels())
        pooled = Backbone(backbone.network).eval()(some_pixels())
        heights = (classifier(pooled) / 3).exp()
        expected = (heights / heights.sum(dim=1, keepdim=True)).sqrt()
        torch.testing.assert_close(features, expected)
        torch.testing.assert_close(backbone.class_features(pooled), expected)
    torch.testing.assert_close(features.square().sum(dim=1), torch.ones(8))


def test_gradients_are_finite_where_a_class_is_impossible() -> None:
    classifier = nn.Linear(1, 2)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor([[400.0], [-400.0]]))
    pooled = torch.ones(1, 1, requires_grad=True)
    Backbone(nn.Identity(), classifier).class_features(pooled)[0, 0].backward()
    assert pooled.grad is not None
    assert pooled.grad.isfinite().all()


def test_roots_of_probabilities_by_plain_loops() -> None:
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    found = root_probabilities(scores, 1.7)
    for i in range(5):
        heights = [np.exp(float(scores[i, j]) / 1.7) for j in range(4)]
        for j in range(4):
            assert float(found[i, j]) == pytest.approx((heights[j] / sum(heights)) ** 0.5, rel=1e-5)


# Networks of timm and torchvision


def test_torchvision_can_be_imported_again_and_its_models_compute() -> None:
    first, second = (import_torchvision("a test") for _ in range(2))
    assert first is second
    gc.collect()
    assert hasattr(torch.ops.torchvision, "nms")  # what was declared stays so
    with torch.no_grad():
        assert first.models.mobilenet_v3_small().eval()(torch.zeros(1, 3, 32, 32)).shape == (
            1,
            1000,
        )


def test_networks_of_libraries_are_backbones_with_a_classifier() -> None:
    for name, n_pooled in (("timm:resnet10t", 512), ("torchvision:mobilenet_v3_small", 1024)):
        backbone = make_backbone(name).eval()
        assert isinstance(backbone.classifier, nn.Linear)
        assert backbone.classifier.in_features == n_pooled
        with torch.no_grad():
            assert backbone(some_pixels(2)).shape == (2, 1000)
            backbone.classifier = None
            assert backbone(some_pixels(2)).shape == (2, n_pooled)


def test_the_classifier_of_a_library_gives_the_scores_of_its_network() -> None:
    torchvision = import_torchvision("a test")
    torch.manual_seed(0)
    theirs = torchvision.models.mobilenet_v3_small().eval()
    torch.manual_seed(0)
    backbone = make_backbone("torchvision:mobilenet_v3_small").eval()
    with torch.no_grad():
        scores = theirs(normalised(IMAGENET_MEAN, IMAGENET_STD))
        features = backbone(some_pixels(4))
    expected = (scores / backbone.temperature).softmax(dim=1)
    torch.testing.assert_close(features.square(), expected)


def test_an_unknown_network_is_refused(tmp_path: Path) -> None:
    for name, message in (
        ("resnet18", "backbone must be resnet50, resnet101, resnet152, timm:NAME"),
        ("timm:", "backbone must be"),
        ("hub:resnet50", "backbone must be"),
        ("timm:resnet51t", "timm has no model 'resnet51t'"),
        ("timm:resnet10t.none", "timm:resnet10t.none could not be loaded"),
        ("torchvision:resnet51", "torchvision has no model 'resnet51'"),
        ("torchvision:fcn_resnet50", "no model 'fcn_resnet50' that classifies"),
        (str(tmp_path), f"For a folder write folder:{tmp_path}"),
    ):
        with pytest.raises(ComesError, match=message):
            make_backbone(name)


def test_a_network_without_a_linear_layer_has_no_classifier() -> None:
    assert make_backbone("torchvision:squeezenet1_1").classifier is None


def test_a_module_becomes_a_backbone_and_a_backbone_stays_one() -> None:
    backbone = make_backbone(tiny())
    assert backbone.classifier is None
    assert make_backbone(backbone) is backbone


# Folders of timm and transformers


def save_with_timm(folder: Path, name: str = "resnet10t", **settings: Any) -> Any:
    """Save a network with random weights; return it."""
    import_torchvision("a test")
    import timm

    torch.manual_seed(0)
    network: Any = timm.create_model(name, **settings)
    timm.models.save_for_hf(network, str(folder), model_args=settings, safe_serialization=True)
    return network.eval()


def save_with_transformers(folder: Path, name: str, **settings: Any) -> Any:
    """Save a small network of transformers with random weights; return it."""
    import_torchvision("a test")
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = getattr(transformers, f"{name.removesuffix('WithProjection')[:-5]}Config")
    network = getattr(transformers, name)(config(**sizes, patch_size=8, image_size=32, **settings))
    network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(
            {
                "size": {"shortest_edge": 36},
                "do_center_crop": True,
                "crop_size": {"height": 32, "width": 32},
                "resample": 3,
                "image_mean": CLIP_MEAN,
                "image_std": CLIP_STD,
            }
        )
    )
    return network.eval()


def test_a_folder_of_timm_is_the_network_that_was_saved(tmp_path: Path) -> None:
    network = save_with_timm(tmp_path, num_classes=7)
    backbone = make_backbone(f"folder:{tmp_path}").eval()
    own = backbone.preprocessing
    assert (own.size, own.interpolation, own.short_side) == (176, "bicubic", None)
    with torch.no_grad():
        scores = network(normalised(own.mean, own.std))
        features = backbone(some_pixels(4))
    expected = (scores / backbone.temperature).softmax(dim=1)
    torch.testing.assert_close(features.square(), expected)


def test_a_transformer_of_timm_without_classes_has_pooled_features(tmp_path: Path) -> None:
    network = save_with_timm(tmp_path, "vit_tiny_patch16_224", num_classes=0, img_size=32)
    backbone = make_backbone(f"folder:{tmp_path}", size=32).eval()
    assert backbone.classifier is None
    with torch.no_grad():
        expected = network(normalised((0.5,) * 3, (0.5,) * 3))
        torch.testing.assert_close(backbone(some_pixels(4)), expected)
        assert make_backbone(f"folder:{tmp_path}", size=64)(some_pixels(4).repeat(1, 1, 2, 2)).ndim


@pytest.mark.parametrize(
    ("name", "settings", "size"),
    [
        ("resnet10t", {"num_classes": 7}, 64),
        ("vit_tiny_patch16_224", {"num_classes": 0, "img_size": 32}, 32),
        ("vit_tiny_patch16_224", {"num_classes": 0, "img_size": 32}, 64),
    ],
)
def test_a_config_makes_the_network_again(
    name: str, settings: Any, size: int, tmp_path: Path
) -> None:
    save_with_timm(tmp_path, name, **settings)
    first = make_backbone(f"folder:{tmp_path}", size=size).eval()
    stored = json.loads(json.dumps(first.config))
    again = make_backbone("folder:elsewhere", size=size, config=stored).eval()
    again.load_state_dict(first.state_dict())
    pixels = torch.nn.functional.interpolate(some_pixels(4).float(), (size, size))
    with torch.no_grad():
        torch.testing.assert_close(again(pixels), first(pixels))


@pytest.mark.needs("transformers")
@pytest.mark.parametrize(
    ("name", "settings", "output"),
    [
        ("Dinov2Model", {"mlp_ratio": 2}, "pooler_output"),
        ("ViTModel", {"intermediate_size": 64}, "pooler_output"),
        ("CLIPVisionModel", {"intermediate_size": 64}, "pooler_output"),
        (
            "CLIPVisionModelWithProjection",
            {"intermediate_size": 64, "projection_dim": 16},
            "image_embeds",
        ),
    ],
)
def test_a_folder_of_transformers_gives_the_output_it_names(
    name: str, settings: Any, output: str, tmp_path: Path
) -> None:
    network = save_with_transformers(tmp_path, name, **settings)
    backbone = make_backbone(f"folder:{tmp_path}", centre_crop=True).eval()
    assert backbone.classifier is None
    assert backbone.preprocessing == Preprocessing(32, "bicubic", 36, CLIP_MEAN, CLIP_STD)
    again = make_backbone("folder:elsewhere", config=json.loads(json.dumps(backbone.config)))
    again.load_state_dict(backbone.state_dict(), strict=False)
    again.mean, again.std = backbone.mean, backbone.std
    with torch.no_grad():
        expected = network(normalised(CLIP_MEAN, CLIP_STD))[output]
        torch.testing.assert_close(backbone(some_pixels(4)), expected)
        torch.testing.assert_close(again.eval()(some_pixels(4)), expected)
        assert backbone.count_features(48) == expected.shape[1]  # positions are interpolated


@pytest.mark.needs("transformers")
def test_an_untrained_pooler_is_not_read(tmp_path: Path) -> None:
    network = save_with_transformers(tmp_path, "ViTModel")
    state = {name: t for name, t in network.state_dict().items() if "pooler" not in name}
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    backbone = make_backbone(f"folder:{tmp_path}").eval()
    with torch.no_grad():
        tokens = network(normalised(CLIP_MEAN, CLIP_STD)).last_hidden_state
        torch.testing.assert_close(backbone(some_pixels(4)), tokens[:, 0])
    del state["embeddings.cls_token"]
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ComesError, match="lacks 3 weights .*embeddings.cls_token"):
        make_backbone(f"folder:{tmp_path}")


@pytest.mark.needs("transformers")
def test_a_whole_clip_gives_the_embedding_of_images(tmp_path: Path) -> None:
    import_torchvision("a test")
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 50, "bos_token_id": 0, "eos_token_id": 1},
        vision_config={**sizes, "patch_size": 8, "image_size": 32},
        projection_dim=16,
    )
    network = transformers.CLIPModel(config).eval()
    network.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"size": 32, "image_mean": CLIP_MEAN, "image_std": CLIP_STD})
    )
    backbone = make_backbone(f"folder:{tmp_path}").eval()
    x = normalised(CLIP_MEAN, CLIP_STD)
    with torch.no_grad():
        expected = network.visual_projection(network.vision_model(x).pooler_output)
        torch.testing.assert_close(backbone(some_pixels(4)), expected)


def test_without_transformers_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text('{"model_type": "dinov2"}')
    with pytest.raises(ComesError, match="not installed: pip install transformers"):
        make_backbone(f"folder:{tmp_path}")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="config.json must be a json object.*No such file"):
        make_backbone(f"folder:{tmp_path}")
    for config, message in (
        ("[]", "must be a json object.*it holds a list"),
        ("{", "config.json must be a json object.*Expecting"),
        ("{}", "must name an 'architecture'"),
        ('{"architecture": "resnet51"}', "timm cannot make the network .*resnet51"),
        ('{"architecture": "resnet10t"}', "timm cannot make the network .*checkpoint"),
    ):
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(ComesError, match=message):
            make_backbone(f"folder:{tmp_path}")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ComesError, match="timm cannot make the network .*header too small"):
        make_backbone(f"folder:{tmp_path}")


def test_a_folder_with_weights_of_another_network_is_refused(tmp_path: Path) -> None:
    save_with_timm(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"architecture": "resnet14t"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ComesError, match="timm cannot make the network"):
        make_backbone(f"folder:{tmp_path}")


@pytest.mark.needs("transformers")
def test_a_type_that_transformers_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    for config, message in (
        ({"model_type": "seer"}, "cannot make a network of the type 'seer'"),
        ({"model_type": "bert"}, "type 'bert' does not take pictures"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ComesError, match=message):
            make_backbone(f"folder:{tmp_path}")


@pytest.mark.needs("transformers")
def test_a_folder_without_its_preprocessing_is_refused(tmp_path: Path) -> None:
    save_with_transformers(tmp_path, "ViTModel", intermediate_size=64)
    stored = tmp_path / "preprocessor_config.json"
    stored.write_text(json.dumps({"size": 32, "image_mean": CLIP_MEAN}))
    with pytest.raises(ComesError, match="lacks the mean or std of pixels.*image_std"):
        make_backbone(f"folder:{tmp_path}")
    stored.unlink()
    with pytest.raises(ComesError, match="preprocessor_config.json must be a json object"):
        make_backbone(f"folder:{tmp_path}")


# Files of weights


def as_safetensors(state: dict[str, Tensor], folder: Path) -> Path:
    save_file(state, folder / "weights.safetensors")
    return folder / "weights.safetensors"


def as_pth(state: Any, folder: Path) -> Path:
    torch.save(state, folder / "weights.pth")
    return folder / "weights.pth"


def in_a_checkpoint(state: dict[str, Tensor], folder: Path) -> Path:
    renamed = {f"module.{name}": tensor for name, tensor in state.items()}
    return as_pth({"epoch": 3, "state_dict": renamed}, folder)


def in_a_model(state: dict[str, Tensor], folder: Path) -> Path:
    return as_pth({"model": state, "optimizer": {"lr": 0.1}}, folder)


@pytest.mark.parametrize("write", [as_safetensors, as_pth, in_a_checkpoint, in_a_model])
def test_weights_are_read_from_every_usual_file(
    write: Callable[[dict[str, Tensor], Path], Path], tmp_path: Path
) -> None:
    source = randomised(tiny(), seed=1).state_dict()
    for dtype in (torch.float32, torch.float16):
        stored = {k: v.to(dtype) if v.is_floating_point() else v for k, v in source.items()}
        backbone = Backbone(tiny(), nn.Linear(256, 9))
        load_weights(backbone, str(write(stored, tmp_path)))
        loaded = backbone.network.state_dict()
        for name, tensor in stored.items():
            assert loaded[name].dtype == source[name].dtype
            torch.testing.assert_close(loaded[name], tensor.to(source[name].dtype), rtol=0, atol=0)
        assert backbone.classifier is None  # the file has none, and that of other weights is wrong


def test_counts_of_batches_may_be_absent(tmp_path: Path) -> None:
    state = {k: v for k, v in randomised(tiny(), 1).state_dict().items() if "num_batches" not in k}
    backbone = Backbone(tiny())
    load_weights(backbone, as_safetensors(state, tmp_path))
    torch.testing.assert_close(backbone.network.state_dict()["bn1.weight"], state["bn1.weight"])


def test_a_linear_layer_on_top_becomes_the_classifier(tmp_path: Path) -> None:
    weight, bias = torch.randn(7, 256).half(), torch.randn(7).half()
    for top in ("fc", "head", "heads", "classifier.1"):
        path = as_pth({**STATE, f"{top}.weight": weight, f"{top}.bias": bias}, tmp_path)
        backbone = Backbone(tiny())
        load_weights(backbone, path)
        assert backbone.classifier is not None, top
        assert torch.equal(backbone.classifier.weight, weight.float())
        assert torch.equal(backbone.classifier.bias, bias.float())
        assert backbone.eval()(some_pixels()).shape == (8, 7)


def test_more_than_a_linear_layer_on_top_is_left_out(tmp_path: Path) -> None:
    ones = torch.ones
    two_layers = {"head.0.weight": ones(9, 256), "head.0.bias": ones(9)}
    two_layers |= {"head.1.weight": ones(7, 9), "head.1.bias": ones(7)}
    convolution = {"classifier.1.weight": ones(7, 256, 1, 1), "classifier.1.bias": ones(7)}
    for top in (two_layers, convolution):
        backbone = Backbone(tiny())
        load_weights(backbone, as_pth({**STATE, **top}, tmp_path))
        assert backbone.classifier is None


@pytest.mark.parametrize(
    ("name", "tensor", "how"),
    [
        ("layer3.0.conv2.weight", None, "missing"),
        ("layer5.0.bias", torch.zeros(1), "not wanted"),
        ("conv1.weight", torch.zeros(8, 1, 7, 7), "of another shape"),
    ],
)
def test_weights_of_another_network_are_refused_by_name(
    name: str, tensor: Tensor | None, how: str, tmp_path: Path
) -> None:
    state: dict[str, Any] = randomised(tiny(), seed=1).state_dict() | {name: tensor}
    state = {key: value for key, value in state.items() if value is not None}
    backbone = Backbone(tiny())
    with pytest.raises(ComesError, match=rf"network: 1 {how} \('{name}'\)\. Name"):
        load_weights(backbone, as_pth(state, tmp_path))
    for key, value in backbone.network.state_dict().items():  # not even those that fit
        assert torch.equal(value, STATE[key])


def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    for ending in (".pth", ".safetensors"):
        path = tmp_path / f"weights{ending}"
        with pytest.raises(ComesError, match="there is no file of weights at .*weights"):
            load_weights(Backbone(tiny()), path)
        for content in ("no weights, but a text\n", ""):
            path.write_text(content)
            with pytest.raises(ComesError, match=f"weights{ending} must be safetensors or"):
                load_weights(Backbone(tiny()), path)
    objects: list[Any] = [[1, 2], {"epoch": 3}, torch.zeros(2), {1: torch.zeros(2)}]
    for content in objects:
        with pytest.raises(ComesError, match="it cannot be read as such .it holds other objects"):
            load_weights(Backbone(tiny()), as_pth(content, tmp_path))


class Dangerous:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "save", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))]
)
def test_code_in_a_file_is_not_run(save: Callable[[Any, Path], object], tmp_path: Path) -> None:
    path, trace = tmp_path / "weights.pth", tmp_path / "trace"
    save({"conv1.weight": Dangerous(trace)}, path)
    with pytest.raises(ComesError, match="must be safetensors or a state dict"):
        load_weights(Backbone(tiny()), path)
    assert not trace.exists()
