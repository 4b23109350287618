"""The paper's protocol: its data sets, how many pseudo-domains each has, and which source goes to which target."""

import re
from collections.abc import Sequence

JOINT = {"NWPU": ("SHA", "SHB"), "drawn N": ("drawn A", "drawn B")}
"""Data sets that are targets only, of models trained on each of these two and on both together."""

K = {"SHA": 4, "SHB": 3, "QNRF": 6, "SHA+SHB": 5}
"""The paper's number of pseudo-domains; other sources take the fourth root of their size."""

MAX_SIDE = {"QNRF": 1920, "JHU": 1600}
"""The protocol's limit on the longer side, in training and as a target."""

DEVELOPMENT = ("JHU",)
"""Targets on which settings may be chosen; never trained on."""

LAST_EPOCHS = 3
"""How many of a training's last models are kept, to see how much they differ."""

_ORDER = ("SHA", "SHB", "QNRF", "NWPU")

Pairs = dict[str, tuple[str, ...]]
"""The targets of each source; none where the question is about the source itself."""


def source_settings(source: str) -> list[str]:
    """Return the settings that belong to a source rather than to a method."""
    overrides = [f"discovery.n_domains={K.get(source, 'null')}"]
    if source in MAX_SIDE:
        overrides.append(f"data.max_side={MAX_SIDE[source]}")
    return overrides


def to_every_other(names: Sequence[str]) -> Pairs:
    """Pair every source with every other as its target."""
    single = _sources(names)
    targets = [*single, *(name for name in DEVELOPMENT if name in names)]
    return {source: tuple(name for name in targets if name != source) for source in single if len(targets) > 1}


def to_every_other_and_joint(names: Sequence[str]) -> Pairs:
    """Pair every source with every other, and with the targets of `JOINT` alone and together."""
    pairs = to_every_other(names)
    for target, parts in JOINT.items():
        there = [name for name in parts if name in names] if target in names else []
        for source in [*there, "+".join(parts)] if len(there) == len(parts) else there:
            pairs[source] = (*pairs.get(source, ()), target)
    return pairs


def to_itself(names: Sequence[str]) -> Pairs:
    """Pair every source with its own test set."""
    return {source: (source,) for source in _sources(names)}


def source_alone(names: Sequence[str]) -> Pairs:
    """Pair every source with no target: nothing is counted."""
    return dict.fromkeys(_sources(names), ())


def rank(name: str) -> tuple[int, int, str]:
    """Sort data sets: the paper's order first, joint sources after single ones, then the alphabet."""
    return name.count("+"), _ORDER.index(name) if name in _ORDER else len(_ORDER), name


def file_name(name: str) -> str:
    """Return the name of a data set or a variant as used in file names."""
    return re.sub(r"[^\w.=+-]+", "_", name)


def _sources(names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in JOINT and name not in DEVELOPMENT]
