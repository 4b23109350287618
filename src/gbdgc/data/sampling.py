"""The order of pictures in an epoch, as a function of seed, epoch and ids alone."""

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import NamedTuple

import numpy as np


class Draw(NamedTuple):
    """A picture's place in an epoch: its ``turn`` is 0 the first time that the epoch shows it, then 1, and so on."""

    id: str
    turn: int


def epoch_order(
    groups: Mapping[str, Hashable],
    length: int,
    *,
    seed: int,
    epoch: int,
    shares: Mapping[Hashable, float] | None = None,
) -> list[Draw]:
    """Return ``length`` draws: pass after pass over all pictures, none repeated before all had their turn.

    ``groups`` is the group of each picture by id, and ``shares`` how much of the draws each group makes up; each then
    goes through its own pictures. Any run of draws, and with it every batch and every process's part of a batch, holds
    the groups in these shares, but for one. Without shares the groups do not matter.
    """
    if shares is None:
        return list(islice(_passes(groups, seed, epoch), length))
    members: dict[Hashable, list[str]] = {group: [] for group, share in shares.items() if share > 0}
    for id, group in groups.items():
        if group in members:
            members[group].append(id)
    streams = {group: _passes(ids, seed, epoch) for group, ids in members.items()}
    total = sum(shares[group] for group in members)
    drawn = dict.fromkeys(members, 0)
    order = []
    for place in range(length):
        # The group that is furthest behind its share; the first of them where several are.
        group = max(members, key=lambda group: shares[group] / total * (place + 1) - drawn[group])
        drawn[group] += 1
        order.append(next(streams[group]))
    return order


def generator(purpose: str, seed: int, epoch: int, turn: int, id: str) -> np.random.Generator:
    """Return the random generator of one picture in one epoch."""
    return np.random.default_rng(_hash(purpose, seed, epoch, turn, id))


def _passes(ids: Iterable[str], seed: int, epoch: int) -> Iterator[Draw]:
    """Yield all ids in a random order, then in another one, for ever."""
    ids = list(ids)
    for turn in count():
        # By a hash of each id: so the order is the same however the data set was listed.
        keys = {id: _hash("order", seed, epoch, turn, id) for id in ids}
        yield from (Draw(id, turn) for id in sorted(ids, key=keys.__getitem__))


def _hash(purpose: str, seed: int, epoch: int, turn: int, id: str) -> int:
    text = f"{purpose} {seed} {epoch} {turn} {id}"
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest())
