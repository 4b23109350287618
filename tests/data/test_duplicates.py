from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance

from gbdgc.data.duplicates import Portrait, portrait, same_pictures


def portraits(*images: Image.Image) -> list[Portrait]:
    return [portrait(np.asarray(image.convert("RGB"))) for image in images]


def recompressed(image: Image.Image) -> Image.Image:
    buffer = BytesIO()
    image.save(buffer, "JPEG", quality=30)
    return Image.open(buffer)


def marked(image: Image.Image) -> Image.Image:
    stamped = image.copy()
    ImageDraw.Draw(stamped).text((90, 150), "example.org", fill="white", font_size=60)
    return Image.blend(image, stamped, 0.2)


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "equal": lambda image: image,
    "recompressed": recompressed,
    "smaller": lambda image: image.resize((image.width // 3, image.height // 3)),
    "grey": lambda image: image.convert("L"),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.15),
    "marked": marked,
    "cropped": lambda image: image.crop((8, 0, image.width, image.height - 6)),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_is_known_again(kind, scene):
    original = scene(1, 480, 360)
    others = [scene(seed, 480, 360) for seed in range(2, 8)]
    assert same_pictures(portraits(*others[:3], original, *others[3:], COPIES[kind](original))) == [[3, 7]]


def test_other_moments_of_one_camera_are_other_pictures(scene):
    place = scene(1, 480, 360)
    random = np.random.default_rng(0)
    frames = []
    for _ in range(20):
        frame = place.copy()
        for x, y in random.uniform((0, 100), (440, 300), (8, 2)):
            ImageDraw.Draw(frame).rectangle((x, y, x + 22, y + 50), fill=tuple(random.integers(0, 255, 3)))
        frames.append(frame)
    assert same_pictures(portraits(*frames)) == []


def test_many_different_pictures_are_all_different(scene):
    assert same_pictures(portraits(*(scene(seed) for seed in range(200)))) == []


def test_copies_of_copies_are_one_group(scene):
    original, other = scene(1), scene(2)
    assert same_pictures(portraits(original, other, recompressed(original), original, recompressed(other))) == [
        [0, 2, 3],
        [1, 4],
    ]


def test_black_is_not_white_and_nothing_is_like_nothing_else():
    blanks = [Image.new("RGB", (64, 48), colour) for colour in ("black", "white", "black")]
    assert same_pictures(portraits(*blanks)) == [[0, 2]]
    assert same_pictures([]) == []
    assert same_pictures(portraits(blanks[0])) == []
