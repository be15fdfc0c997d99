"""Pictures for people to try the page on: small scenes drawn by chance, and what is in them."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

WIDTH, HEIGHT, FINER = 640, 480, 2  # drawn finer than shown: edges become smooth
HORIZON = 0.58  # of the height
CLASSES = {
    "boat": "with a sail, on the water",
    "house": "with a roof",
    "tree": "of any kind",
    "sun": "the whole sun, or a part of it",
    "cloud": "of any size",
    "bird": "in the air",
    "car": "on the ground",
    "flower": "in the grass",
}
PRESENT = 0.3  # how likely each is in a scene
SKIES = (
    ((120, 190, 240), (228, 243, 252)),
    ((250, 178, 120), (255, 232, 190)),
    ((150, 160, 215), (236, 226, 245)),
    ((92, 160, 205), (205, 232, 238)),
)
GRASS = ((126, 178, 96), (150, 190, 105), (108, 164, 110), (184, 190, 116))
WATER = ((72, 138, 186), (86, 158, 176), (60, 118, 160))
BRIGHT = ((216, 80, 70), (236, 146, 60), (66, 110, 180), (150, 84, 150), (240, 196, 72))
WALLS = ((244, 228, 200), (232, 206, 190), (214, 224, 232), (250, 246, 236))
Rng = np.random.Generator


def draw_scene(rng: Rng, path: Path) -> list[str]:
    """Write a picture, and return the classes that it shows."""
    from PIL import Image, ImageDraw

    size = WIDTH * FINER, HEIGHT * FINER
    shown = [name for name in CLASSES if rng.random() < PRESENT]
    picture = Image.new("RGB", size)
    pen = ImageDraw.Draw(picture)
    _draw_ground(pen, rng, size, with_water="boat" in shown or rng.random() < 0.3)
    for name in ("sun", "cloud", "bird", "boat", "house", "tree", "car", "flower"):
        if name in shown:
            for _ in range(int(rng.integers(1, HOW_MANY[name] + 1))):
                DRAWN[name](pen, rng, size)
    picture.resize((WIDTH, HEIGHT), Image.Resampling.BOX).save(path, quality=92)
    return shown


def _draw_ground(pen: "ImageDraw", rng: Rng, size: tuple[int, int], *, with_water: bool) -> None:
    """Draw a sky, hills, and water on the left half if there is any."""
    width, height = size
    top, bottom = (np.array(colour) for colour in _pick(rng, SKIES))
    edge = int(HORIZON * height)
    for y in range(0, edge, 4):
        colour = tuple(np.rint(top + (bottom - top) * y / edge).astype(int).tolist())
        pen.rectangle((0, y, width, y + 4), fill=colour)
    grass = _pick(rng, GRASS)
    for _ in range(int(rng.integers(1, 4))):
        x, w = rng.uniform(0, width), rng.uniform(0.3, 0.7) * width
        h = rng.uniform(0.06, 0.2) * height
        pen.ellipse((x - w / 2, edge - h, x + w / 2, edge + h), fill=_shade(grass, 0.8))
    pen.rectangle((0, edge, width, height), fill=grass)
    if with_water:
        end = 0.47 * width
        shore = [(0, edge), (end, edge), (end * 0.9, 0.85 * height), (end * 0.5, height)]
        pen.polygon([*shore, (0, height)], fill=_pick(rng, WATER))


def _draw_sun(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.08, 0.92), (0.06, 0.3), (0.04, 0.075))
    for k in range(12):
        angle = 2 * math.pi * k / 12
        ends = [(x + f * r * math.cos(angle), y + f * r * math.sin(angle)) for f in (1.25, 1.7)]
        pen.line(ends, fill=(255, 205, 70), width=max(3, int(r / 8)))
    _circle(pen, x, y, r, (255, 214, 80))


def _draw_cloud(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.1, 0.9), (0.08, 0.35), (0.03, 0.055))
    for dx, dy, f in ((-1.3, 0.25, 0.8), (0, -0.2, 1.15), (1.3, 0.2, 0.85), (0.5, 0.4, 0.9)):
        _circle(pen, x + dx * r, y + dy * r, f * r, (250, 252, 255))


def _draw_bird(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.1, 0.9), (0.08, 0.45), (0.018, 0.032))
    width = max(4, int(r / 5))
    for left, start, end in ((x - 2 * r, 200, 345), (x, 195, 340)):
        pen.arc((left, y - r, left + 2 * r, y + r), start, end, fill=(52, 54, 70), width=width)


def _draw_boat(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.08, 0.3), (0.63, 0.8), (0.04, 0.065))
    hull = _pick(rng, BRIGHT)
    corners = [(-1.6, 0), (1.6, 0), (1.0, 0.7), (-1.0, 0.7)]
    pen.polygon([(x + dx * r, y + dy * r) for dx, dy in corners], fill=hull)
    pen.line((x, y, x, y - 2.6 * r), fill=(96, 72, 56), width=max(3, int(r / 7)))
    sail = [(0.12, -2.5), (0.12, -0.25), (1.35, -0.25)]
    pen.polygon([(x + dx * r, y + dy * r) for dx, dy in sail], fill=(252, 250, 244))
    jib = [(-0.12, -2.2), (-0.12, -0.25), (-1.1, -0.25)]
    pen.polygon([(x + dx * r, y + dy * r) for dx, dy in jib], fill=(242, 226, 206))


def _draw_house(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.56, 0.92), (0.58, 0.72), (0.05, 0.08))
    wall, roof = _pick(rng, WALLS), _pick(rng, ((168, 74, 60), (120, 84, 74), (92, 104, 130)))
    pen.rectangle((x - r, y - r, x + r, y + 0.5 * r), fill=wall)
    pen.polygon([(x - 1.25 * r, y - r), (x + 1.25 * r, y - r), (x, y - 2 * r)], fill=roof)
    pen.rectangle((x - 0.2 * r, y - 0.35 * r, x + 0.2 * r, y + 0.5 * r), fill=(110, 76, 58))
    for side in (-1, 1):
        corner = x + side * 0.62 * r
        pane = (corner - 0.2 * r, y - 0.6 * r, corner + 0.2 * r, y - 0.15 * r)
        pen.rectangle(pane, fill=(140, 190, 220), outline=(90, 90, 96), width=3)


def _draw_tree(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.5, 0.95), (0.62, 0.8), (0.04, 0.065))
    pen.rectangle((x - 0.18 * r, y - r, x + 0.18 * r, y + 0.4 * r), fill=(112, 82, 58))
    leaves = _pick(rng, ((58, 122, 66), (82, 140, 62), (196, 128, 50), (44, 104, 84)))
    if rng.random() < 0.4:
        for k in range(3):
            top, w = y - (3.2 - 0.75 * k) * r, (0.75 + 0.3 * k) * r
            pen.polygon([(x, top), (x - w, top + 1.25 * r), (x + w, top + 1.25 * r)], fill=leaves)
        return
    for dx, dy, f in ((-0.6, -1.4, 0.85), (0.6, -1.4, 0.85), (0, -2.0, 1.0)):
        _circle(pen, x + dx * r, y + dy * r, f * r, leaves)


def _draw_car(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.55, 0.9), (0.8, 0.92), (0.035, 0.05))
    paint = _pick(rng, BRIGHT)
    roof = [(-1.0, -0.6), (-0.6, -1.3), (0.7, -1.3), (1.2, -0.6)]
    pen.polygon([(x + dx * r, y + dy * r) for dx, dy in roof], fill=_shade(paint, 0.85))
    glass = [(-0.45, -1.15), (0.6, -1.15), (0.9, -0.62), (-0.7, -0.62)]
    pen.polygon([(x + dx * r, y + dy * r) for dx, dy in glass], fill=(206, 228, 240))
    body = (x - 1.8 * r, y - 0.65 * r, x + 1.8 * r, y + 0.15 * r)
    pen.rounded_rectangle(body, radius=0.25 * r, fill=paint)
    for side in (-1, 1):
        _circle(pen, x + side * r, y + 0.15 * r, 0.42 * r, (42, 42, 48))
        _circle(pen, x + side * r, y + 0.15 * r, 0.18 * r, (190, 190, 196))


def _draw_flower(pen: "ImageDraw", rng: Rng, size: tuple[int, int]) -> None:
    x, y, r = _place(rng, size, (0.3, 0.95), (0.86, 0.95), (0.011, 0.017))
    pen.line((x, y, x, y + 4 * r), fill=(52, 112, 60), width=max(3, int(r / 2)))
    petals = _pick(rng, (*BRIGHT, (250, 240, 246), (240, 150, 190)))
    for k in range(6):
        angle = math.pi * k / 3
        _circle(pen, x + r * math.cos(angle), y + r * math.sin(angle), 0.7 * r, petals)
    _circle(pen, x, y, 0.6 * r, (250, 210, 70))


Colour = tuple[int, int, int]
DRAWN: dict[str, Callable[["ImageDraw", Rng, tuple[int, int]], None]] = {
    "boat": _draw_boat,
    "house": _draw_house,
    "tree": _draw_tree,
    "sun": _draw_sun,
    "cloud": _draw_cloud,
    "bird": _draw_bird,
    "car": _draw_car,
    "flower": _draw_flower,
}
HOW_MANY = {
    "boat": 2,
    "house": 2,
    "tree": 3,
    "sun": 1,
    "cloud": 3,
    "bird": 4,
    "car": 1,
    "flower": 5,
}


def _place(
    rng: Rng,
    size: tuple[int, int],
    across: tuple[float, float],
    down: tuple[float, float],
    radius: tuple[float, float],
) -> tuple[float, float, float]:
    """Return a place and a size in pixels; the shares are of the width, the height, the width."""
    width, height = size
    return rng.uniform(*across) * width, rng.uniform(*down) * height, rng.uniform(*radius) * width


def _circle(pen: "ImageDraw", x: float, y: float, r: float, colour: Colour) -> None:
    pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _pick(rng: Rng, among: Sequence[Any]) -> Any:
    return among[int(rng.integers(len(among)))]


def _shade(colour: Colour, share: float) -> Colour:
    red, green, blue = (int(part * share) for part in colour)
    return red, green, blue
