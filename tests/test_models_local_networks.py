"""Networks in a folder, as timm and transformers save them: nothing is downloaded."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from comes.errors import ComesError
from comes.models import Preprocessing, make_backbone
from comes.models.backbones import import_torchvision
from pictures import some_pixels

CLIP_MEAN, CLIP_STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)


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


def normalised(mean: Any, std: Any) -> torch.Tensor:
    """Return pictures as a network takes them, without a backbone."""
    return (some_pixels(4) / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[
        :, None, None
    ]


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
    from safetensors.torch import save_file

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
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text('{"model_type": "dinov2"}')
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ComesError, match="not installed: pip install transformers"):
        make_backbone(f"folder:{tmp_path}")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    weights = {"model.safetensors": ""}
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "config.json must be a json object.*No such file"),
        ({"config.json": '{"architecture": "resnet10t"}'}, "timm cannot make the network"),
        ({"config.json": "[]"}, "must be a json object.*it holds a list"),
        ({"config.json": "{"}, "config.json must be a json object.*Expecting"),
        ({"config.json": "{}", **weights}, "must name an 'architecture'"),
        (
            {"config.json": '{"architecture": "resnet51"}', **weights},
            "timm cannot make the network .*resnet51",
        ),
        (
            {"config.json": '{"architecture": "resnet10t"}', **weights},
            "timm cannot make the network .*header too small",
        ),
    ]
    for number, (files, message) in enumerate(wrong):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        with pytest.raises(ComesError, match=message):
            make_backbone(f"folder:{folder}")


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
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
