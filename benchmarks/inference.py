"""One picture of 1024 x 768 on every engine, against plain eager torch, for both backbones.

Run with ``python benchmarks/inference.py [--size 1024x768] [--rounds 5] [--backbones compact vgg16]``. All are measured
in turns in this run; the ratios are what counts. The weights are random, which changes no time. Drift is printed for
what it is: how far runtimes differ on such weights; `gbdgc export` measures it for a trained model on real pictures.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from former_compact import FormerCompact
from gbdgc import checkpoint
from gbdgc.counting import graph as graphs
from gbdgc.counting.engines import OnnxEngine, OpenVinoEngine, TorchEngine, pack, require
from gbdgc.counting.rounding import in_8_bits
from gbdgc.counting.tiling import stack
from gbdgc.models import build_network
from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene
from timing import fastest, verdict

Images = NDArray[np.float32]
EAGER, LAST = "torch, contiguous (eager)", "torch, channels_last (ours)"
LIMITS = {"onnx fp32": 0.8, "openvino fp32": 0.8, "onnx int8": 0.45, "openvino int8": 0.45}
FORMER = {LAST: "before: torch", "onnx fp32": "before: onnx", "openvino fp32": "before: openvino"}
# Not getrusage: its mark begins with the memory of the process that forked this one.
PEAK = (
    "import re, sys, numpy, gbdgc\n"
    "width, height = int(sys.argv[2]), int(sys.argv[3])\n"
    "gbdgc.Counter.load(sys.argv[1])(numpy.zeros((height, width, 3), numpy.uint8))\n"
    "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024)\n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1024x768")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backbones", nargs="+", default=["compact", "vgg16"])
    arguments = parser.parse_args()
    width, height = (int(side) for side in arguments.size.split("x"))
    scenes = [draw_scene(domain, np.random.default_rng(0), (width, height))[0] for domain in SOURCE_DOMAINS]
    images = [np.ascontiguousarray(stack([scene])) for scene in scenes]
    times: dict[str, dict[str, float]] = {}
    for backbone in arguments.backbones:
        with TemporaryDirectory() as folder:
            times[backbone] = compare(backbone, images, Path(folder), arguments.rounds, (width, height))
    if {"compact", "vgg16"} <= times.keys():
        compact, paper = times["compact"], times["vgg16"]
        print("compact against vgg16")
        verdict("time of vgg16's, both in torch with channels_last", compact[LAST] / paper[LAST], at_most=0.1)
        for name in ("onnx int8", "openvino int8"):
            verdict(f"{name}: times as fast as vgg16 in eager torch", paper[EAGER] / compact[name], at_least=30)


def compare(backbone: str, images: list[Images], folder: Path, rounds: int, size: tuple[int, int]) -> dict[str, float]:
    """Print the figures of one backbone; return the seconds of each engine."""
    files = write_models(backbone, images, folder)
    threads = torch.get_num_threads()
    works: dict[str, Callable[[Images], Images]] = {
        EAGER: eager(files["torch"]),
        LAST: channels_last(files["torch"]),
        **{name: OnnxEngine(path, threads=threads) for name, path in files.items() if path.suffix == ".onnx"},
        **{name: OpenVinoEngine(path, threads=threads) for name, path in files.items() if path.suffix == ".xml"},
    }
    picture = images[0]
    if backbone == "compact":
        works |= former_engines(picture, folder, threads)
    times = dict(
        zip(works, fastest(*(lambda w=work: w(picture) for work in works.values()), rounds=rounds), strict=True)
    )
    checked = images[:2]
    expected = [works[LAST](image).sum() for image in checked]
    print(f"{backbone}, {size[0]} x {size[1]}, {threads} threads, shortest of {rounds}")
    for name, work in works.items():
        if name in FORMER.values():
            print(f"  {name:<30} {1000 * times[name]:9.1f} ms")
            continue
        drift = np.mean([abs(work(i).sum() - e) for i, e in zip(checked, expected, strict=True)]) / np.mean(expected)
        print(f"  {name:<30} {1000 * times[name]:9.1f} ms   drift {drift:.3%}")
    for name, limit in {LAST: 1.0, **LIMITS}.items():
        verdict(f"{name}: time of eager's", times[name] / times[EAGER], at_most=limit)
    if backbone == "compact":
        for name, former in FORMER.items():
            verdict(f"{name}: times as fast as the network before", times[former] / times[name], at_least=1.8)
    for name, path in files.items():
        run = [sys.executable, "-c", PEAK, path, *map(str, size)]
        print(f"  {name:<30} {float(subprocess.check_output(run)):9.0f} MB of memory at its peak, all included")
    return times


def write_models(backbone: str, images: list[Images], folder: Path) -> dict[str, Path]:
    """Write a model with random weights for every engine."""
    torch.manual_seed(0)
    # The compact network as it ships, without a codebook, which its predecessor below does not have either.
    network = build_network(backbone, pretrained=False, style=False, codebook=backbone == "vgg16").eval()
    with torch.no_grad():
        network.semantic[0].weight.mul_(4)  # or else every place would count nearly the same
    build = {"backbone": backbone, "codebook": network.codebook is not None}
    checkpoint.save_model(folder / "torch.safetensors", network, build, {}, {})
    graph, description = graphs.write_graph(network, folder / "graph.onnx"), pack({}, {})
    corners = [np.ascontiguousarray(image[..., :256, :256]) for image in images]  # what calibrates changes no time
    graphs.write_onnx(graph, folder / "fp32.onnx", description)
    graphs.write_openvino(graph, folder / "fp32.xml", description)
    small = in_8_bits(graph, corners)
    graphs.write_onnx(small, folder / "int8-model.onnx", description)
    graphs.write_openvino(small, folder / "int8.xml", description)
    names = {
        "onnx fp32": "fp32.onnx",
        "openvino fp32": "fp32.xml",
        "onnx int8": "int8-model.onnx",
        "openvino int8": "int8.xml",
    }
    return {"torch": folder / "torch.safetensors", **{name: folder / file for name, file in names.items()}}


def former_engines(picture: Images, folder: Path, threads: int) -> dict[str, Callable[[Images], Images]]:
    """Return the compact network before this one on each engine; both without a codebook."""
    onnxruntime, openvino = require("onnxruntime", "onnx"), require("openvino", "openvino")
    network = FormerCompact().eval()
    path = folder / "former.onnx"
    example = torch.from_numpy(picture)
    torch.onnx.export(network, (example,), path, dynamo=True, external_data=False, verbose=False)
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, session_options)
    name = session.get_inputs()[0].name
    # The options of the engine.
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    compiled = openvino.Core().compile_model(path, "CPU", options)

    @torch.inference_mode()
    def in_torch(images: Images) -> Images:
        return network(torch.from_numpy(images).contiguous(memory_format=torch.channels_last)).numpy()

    works = (in_torch, lambda images: session.run(None, {name: images})[0], lambda images: compiled([images])[0])
    return dict(zip(FORMER.values(), works, strict=True))


def eager(path: Path) -> Callable[[Images], Images]:
    """Return torch as most would run it."""
    network = checkpoint.load_model(path)[0].to(memory_format=torch.contiguous_format)
    return TorchEngine(network, device="cpu")


def channels_last(path: Path) -> Callable[[Images], Images]:
    """Return torch as the counter runs it: pictures come pixel by pixel."""
    engine = TorchEngine(checkpoint.load_model(path)[0], device="cpu")

    def run(images: Images) -> Images:
        return engine(np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2))

    return run


if __name__ == "__main__":
    main()
