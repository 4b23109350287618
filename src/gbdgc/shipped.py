"""The bundled models by name. No other module knows where their files are."""

import os
from pathlib import Path

from gbdgc.errors import InputError

WEIGHTS = Path(__file__).parent / "weights"
DEFAULT = "default"
_BUNDLED = "bundled"  # the stem of the default model's file; every other model is named as its file is


def shipped_models() -> dict[str, Path]:
    """Return the files of the bundled models by name, the default first."""
    files = sorted(WEIGHTS.glob("*.safetensors"), key=lambda path: (path.stem != _BUNDLED, path.stem))
    return {DEFAULT if path.stem == _BUNDLED else path.stem: path for path in files}


def find_model(model: str | os.PathLike[str] | None) -> Path:
    """Return the path of a model given by path or name, None for the default; an existing file takes precedence."""
    if model is not None and (os.path.lexists(model) or str(model) not in {DEFAULT, *shipped_models()}):
        return Path(model)
    found = shipped_models().get(str(model or DEFAULT))
    if found is None:
        reason = "this installation has no bundled model"
        advice = "train one (docs/training.md) and give its run folder, or install gbdgc again from a whole clone"
        raise InputError(WEIGHTS / f"{_BUNDLED}.safetensors", reason, advice)
    return found
