import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gbdgc.data.images import image_orientation, image_size, mean_luminance, raise_pillow_limit, read_image
from gbdgc.errors import InputError
from hostile_pictures import png_header

ORIENTATION = 0x0112


def gradient(width=16, height=12):
    """A picture whose every corner is different."""
    ys, xs = np.mgrid[:height, :width]
    return np.stack([xs * 255 // width, ys * 255 // height, np.full_like(xs, 90)], axis=-1).astype(np.uint8)


def encode(image, format="PNG", **options):
    buffer = BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_lossless_pictures_come_back_as_they_were(format):
    options = {"lossless": True} if format == "WEBP" else {}
    data = encode(Image.fromarray(gradient()), format, **options)
    assert np.array_equal(read_image(data), gradient())
    assert image_size(data) == (16, 12)


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "RGBA", "LA", "YCbCr", "I;16", "F"])
def test_every_mode_becomes_rgb_of_eight_bits(mode):
    grey = Image.fromarray(gradient()).convert("L")
    image = Image.fromarray(np.asarray(grey, np.uint16) * 257) if mode == "I;16" else grey.convert(mode)
    format = "TIFF" if mode in {"CMYK", "YCbCr", "F"} else "PNG"
    pixels = read_image(encode(image, format))
    assert (pixels.shape, pixels.dtype) == ((12, 16, 3), np.uint8)
    assert pixels[:, -1].mean() > pixels[:, 0].mean() + 50


def test_sixteen_bits_are_scaled_not_clipped():
    values = np.linspace(0, 65535, 16 * 12).reshape(12, 16).astype(np.uint16)
    pixels = read_image(encode(Image.fromarray(values)))
    assert np.abs(pixels[..., 0].astype(float) - values / 257).max() <= 1


def test_what_is_transparent_is_white_also_in_a_palette():
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert (read_image(encode(clear)) == 255).all()
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([255, 0, 0])
    assert (read_image(encode(palette, transparency=0)) == 255).all()
    assert (read_image(encode(palette))[..., 0] == 255).all()


def test_of_an_animation_the_first_frame_is_read():
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime")]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert read_image(data)[0, 0].tolist() == [255, 0, 0]


def test_a_grey_jpeg_and_a_cmyk_jpeg_are_read():
    grey = Image.fromarray(gradient()).convert("L")
    assert read_image(encode(grey, "JPEG")).shape == (12, 16, 3)
    white = read_image(encode(Image.new("CMYK", (8, 8), (0, 0, 0, 0)), "JPEG"))
    assert white.min() > 250


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright_and_size_agrees(format, orientation):
    stored = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a),
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: np.rot90(a, -1),
    }[orientation](gradient(32, 24))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(format, {})
    data = encode(Image.fromarray(np.ascontiguousarray(stored)), format, exif=exif, **options)
    assert image_size(data) == (32, 24)
    assert np.abs(read_image(data).astype(int) - gradient(32, 24)).max() <= 4
    assert image_orientation(data) == (1 if format == "TIFF" else orientation)


def test_luminance_is_that_of_the_eye_from_black_to_white():
    black, white, green = np.zeros((48, 64, 3), np.uint8), np.full((16, 64, 3), 255, np.uint8), (0, 255, 0)
    assert mean_luminance(black) == 0
    assert mean_luminance(white) == 255
    assert mean_luminance(np.full((48, 64, 3), green, np.uint8)) == pytest.approx(0.587 * 255, abs=0.5)
    assert mean_luminance(np.concatenate([black, white])) == 0.25 * 255


def test_broken_exif_does_not_lose_the_picture():
    data = encode(Image.fromarray(gradient()), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff nonsense")
    assert image_size(data) == (16, 12)
    assert read_image(data).shape == (12, 16, 3)


def test_the_size_is_read_without_decoding():
    assert image_size(png_header(10_000, 10_000)) == (10_000, 10_000)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_picture_that_breaks_off_is_an_error(format, keep, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    data = encode(Image.fromarray(noise), format)
    path = tmp_path / "cut.jpg"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(InputError, match=r"cut\.jpg: (damaged or truncated|not a picture)"):
        read_image(path)


def test_empty_missing_and_foreign_files_are_told_apart(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("this is not a picture")
    (tmp_path / "script.jpg").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    (tmp_path / "folder.jpg").mkdir()
    for name, complaint in {
        "empty.jpg": "the file is empty",
        "text.jpg": "not a picture in a format that can be read",
        "script.jpg": "not a picture in a format that can be read",
        "folder.jpg": "not a file",
        "missing.jpg": "no such file",
        "x" * 300: "cannot be read",
        "nul\0.jpg": "cannot be read",
    }.items():
        with pytest.raises(InputError, match=complaint):
            read_image(tmp_path / name)
    with pytest.raises(InputError, match="there is nothing in it"):
        read_image(b"")


def test_a_decompression_bomb_is_refused_by_its_header():
    for side in (15_000, 30_000, 100_000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            for read in (read_image, image_size):
                with pytest.raises(
                    InputError, match=r"over the limit of 200,000,000 pixels; raise max_pixels to read it"
                ):
                    read(png_header(side, side))


def test_reading_leaves_the_switches_of_the_process_alone(tmp_path):
    program = (
        "import warnings\n"
        "from PIL import Image\n"
        "before = Image.MAX_IMAGE_PIXELS\n"
        "from gbdgc.data.images import image_size\n"
        "print(image_size('large.png', max_pixels=10**10))\n"
        "print(before == Image.MAX_IMAGE_PIXELS)\n"
        "print([each for each in warnings.filters if each[2] is Image.DecompressionBombWarning])\n"
    )
    (tmp_path / "large.png").write_bytes(png_header(60_000, 60_000))
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert answer.stdout == "(60000, 60000)\nTrue\n[]\n", answer.stderr


def test_a_command_may_raise_what_pillow_admits_of_a_tiff(monkeypatch):
    large = encode(Image.new("L", (40, 30)), "TIFF", compression="tiff_lzw")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(InputError, match=r"over the limit of 200,000,000 pixels, or Pillow's own"):
        read_image(large)
    raise_pillow_limit(10_000)
    assert read_image(large).shape == (30, 40, 3)


def test_our_own_limit_is_all_that_is_said_of_a_large_picture(tmp_path):
    (tmp_path / "large.png").write_bytes(png_header(20_000, 11_000))
    program = (
        "from gbdgc.data.images import read_image\n"
        "try: read_image('large.png')\n"
        "except ValueError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert "large.png: 20000 x 11000 is over the limit" in answer.stdout
    assert answer.stderr == ""


def test_the_limit_can_be_raised_and_lowered_beyond_what_pillow_allows_in_many_threads_at_once():
    def sized(limit):
        try:
            return image_size(png_header(30_000, 30_000), max_pixels=limit)
        except InputError as error:
            return str(error)

    limits = [10**9, 10**8] * 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(sized, limits))
    assert outcomes[::2] == [(30_000, 30_000)] * 50
    assert all("over the limit of 100,000,000 pixels" in outcome for outcome in outcomes[1::2])


STARVED = """
import resource, sys
from gbdgc.data.images import NotEnoughMemory, read_image
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000,) * 2)
try:
    read_image(sys.argv[1])
except NotEnoughMemory as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory as Linux does")
def test_want_of_memory_is_not_taken_for_a_damaged_picture(tmp_path):
    Image.new("RGB", (9000, 8000)).save(tmp_path / "large.png")
    command = [sys.executable, "-c", STARVED, str(tmp_path / "large.png")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "large.png: not enough memory for 9000 x 8000 pixels; free some" in answer.stdout, answer.stderr


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_the_bytes_there_is_a_picture_or_an_input_error(data):
    format = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"]))
    good = encode(Image.fromarray(gradient()), format)
    start = data.draw(st.integers(0, len(good)))
    bad = good[:start] + data.draw(st.binary(max_size=8)) + good[start + data.draw(st.integers(0, 8)) :]
    try:
        pixels = read_image(bad, max_pixels=10**6)
    except InputError:
        return
    assert pixels.shape[2:] == (3,)
    assert image_size(bad, max_pixels=10**6) == (pixels.shape[1], pixels.shape[0])
