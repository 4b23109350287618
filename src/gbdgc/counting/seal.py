"""A digest at the end of an exported file, where its runtime ignores it, so that damage is detected on loading."""

from hashlib import sha256
from pathlib import Path

from gbdgc.errors import InputError

_FRAMES = {
    # One more entry of ONNX's own metadata: field 14 of the model, key and value as protocol buffers write them.
    ".onnx": (b"\x72\x4a\x0a\x06sha256\x12\x40", b""),
    ".xml": (b"<!-- sha256 ", b" -->\n"),
}
_DIGITS = 64


def sealed(content: bytes, suffix: str, beside: bytes = b"") -> bytes:
    """Return the content of an exported file with a digest of it, and of the file ``beside`` it, at its end."""
    before, after = _FRAMES[suffix]
    return content + before + sha256(content + beside).hexdigest().encode() + after


def check_seal(path: Path) -> None:
    """Refuse a file that is not what was sealed; one without a seal, from before there were any, is taken as it is."""
    before, after = _FRAMES[path.suffix.lower()]
    content, weights = path.read_bytes(), path.with_suffix(".bin")
    start = len(content) - len(before) - _DIGITS - len(after)
    if start < 0 or not content.startswith(before, start):
        return
    beside = weights.read_bytes() if path.suffix.lower() == ".xml" and weights.exists() else b""
    if content != sealed(content[:start], path.suffix.lower(), beside):
        reason = "damaged: its content does not match its digest"
        raise InputError(path, reason, "export it again with: gbdgc export WEIGHTS")
