"""Pictures: broken, of other modes, too large, missing, outside of their folder."""

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from comes import ImageClassifier
from comes.datasets import open_dataset, open_images
from hostile.casework import Place, handled, refused, refused_commands, said
from hostile.materials import LABELS, candidates, copy_model, text_of

AREA = "pictures"
SHOW = "datasets d.csv --labels maybe --images photos"
N = 8


def _picture(seed: int = 0, mode: str = "RGB") -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def _content(picture: Image.Image, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form)
    return buffer.getvalue()


def _write(place: Place, **others: bytes) -> None:
    """Write pictures and a table of them, with other content for some (``p3``: picture 3)."""
    names = [f"{k}.png" for k in range(N)]
    for k, name in enumerate(names):
        place.write(f"photos/{name}", others.get(f"p{k}", _content(_picture(k))))
    cells = [";".join(np.array(LABELS)[row]) for row in candidates()[:N]]
    place.write("d.csv", text_of(pd.DataFrame({"image": names, "maybe": cells})))


def _read(place: Place) -> np.ndarray:
    found = open_dataset("d.csv", labels=["maybe"], images="photos")
    return np.asarray(found.known_images()[3])


def _bomb() -> bytes:
    """Return a picture of 100000 x 100000 pixels in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@said(AREA, r"3\.png")
def _a_picture_that_was_cut(place: Place) -> object:
    _write(place, p3=_content(_picture(3))[:200])
    return place.comes(SHOW)


@said(AREA, r"3\.png")
def _a_picture_that_is_a_page_of_html(place: Place) -> object:
    _write(place, p3=b"<!doctype html><title>404</title>")
    return place.comes(SHOW)


@said(AREA, r"3\.png")
def _an_empty_picture(place: Place) -> object:
    _write(place, p3=b"")
    return place.comes(SHOW)


@said(AREA, r"3\.png")
def _a_picture_that_unpacks_to_ten_gigabytes(place: Place) -> object:
    _write(place, p3=_bomb())
    return place.comes(SHOW)


@refused(AREA, r"9\.png|missing|not there")
def _a_picture_that_is_missing(place: Place) -> object:
    _write(place)
    place.write("d.csv", "image,maybe\n0.png,sea;sky\n9.png,sky\n1.png,sea\n")
    return place.comes(SHOW)


@said(AREA, r"3\.png")
def _broken_pictures_are_left_out_by_name(place: Place) -> object:
    _write(place, p3=b"broken")
    return place.comes(SHOW + " --skip-broken")


@refused(AREA, r"out of|outside|\.\./")
def _a_name_that_leads_out_of_the_folder(place: Place) -> object:
    _write(place)
    place.write("secret.png", _content(_picture()))
    place.write("d.csv", "image,maybe\n../secret.png,sea;sky\n1.png,sky\n")
    return place.comes(SHOW)


@refused(AREA, r"differ|1\.png|twice|again")
def _a_picture_twice(place: Place) -> object:
    _write(place)
    place.write("d.csv", "image,maybe\n1.png,sea;sky\n1.png,sky\n")
    return place.comes(SHOW)


@handled(AREA)
def _grey_pictures(place: Place) -> object:
    _write(place, p3=_content(_picture(3, "L")))
    return _read(place).shape == (24, 32, 3)


@handled(AREA)
def _pictures_with_a_palette(place: Place) -> object:
    _write(place, p3=_content(_picture(3, "P")))
    return _read(place).shape == (24, 32, 3)


@handled(AREA)
def _transparent_pictures(place: Place) -> object:
    _write(place, p3=_content(_picture(3, "RGBA")))
    return _read(place).shape == (24, 32, 3)


@handled(AREA)
def _pictures_of_a_printer(place: Place) -> object:
    _write(place, p3=_content(_picture(3, "CMYK"), "JPEG"))
    return _read(place).shape == (24, 32, 3)


@handled(AREA)
def _pictures_of_sixteen_bits(place: Place) -> object:
    deep = Image.fromarray(np.linspace(0, 65535, 24 * 32, dtype=np.uint16).reshape(24, 32))
    _write(place, p3=_content(deep))
    pixels = _read(place)
    return bool(pixels.shape == (24, 32, 3) and pixels.max() > 250 and 100 < pixels.mean() < 150)


@handled(AREA)
def _a_picture_on_its_side(place: Place) -> object:
    picture = _picture(3)
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", exif=exif)
    _write(place, p3=buffer.getvalue())
    return _read(place).shape == (32, 24, 3)


@handled(AREA)
def _a_picture_of_one_pixel(place: Place) -> object:
    _write(place, p3=_content(Image.new("RGB", (1, 1))))
    return _read(place).shape == (1, 1, 3)


@refused(AREA, r"zip")
def _a_zip_that_is_none(place: Place) -> object:
    _write(place)
    place.write("photos.zip", b"PK\x03\x04 but no")
    return place.comes("datasets d.csv --labels maybe --images photos.zip")


@refused(AREA, r"picture|image")
def _a_zip_without_pictures(place: Place) -> object:
    with zipfile.ZipFile("photos.zip", "w") as packed:
        packed.writestr("read me.txt", "hello")
    return place.comes("datasets convert photos.zip -o f.npz")


@refused(AREA, r"image|picture")
def _a_folder_without_pictures(place: Place) -> object:
    (place.folder / "photos").mkdir()
    return place.comes("datasets convert photos -o f.npz")


@refused(AREA, r"image|item|file|column")
def _a_table_that_names_no_pictures(place: Place) -> object:
    _write(place)
    place.write("d.csv", "who,maybe\n0.png,sea;sky\n1.png,sky\n")
    return place.comes(SHOW)


@refused(AREA, r"table|image|rows|columns")
def _pictures_for_a_model_of_tables(place: Place) -> object:
    _write(place)
    copy_model(place.folder)
    return place.comes("predict photos --model model -o p.csv")


@refused(AREA, r"nowhere")
def _weights_that_are_not_there(place: Place) -> object:
    _write(place)
    return place.comes("fit d.csv --labels maybe --images photos --set weights=nowhere.pth -o m")


@refused(AREA, r"weights|w\.pth|cannot|read")
def _weights_that_are_text(place: Place) -> object:
    _write(place)
    place.write("w.pth", "these are no weights")
    return place.comes("fit d.csv --labels maybe --images photos --set weights=w.pth -o m")


@refused(AREA, r"resnet50|timm:")
def _a_backbone_that_does_not_exist(place: Place) -> object:
    _write(place)
    return place.comes("fit d.csv --labels maybe --images photos --backbone resnet99 -o m")


@refused(AREA, r"nowhere|folder")
def _a_backbone_in_no_folder(place: Place) -> object:
    _write(place)
    return place.comes("fit d.csv --labels maybe --images photos --backbone folder:nowhere -o m")


@refused(AREA, r"image.size|8")
def _pictures_of_two_pixels(place: Place) -> object:
    _write(place)
    return place.comes("fit d.csv --labels maybe --images photos --set image_size=2 -o m")


@refused(AREA, r"augment|flip")
def _an_augmentation_that_does_not_exist(place: Place) -> object:
    _write(place)
    return place.comes("fit d.csv --labels maybe --images photos --augment rain -o m")


@refused(AREA, r"neither a folder")
def _images_that_are_a_file(_: Place) -> object:
    return open_images(Path("new.csv"), ["a.png"])


@refused(AREA, r"shape|height|pixels|channel|3")
def _pixels_of_two_channels(_: Place) -> object:
    pixels = np.zeros((N, 8, 8, 2), dtype=np.uint8)
    return ImageClassifier(weights=None, verbose=-1).fit(pixels, candidates()[:N])


@refused(AREA, r"uint8|0 to 255|integer|type")
def _pixels_between_0_and_1(_: Place) -> object:
    pixels = np.random.default_rng(0).random((N, 16, 16, 3))
    return ImageClassifier(weights=None, verbose=-1).fit(pixels, candidates()[:N])


@refused(AREA, r"nowhere")
def _images_in_a_folder_that_is_not_there(place: Place) -> object:
    _write(place)
    return place.comes("datasets d.csv --labels maybe --images nowhere")


refused_commands(
    AREA,
    {
        "features of a folder that is not there": (
            "datasets convert nowhere/ --backbone resnet50 -o f.npz",
            r"nowhere",
        ),
    },
)
