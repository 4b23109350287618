"""Settings that are wrong on their own, told before anything is made."""

from operator import attrgetter
from pathlib import Path

from gbdgc.config import Config
from gbdgc.data.transforms import STRIDE
from gbdgc.errors import InputError, install_advice
from gbdgc.runs import package_version


def check_settings(config: Config) -> None:
    """Refuse settings that would fail later, or silently do something else."""
    data, train, discovery = config.data, config.train, config.discovery
    for place in data.source:
        if not Path(place).exists():
            advice = "give data.source=PATH, or set GBDGC_DATA to the folder above ShanghaiTech, where presets look"
            raise InputError(place, "no such file or folder", advice)
    shares, several = data.shares or [1.0], len(data.source) > 1
    for name, wrong, reason in (
        ("train.batch_size", train.batch_size < 1, "at least one picture"),
        ("train.micro_batch", _below(train.micro_batch, 1), "at least one picture"),
        ("train.epochs", train.epochs < 1, "at least one"),
        ("train.native_share", not 0 <= train.native_share <= 1, "a share of the epochs, from 0 to 1"),
        (
            "discovery.n_domains",
            _below(discovery.n_domains, 2),
            "at least two, or null to go by the number of pictures",
        ),
        ("data.validation", not 0 <= data.validation < 1, "a share of the source, from 0 to less than 1"),
        ("data.test_scale", data.test_scale <= 0, "above 0, and 1 for pictures as they are"),
        ("data.max_side", _below(data.max_side, 1), "at least one pixel, or null for pictures as they are"),
        ("train.clip_norm", train.clip_norm is not None and train.clip_norm <= 0, "above 0, or null for no clipping"),
        ("data.workers", data.workers < 0, "0 or more threads beside the one that trains"),
        ("augmentation.crop", not _fits(config.augmentation.crop), _SIDES),
        ("discovery.image_size", not _fits(discovery.image_size), _SIDES),
        ("data.repeats", data.repeats < 1, "at least one crop of each picture per epoch"),
        (
            "data.shares",
            data.shares is not None and not (several and len(shares) == len(data.source)),
            f"one share for each of the {len(data.source)} sources, of which there must be several",
        ),
        ("data.shares", min(shares) < 0 or sum(shares) == 0, "shares are 0 or more, and not all of them 0"),
        (
            "data.shares",
            data.shares is not None and data.balanced,
            "not with data.balanced=true: by source or by domain",
        ),
    ):
        if wrong:
            raise InputError(f"{name}={attrgetter(name)(config)}", reason)
    if discovery.descriptors == "online" and discovery.levels != "encoder":
        reason = "the training pass gathers the encoder's levels only"
        raise InputError(f"discovery.levels={discovery.levels}", reason, "take discovery.descriptors=pass")
    if train.tensorboard and package_version("tensorboard") is None:
        raise InputError("train.tensorboard=true", "needs a package", install_advice("track"))


_SIDES = f"the network needs a multiple of {STRIDE}, such as 224 or 256"


def _fits(side: int) -> bool:
    return side >= STRIDE and side % STRIDE == 0


def _below(value: int | None, least: int) -> bool:
    return value is not None and value < least
