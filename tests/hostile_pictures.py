"""Pictures made to do harm, shared by the tests of decoding and of the service."""

import struct
import zlib
from io import BytesIO

from PIL import Image


def png_header(width: int, height: int) -> bytes:
    """The opening of a real PNG of any size, with next to no data: what a decompression bomb looks like."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def endless_jpeg() -> bytes:
    """A picture whose last scan comes a hundred thousand times: 5 MB that keep a decoder busy for many minutes."""
    file = BytesIO()
    Image.new("L", (2000, 2000), 90).save(file, "JPEG", progressive=True)
    content = file.getvalue()
    scan = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + scan * (5_000_000 // len(scan)) + b"\xff\xd9"
