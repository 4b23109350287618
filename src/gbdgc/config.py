"""The settings of a training run: typed, with defaults, from YAML and `key.sub=value` overrides.

Only `training`, `benchmark` and the command line see these objects; everything else takes plain arguments. A section
that a component declares itself (`Augmentation`, `MethodOptions`) is that component's own dataclass.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, cast

from omegaconf import MISSING, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from gbdgc.data.augmentation import Augmentation
from gbdgc.data.sample import KERNEL, SIGMA
from gbdgc.data.transforms import DESCRIBED_SIDE
from gbdgc.errors import InputError, UsageError, as_input_error
from gbdgc.files import AnyPath, atomic_write
from gbdgc.methods import MethodOptions

_NOT_IN_RESULTS = (
    "data.workers",
    "data.cache_gigabytes",
    "train.keep_epochs",
    "train.checkpoint_seconds",
    "train.tensorboard",
)
_FORMER = {"data.adaptive": False}
"""Settings of earlier versions, with the only value that is left: their files and results are still read."""


@dataclass
class DataConfig:
    """The source and what happens to its pictures."""

    source: list[str] = MISSING
    """Data sets to train on; several are put together."""
    format: str = "auto"
    split: str = "train"
    """The split of the source to train on; `all` takes every labelled picture, and so does data without any split."""
    validation: float = 0.1
    """The share of the source held out for model selection; 0 holds out nothing."""
    exclude: list[str] = field(default_factory=list)
    """Ids of pictures to leave out because their labels are known to be wrong."""
    max_side: int | None = None
    """Pictures with a longer side are shrunk, in training and in evaluation. Results are most sensitive to this."""
    test_scale: float = 1.0
    """Pictures, shrunk to `max_side` if need be, are scaled by this factor before counting: distant heads need more
    pixels. Choose it on the source."""
    kernel: int = KERNEL
    sigma: float = SIGMA
    repeats: int = 1
    """How many crops of each picture make an epoch."""
    shares: list[float] | None = None
    """The share of each source in an epoch, in the order of `source`; None: in proportion to their pictures."""
    balanced: bool = False
    """Fill batches with the pseudo-domains in equal parts."""
    cache_gigabytes: float = 2.0
    workers: int = 2


@dataclass
class ModelConfig:
    """The network."""

    backbone: str = "vgg16"
    pretrained: bool = True
    weights: str | None = None
    """A file with ImageNet weights, instead of searching for them."""
    dim: int | None = None
    codewords: int | None = None
    """Both default to what suits the backbone: 256 and 1024 for vgg16, 128 and 256 for compact."""
    dropout: float = 0.5
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the backbone."""


@dataclass
class DiscoveryConfig:
    """How the latent domains are found."""

    partition: str = "balls"
    """A name in `PARTITIONS`: balls, kmeans or random; source takes the data sets of `data.source` as the domains,
    source+balls divides each of them further."""
    n_domains: int | None = None
    """None: the fourth root of the number of pictures."""
    mode: Literal["paper", "stable"] = "paper"
    descriptors: Literal["pass", "online"] = "pass"
    """From a separate pass over the source, or collected during the training pass at no cost."""
    levels: Literal["encoder", "decoder", "style"] = "encoder"
    image_size: int = DESCRIBED_SIDE
    n_components: int | None = None
    split_margin: float | None = None
    max_depth: int | None = None
    min_ball_size: int | None = None
    """These four default to the estimator's own values: see `GranularBallDomains`."""


@dataclass
class TrainConfig:
    """The schedule."""

    start: str | None = None
    """Initialise from a model: a run's folder, a model file, or a name listed by `gbdgc models`. None: from ImageNet
    weights, if `model.pretrained`."""
    epochs: int = 200
    batch_size: int = 32
    """Pictures per step, over all processes together."""
    micro_batch: int | None = None
    """Pictures that a process handles at once; fewer save memory. Losses and gradients stay those of the whole batch,
    except for which channels dropout drops."""
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-5
    encoder_learning_rate: float | None = None
    """None: the same as the rest."""
    head_learning_rate: float | None = None
    """The rate of the codebook and the density head; None: the same as the rest. Density peaks at 10 (x 1000) over a
    head, and the head's weights start near 0: at the common rate a short schedule would end before they get that
    far."""
    weight_decay: float = 1e-4
    schedule: Literal["constant", "onecycle", "cosine"] = "constant"
    """cosine is a short linear warm-up, then half a cosine down to zero."""
    native_share: float = 0.0
    """The last share of the epochs uses crops at about the scale of `data.test_scale`, with a third of the changes of
    colour and sharpness: over many scales a small network is right on average, not at the one used for counting."""
    clip_norm: float | None = None
    average: float = 0.0
    """Decay of the moving average of the weights that is validated and kept; 0: no averaging."""
    precision: str = "auto"
    """auto: bf16 on GPUs and CPUs that support it, fp16 on other GPUs, else 32 bits. The run's config.yaml records the
    choice."""
    selection: Literal["validation", "last"] = "last"
    """How the model of the run is selected; always on the source alone."""
    calibrate: bool = False
    """At the end, scale the selected model's counts to remove their bias on the validation part, if that is larger than
    chance."""
    keep_epochs: int = 0
    """Also keep the models of this many last epochs, to see how much they differ; selection is not affected."""
    seed: int = 0
    checkpoint_seconds: float = 120.0
    tensorboard: bool = False


@dataclass
class Config:
    """A whole run."""

    name: str = MISSING
    data: DataConfig = field(default_factory=DataConfig)
    augmentation: Augmentation = field(default_factory=Augmentation)
    model: ModelConfig = field(default_factory=ModelConfig)
    method: MethodOptions = field(default_factory=MethodOptions)
    discovery: DiscoveryConfig = field(default_factory=DiscoveryConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def load_config(source: AnyPath, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file, or a preset by its name, and apply overrides such as ``train.epochs=5``."""
    path = find_config(source)
    with (
        as_input_error(RecursionError, path, "nested deeper than any setting"),
        as_input_error((OSError, ValueError), path, "not a YAML file that can be read ({error})"),
        as_input_error((YAMLError, OmegaConfBaseException), path, "{error}"),  # with the line in their text
    ):
        given = OmegaConf.load(path)
        for key, value in _FORMER.items():
            section, _, name = key.partition(".")
            if OmegaConf.select(given, key) == value:
                OmegaConf.select(given, section).pop(name)
        keys = list(_keys(OmegaConf.to_container(given, resolve=False)))
    if plain := [item for item in overrides if "=" not in item]:
        raise UsageError("", f"{plain[0]!r} is not an override", "write key.sub=value, such as train.epochs=5")
    overridden = {item.split("=", 1)[0]: item for item in overrides}
    for key in keys:
        if advice := _unknown(key):
            raise InputError(path, *advice)
    for key in overridden:
        if advice := _unknown(key):
            raise UsageError("", *advice)
    try:
        settings = OmegaConf.merge(given)
        parsed = OmegaConf.from_dotlist(list(overrides))
        for key in overridden:  # an override replaces, also where it is a mapping
            OmegaConf.update(settings, key, OmegaConf.select(parsed, key), merge=False)
        if isinstance(single := OmegaConf.select(settings, "data.source", throw_on_missing=False), str):
            OmegaConf.update(settings, "data.source", [single])
        return cast(Config, OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), settings)))
    except (OmegaConfBaseException, YAMLError, TypeError, RecursionError) as error:
        setting, reason = getattr(error, "full_key", None) or "", str(error).splitlines()[0]
        if setting in overridden:
            raise UsageError(overridden[setting], reason) from error
        thing = f"{path}: {setting}" if setting else str(path)
        if isinstance(error, MissingMandatoryValue):
            raise InputError(thing, "missing", f"write one, such as {setting}: mine") from error
        raise InputError(thing, reason) from error


def save_config(config: Config, path: Path) -> None:
    """Write the resolved settings as YAML that ``load_config`` reads back to the same."""
    with atomic_write(path, "w") as file:
        file.write(OmegaConf.to_yaml(OmegaConf.structured(config)))


def settings_that_matter(config: Config) -> dict[str, Any]:
    """Return the settings by their full names, without those that do not affect results, such as speed."""
    settings: dict[str, Any] = dict(_FORMER)
    for section, content in asdict(config).items():
        settings |= (
            {f"{section}.{key}": content[key] for key in content} if isinstance(content, dict) else {section: content}
        )
    return {key: value for key, value in settings.items() if key not in _NOT_IN_RESULTS}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Name what differs between two of `settings_that_matter`; what one of them does not know has its default there."""
    before, now = ({**settings_that_matter(Config()), **settings} for settings in (old, new))
    return [
        f"{key}: {before.get(key)} then, {now.get(key)} now" for key in before | now if before.get(key) != now.get(key)
    ]


def find_config(source: AnyPath) -> Path:
    """Return the file of that path, or the preset of that name."""
    if Path(source).is_file():
        return Path(source)
    found = presets()
    if str(source) in found:
        return found[str(source)]
    close = difflib.get_close_matches(str(source), found, 1)
    hint = f"did you mean {close[0]}?" if close else f"presets: {', '.join(found)}"
    raise UsageError(source, "no such file and no such preset", hint)


def presets() -> dict[str, Path]:
    """The ready settings, by name: in the installed package, or beside the sources."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "configs", here.parents[2] / "configs"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def _known_keys(cls: Any, prefix: str = "") -> Iterable[tuple[str, bool]]:
    """Every known key, and whether it may have keys of any name below it."""
    for item in fields(cls):
        section: Any = item.default_factory
        yield prefix + item.name, item.name == "options"
        if is_dataclass(section):
            yield from _known_keys(section, f"{prefix}{item.name}.")


def _keys(container: Any, prefix: str = "") -> Iterable[str]:
    if isinstance(container, dict):
        for key, value in container.items():
            yield f"{prefix}{key}"
            yield from _keys(value, f"{prefix}{key}.")


def _unknown(key: str) -> tuple[str, str] | None:
    """Return reason and next step where there is no setting of that name."""
    known = dict(_known_keys(Config))
    parents = (key.rsplit(".", n)[0] for n in range(1, key.count(".") + 1))
    if key in known or any(known.get(parent) for parent in parents):
        return None
    close = difflib.get_close_matches(key, known, 1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else "see the keys in docs/training.md"
    return f"there is no setting {key!r}", hint
