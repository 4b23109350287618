"""The recipes of CONTRIBUTING, followed: what is added by one line trains, is saved, and counts like the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import ArrayLike
from torch import Tensor, nn

from gbdgc import Counter
from gbdgc.config import Config
from gbdgc.domains import PARTITIONS
from gbdgc.methods.build import METHODS
from gbdgc.methods.erm import PlainRegression
from gbdgc.methods.options import MethodOptions
from gbdgc.models.backbone import Backbone, Features
from gbdgc.models.mixing import Mixing
from gbdgc.models.network import BACKBONES
from gbdgc.training import train


class NormedEncoder(nn.Module):
    """Strided convolutions, each with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, 8, 3, stride, padding=1), nn.BatchNorm2d(8), nn.ReLU())
            for inputs, stride in ((3, 4), (8, 2), (8, 2))
        )

    def forward(self, images_B3HW: Tensor) -> tuple[Tensor, ...]:
        maps = [images_B3HW]
        for level in self.levels:
            maps.append(level(maps[-1]))
        return tuple(maps[1:])


class NormedBackbone(Backbone):
    feature_stride, cell, head_scale, head_bias, initial_density = 8, 8, 1.0, True, 0.1
    suitable_dim, suitable_codewords = 8, 16
    fused_channels = 8

    def __init__(self) -> None:
        super().__init__(NormedEncoder())

    def forward(self, images_B3HW: Tensor, mixing: Mixing | None = None) -> Features:
        levels = self.encoder(images_B3HW)
        return Features(levels, levels, levels[1])


class Halves:
    """The samples below and above the median of the first feature."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        self.embedding_ = np.asarray(X, dtype=np.float64)
        self.labels_ = (self.embedding_[:, 0] > np.median(self.embedding_[:, 0])).astype(np.int64)
        self.n_domains_, self.domains_ = 2, np.arange(2)
        self.domain_centers_ = np.stack([self.embedding_[self.labels_ == k].mean(axis=0) for k in (0, 1)])
        return self


class WithDomains(PlainRegression):
    """Plain regression that has the domains found, and makes nothing of them."""

    def __init__(self, options: MethodOptions) -> None:
        super().__init__(options)
        self.needs_domains = True


def test_a_backbone_with_batch_norm_a_partition_and_a_method_are_one_line_each(
    tiny_config: Callable[..., Config], tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKBONES, "normed", NormedBackbone)
    monkeypatch.setitem(PARTITIONS, "halves", Halves)
    monkeypatch.setitem(METHODS, "with domains", WithDomains)
    added = {"model__backbone": "normed", "discovery__partition": "halves", "method__name": "with domains"}
    settings = {"model__dim": "null", "model__codewords": "null", "train__average": 0.9}
    run = train(tiny_config(**added, **settings), folder=tmp_path / "run")
    assert sorted(run.domains[-1].values()) == [0] * 6 + [1] * 6

    counter = Counter.load(run.best)
    network = counter.engine.network  # type: ignore[attr-defined]
    assert isinstance(network.backbone, NormedBackbone)
    assert network.backbone.encoder.levels[0][1].running_mean.abs().sum() > 0  # the statistics are part of the model
    result = counter(tiny_source.with_name("00.png"))
    assert result.count > 0
    assert result.domain in (0, 1)
