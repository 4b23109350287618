"""Reading tensors from files of strangers: safetensors, torch's own files, pickles of numpy arrays.

A pickle is a program. torch's reader (``weights_only``) and the one here run none of it but the making of arrays.
"""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from gbdgc.errors import InputError

_DEEPEST = 32
_MOST_TENSORS = 100_000


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name; names within nested groups are joined by dots."""
    if not path.is_file():
        raise InputError(path, "there is no such file")
    try:
        match path.suffix:
            case ".safetensors":
                return load_file(path)
            case ".pth" | ".pt":
                content = torch.load(path, map_location="cpu", weights_only=True)
            case ".ckpt":
                with path.open("rb") as file:
                    content = _ArrayUnpickler(file).load()
            case other:
                raise InputError(path, f"files of type {other!r} are not read", "use .safetensors, .pth, .pt or .ckpt")
    except InputError:
        raise
    except Exception as error:  # a broken pickle may raise anything at all
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(path, f"not a readable file of tensors alone ({reason})") from error
    return dict(_flatten(path, content, iter(range(_MOST_TENSORS))))


class _ArrayUnpickler(pickle.Unpickler):
    """Admits what numpy's own arrays are pickled with, and nothing else."""

    _admitted: Mapping[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        # numpy 1 and 2 name the same function differently.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the admitted constructors; refuse to import anything."""
        if (module, name) not in self._admitted:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, and only arrays are admitted")
        return self._admitted[module, name]


def _flatten(path: Path, content: object, allowance: Iterator[int], prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Walk nested dictionaries of arrays; a pickle may hold one within itself, or twice at every step."""
    if next(allowance, None) is None or prefix.count(".") > _DEEPEST:
        raise InputError(path, f"more than {_MOST_TENSORS:,} tensors, or groups more than {_DEEPEST} deep")
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _flatten(path, value, allowance, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(content, Tensor):
        yield prefix, content
    elif isinstance(content, np.ndarray) and content.dtype.kind in "fiu":
        yield prefix, torch.from_numpy(np.ascontiguousarray(content))
    else:
        raise InputError(path, f"{prefix or 'its content'} is a {type(content).__name__}, not an array")
