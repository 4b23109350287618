"""What several commands take alike. Nothing heavy is imported here: help must be there at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from cyclopts import Parameter

from gbdgc.errors import InputError, UsageError

EngineName = Literal["torch", "onnx", "openvino"]
"""The names in `gbdgc.counting.engines.ENGINES`."""

MAX_PIXELS = 200_000_000
"""As in `gbdgc.data.images`."""

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


@contextmanager
def wrong_option() -> Iterator[None]:
    """Make wrong usage of an error over an argument, and name it as it is typed: ``--tile=3``, not ``tile=3``."""
    try:
        yield
    except InputError as error:
        raise UsageError(f"--{error.thing}", error.reason, error.next_step) from error
