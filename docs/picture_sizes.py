"""Sizes of pictures on a page, so that the text does not move when they arrive."""

import re
import struct
from pathlib import Path

IMAGE = re.compile(r'<img (?![^>]*\bwidth=)([^>]*?)src="([^":]+)"')
SVG_SIZE = re.compile(r'<svg[^>]*?\sviewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', re.DOTALL)


def with_sizes(html: str, folder: Path) -> str:
    """Return a page in which every picture of the site says its width and height."""

    def sized(image: re.Match[str]) -> str:
        size = read_size(folder / image[2])
        shown = f'width="{size[0]}" height="{size[1]}" ' if size else ""
        return f'<img {shown}{image[1]}src="{image[2]}"'

    return IMAGE.sub(sized, html)


def read_size(path: Path) -> tuple[int, int] | None:
    """Return the width and height of a PNG or SVG file; None of others."""
    if path.suffix == ".png" and path.exists():
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        return width, height
    if path.suffix == ".svg" and path.exists():
        found = SVG_SIZE.search(path.read_text(encoding="utf-8"))
        return (round(float(found[1])), round(float(found[2]))) if found else None
    return None
