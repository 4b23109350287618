"""Decoding in another process: the same pixels, and whatever a file does to its decoder can be ended."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbdgc.data.decoding import Decoder
from gbdgc.data.images import PictureTooLarge, read_image
from gbdgc.errors import InputError
from gbdgc.server import Limits
from hostile_pictures import endless_jpeg


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    decoder = Decoder(16_000_000, reduce_to=400)
    yield decoder
    decoder.close()


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


class Enough(Exception):
    """Nobody waits any more."""


def nothing() -> None:
    pass


def test_it_gives_the_pixels_that_reading_gives(decoder: Decoder) -> None:
    content = encoded(Image.effect_noise((301, 203), 80).convert("RGB"), "PNG")
    decoded = decoder.read(content, nothing)
    assert (decoded.width, decoded.height) == (301, 203)
    np.testing.assert_array_equal(decoded.image, read_image(content))


def test_a_large_jpeg_is_decoded_at_a_smaller_size_but_keeps_its_own(decoder: Decoder) -> None:
    picture = Image.linear_gradient("L").resize((3000, 1800)).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6
    decoded = decoder.read(encoded(picture, "JPEG", exif=exif.tobytes()), nothing)
    assert (decoded.width, decoded.height) == (1800, 3000)
    assert decoded.image.shape == (750, 450, 3)
    small = np.asarray(picture.rotate(-90, expand=True).resize((450, 750)), dtype=int)
    assert np.abs(small - decoded.image).mean() < 2


def test_what_is_wrong_with_a_picture_comes_across_as_it_is(decoder: Decoder) -> None:
    with pytest.raises(InputError, match="not a picture"):
        decoder.read(b"nothing of the kind", nothing)
    with pytest.raises(PictureTooLarge):
        decoder.read(encoded(Image.new("1", (4001, 4001)), "PNG"), nothing)


def test_a_file_that_would_take_minutes_is_given_up_and_the_next_is_read(decoder: Decoder) -> None:
    decoder.start()
    until = time.monotonic() + 2

    def check() -> None:
        if time.monotonic() > until:
            raise Enough

    with pytest.raises(Enough):
        decoder.read(endless_jpeg(), check)
    assert time.monotonic() < until + 2
    assert decoder.read(encoded(Image.new("RGB", (8, 8)), "PNG"), nothing).image.shape == (8, 8, 3)


def test_a_decoder_that_breaks_down_takes_nothing_else_with_it(decoder: Decoder) -> None:
    decoder.start()
    assert decoder._process is not None
    victim = decoder._process.pid
    assert victim is not None

    def crash() -> None:
        os.kill(victim, signal.SIGSEGV)

    with pytest.raises(InputError, match="broke down"):
        decoder.read(endless_jpeg(), crash)
    assert decoder.read(encoded(Image.new("RGB", (8, 8)), "PNG"), nothing).image.shape == (8, 8, 3)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from Linux's /proc")
def test_deep_greys_of_many_pixels_take_little_memory(decoder: Decoder) -> None:
    content = encoded(Image.new("F", (4000, 4000), 0.5), "TIFF", compression="tiff_adobe_deflate")
    assert len(content) < 200_000
    assert decoder.read(content, nothing).image.shape == (4000, 4000, 3)
    assert resident_kilobytes(decoder, "VmHWM:") < 450_000


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="reads limits from Linux's /proc")
def test_the_service_decodes_pictures_of_any_mode_at_its_limit_in_bounded_memory() -> None:
    decoder = Decoder(Limits().pixels, reduce_to=1600)
    decoder.warm_up()
    assert decoder._process is not None
    limits = Path(f"/proc/{decoder._process.pid}/limits").read_text()
    assert int(limits.split("Max address space")[1].split()[0]) < 3e9
    side = int(Limits().pixels ** 0.5)
    kinds = [("RGBA", "PNG"), ("LA", "PNG"), ("I;16", "PNG"), ("F", "TIFF"), ("CMYK", "TIFF"), ("RGBA", "WEBP")]
    for mode, kind in kinds:
        options = {"compression": "tiff_adobe_deflate"} if kind == "TIFF" else {}
        assert decoder.read(encoded(Image.new(mode, (side, side)), kind, **options), nothing).width == side
    progressive = encoded(Image.new("CMYK", (side, side)), "JPEG", progressive=True)
    assert decoder.read(progressive, nothing).width == side
    decoder.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from Linux's /proc")
def test_memory_is_given_back_after_large_pictures() -> None:
    decoder = Decoder(16_000_000, reduce_to=1600)
    before = resident_kilobytes(decoder, "VmRSS:")
    # After the first glibc by itself takes such blocks for usual, and keeps those of the second.
    decoder.read(encoded(Image.new("F", (4000, 4000), 0.5), "TIFF", compression="tiff_adobe_deflate"), nothing)
    decoder.read(encoded(Image.effect_noise((4000, 4000), 60).convert("RGB"), "JPEG", quality=30), nothing)
    assert resident_kilobytes(decoder, "VmRSS:") - before < 10_000
    decoder.close()


def resident_kilobytes(decoder: Decoder, figure: str) -> int:
    decoder.warm_up()  # so that it is done with the picture before
    assert decoder._process is not None
    return int(Path(f"/proc/{decoder._process.pid}/status").read_text().split(figure)[1].split()[0])


def test_pictures_of_strangers_write_nothing_into_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    decoder = Decoder(1_000_000)
    whole = encoded(Image.new("RGB", (64, 48)), "TIFF")
    directory = int.from_bytes(whole[4:8], "little")
    for entry in range(8):  # a tag said to be longer than the file, of which Pillow warns in words of its own each time
        damaged = bytearray(whole)
        damaged[directory + 2 + 12 * entry + 4 : directory + 2 + 12 * entry + 8] = b"\xff\xff\xff\x0f"
        with suppress(InputError):
            decoder.read(bytes(damaged), nothing)
    decoder.close()
    assert capfd.readouterr().err == ""
