"""Settings that are wrong on their own, told before anything is made."""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from gbdgc.config import Config
from gbdgc.data.transforms import STRIDE
from gbdgc.errors import InputError, install_advice
from gbdgc.runs import package_version

Rule = tuple[Callable[[Any], bool], str]
_SIDE: Rule = (
    lambda side: side >= STRIDE and side % STRIDE == 0,
    f"the network needs a multiple of {STRIDE}, such as 224 or 256",
)
_RULES: dict[str, Rule] = {
    "train.batch_size": (lambda size: size >= 1, "at least one picture"),
    "train.micro_batch": (lambda size: size >= 1, "at least one picture"),
    "train.epochs": (lambda epochs: epochs >= 1, "at least one"),
    "train.native_share": (lambda share: 0 <= share <= 1, "a share of the epochs, from 0 to 1"),
    "discovery.n_domains": (lambda number: number >= 2, "at least two, or null to go by the number of pictures"),
    "data.validation": (lambda share: 0 <= share < 1, "a share of the source, from 0 to less than 1"),
    "data.test_scale": (lambda scale: scale > 0, "above 0, and 1 for pictures as they are"),
    "data.max_side": (lambda side: side >= 1, "at least one pixel, or null for pictures as they are"),
    "train.clip_norm": (lambda norm: norm > 0, "above 0, or null for no clipping"),
    "data.workers": (lambda threads: threads >= 0, "0 or more threads beside the one that trains"),
    "augmentation.crop": _SIDE,
    "discovery.image_size": _SIDE,
    "data.repeats": (lambda crops: crops >= 1, "at least one crop of each picture per epoch"),
}
"""What each setting must be, unless it is null, and the reason to give."""


def check_settings(config: Config) -> None:
    """Refuse settings that would fail later, or silently do something else."""
    data, train, discovery = config.data, config.train, config.discovery
    for path in data.source:
        if not Path(path).exists():
            advice = "give data.source=PATH, or set GBDGC_DATA to the folder above ShanghaiTech, where presets look"
            raise InputError(path, "no such file or folder", advice)
    for name, (is_valid, reason) in _RULES.items():
        value = attrgetter(name)(config)
        if value is not None and not is_valid(value):
            raise InputError(f"{name}={value}", reason)
    if (shares := data.shares) is not None:
        number, thing = len(data.source), f"data.shares={shares}"
        if number < 2 or len(shares) != number:
            raise InputError(thing, f"one share for each of the {number} sources, of which there must be several")
        if min(shares) < 0 or sum(shares) == 0:
            raise InputError(thing, "shares are 0 or more, and not all of them 0")
        if data.balanced:
            raise InputError(thing, "not with data.balanced=true: by source or by domain")
    if discovery.descriptors == "online" and discovery.levels != "encoder":
        reason = "the training pass gathers the encoder's levels only"
        raise InputError(f"discovery.levels={discovery.levels}", reason, "take discovery.descriptors=pass")
    if train.tensorboard and package_version("tensorboard") is None:
        raise InputError("train.tensorboard=true", "needs a package", install_advice("track"))
