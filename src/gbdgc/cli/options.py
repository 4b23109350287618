"""Options that several commands share. Nothing heavy is imported here, so that help appears at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from gbdgc.errors import InputError, UsageError

EngineName = Literal["torch", "onnx", "openvino"]
"""The names in `gbdgc.counting.engines.ENGINES`."""

Weights = Annotated[Path | None, Parameter(name=["--weights", "--model"])]

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


@contextmanager
def wrong_option() -> Iterator[None]:
    """Turn an error about an argument into wrong usage, named as it is typed: ``--tile=3``, not ``tile=3``."""
    try:
        yield
    except InputError as error:
        raise UsageError(f"--{error.thing}", error.reason, error.next_step) from error
