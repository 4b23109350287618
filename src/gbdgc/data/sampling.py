"""Which picture comes when: a function of seed, epoch and ids, and of nothing else."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from typing import NamedTuple

import numpy as np


class Draw(NamedTuple):
    """A picture's place in an epoch: its ``turn`` is 0 the first time that the epoch shows it, then 1, and so on."""

    id: str
    turn: int


def epoch_order(domains: Mapping[str, int], length: int, *, seed: int, epoch: int, balanced: bool) -> list[Draw]:
    """Return ``length`` draws: pass after pass over all pictures, none a second time before all had their turn.

    ``balanced`` takes one of each domain in turn, each domain going through its own pictures. So any run of draws, and
    with it every batch and every process's part of a batch, holds the domains in equal numbers, but for one.
    """
    if not balanced:
        return list(islice(_passes(domains, seed, epoch), length))
    members: dict[int, list[str]] = {}
    for id, domain in domains.items():
        members.setdefault(domain, []).append(id)
    streams = [_passes(members[domain], seed, epoch) for domain in sorted(members)]
    return [next(streams[place % len(streams)]) for place in range(length)]


def generator(purpose: str, seed: int, epoch: int, turn: int, id: str) -> np.random.Generator:
    """Return the chance that belongs to one picture in one epoch."""
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
