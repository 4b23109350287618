"""Settings that are wrong on their own, told before anything is made."""

from pathlib import Path

from gbdgc.config import Config
from gbdgc.errors import InputError, install_advice
from gbdgc.models.backbone import STRIDE
from gbdgc.runs import package_version


def check_settings(config: Config) -> None:
    """Refuse what could only fail later, or quietly do something else."""
    data, train, discovery = config.data, config.train, config.discovery
    for place in data.source:
        if not Path(place).exists():
            raise InputError(
                f"{place}: no such file or folder; give data.source=PATH, or set GBDGC_DATA to the folder above "
                "ShanghaiTech, in which the presets look"
            )
    for name, value in (("train.batch_size", train.batch_size), ("train.micro_batch", train.micro_batch)):
        if value is not None and value < 1:
            raise InputError(f"{name}={value}: at least one picture")
    if train.epochs < 1:
        raise InputError(f"train.epochs={train.epochs}: at least one")
    if discovery.n_domains is not None and discovery.n_domains < 2:
        raise InputError(
            f"discovery.n_domains={discovery.n_domains}: at least two, or null to go by the number of pictures"
        )
    if not 0 <= data.validation < 1:
        raise InputError(f"data.validation={data.validation}: a share of the source, from 0 to less than 1")
    if data.test_scale <= 0:
        raise InputError(f"data.test_scale={data.test_scale}", "a size is above 0", "take 1 for pictures as they are")
    if data.max_side is not None and data.max_side < 1:
        raise InputError(f"data.max_side={data.max_side}: at least one pixel, or null for pictures as they are")
    if train.clip_norm is not None and train.clip_norm <= 0:
        raise InputError(f"train.clip_norm={train.clip_norm}: above 0, or null for gradients as they are")
    if data.workers < 0:
        raise InputError(f"data.workers={data.workers}: 0 or more threads beside the one that trains")
    for name, side in (("augmentation.crop", config.augmentation.crop), ("discovery.image_size", discovery.image_size)):
        if side < STRIDE or side % STRIDE:
            raise InputError(f"{name}={side}: the network needs a multiple of {STRIDE}, such as 224 or 256")
    if data.repeats < 1:
        raise InputError(f"data.repeats={data.repeats}: at least one crop of each picture per epoch")
    if data.shares is not None and (len(data.shares) != len(data.source) or len(data.source) < 2):
        raise InputError(
            f"data.shares={data.shares}: one share for each of the {len(data.source)} sources, of which there must be "
            "several"
        )
    if data.shares is not None and (min(data.shares) < 0 or sum(data.shares) == 0):
        raise InputError(f"data.shares={data.shares}: shares are 0 or more, and not all of them 0")
    if data.shares is not None and data.balanced:
        raise InputError("data.shares with data.balanced=true: fill batches by source or by domain, not both")
    if discovery.descriptors == "online" and discovery.levels != "encoder":
        raise InputError(
            f"discovery.levels={discovery.levels}: the training pass gathers the encoder's levels only; "
            "take discovery.descriptors=pass"
        )
    if train.tensorboard and package_version("tensorboard") is None:
        raise InputError(f"train.tensorboard=true needs a package: {install_advice('track')}")
