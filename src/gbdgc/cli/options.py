"""Options that several commands share. Nothing heavy is imported here, so that help appears at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from gbdgc.errors import InputError, UsageError

EngineName = Literal["torch", "onnx", "openvino"]
"""The names in `gbdgc.counting.engines.ENGINES`."""

Engine = Annotated[EngineName | None, Parameter(help="What runs the model.")]
_INT8 = "Count in 8 bits, by onnx or openvino: faster, and a little less exact."
Int8 = Annotated[bool, Parameter(help=_INT8, negative="", show_default=False)]
_MODELS = "A run's folder, a model file, an exported one, or a name from `gbdgc models`; by default the bundled one."
Weights = Annotated[Path | None, Parameter(name=["--weights", "--model"], help=_MODELS)]
ReadAs = Annotated[str, Parameter(name="--read-as", help="The format of the labels; auto recognises it.")]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Several = Parameter(negative="", consume_multiple=True)

# Of the services.
_LISTEN = "The address to listen on; by default only this machine can reach it. 0.0.0.0 opens it to others."
_TOKEN = "Required in every request. Better set as GBDGC_TOKEN, since other users can see command lines."
Host = Annotated[str, Parameter(help=_LISTEN)]
Port = Annotated[int, Parameter(help="The port; 0 picks a free one.", validator=Number(gte=0, lt=2**16))]
Token = Annotated[str | None, Parameter(help=_TOKEN, env_var="GBDGC_TOKEN")]
Threads = Annotated[int | None, Parameter(help="CPU threads for counting.", validator=Number(gte=1))]


@contextmanager
def wrong_option() -> Iterator[None]:
    """Turn an error about an argument into wrong usage, named as it is typed: ``--tile=3``, not ``tile=3``."""
    try:
        yield
    except InputError as error:
        raise UsageError(f"--{error.thing}", error.reason, error.next_step) from error
