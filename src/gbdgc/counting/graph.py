"""The counting part of a network as a graph in a file, for onnxruntime or OpenVINO, in 32 or 8 bits."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gbdgc.counting.engines import DENSITY, DESCRIPTION_KEY, INPUT, STATISTICS, require, sealed
from gbdgc.counting.rounding import quiet
from gbdgc.data.transforms import STRIDE
from gbdgc.descriptors import channel_statistics
from gbdgc.files import atomic_write, folder_beside
from gbdgc.models import Network

_OPSET = 18
_FOLDED = 2**28


class CountingGraph(nn.Module):
    """The part of a network that counts, in the form that exports best: people per pixel, and channel statistics.

    The head is linear, so head(E a) = (head E) a: each codeword is a density, and the mixture of codewords a mixture of
    these. That spares the second of the codebook's two large products, half of its work, and computes the same.
    Runtimes fuse no attention with a value of one number, nor need they: the softmax is a plain one.

    The statistics, by which trust is judged, are a second output: one file holds all, and for a picture
    of 224 x 224 the unused density costs little.
    """

    keys_DM: Tensor | None
    values_M1: Tensor
    bias_1: Tensor

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        head_D1 = network.head.weight.detach().reshape(-1, 1)
        bias = network.head.bias
        self.register_buffer("bias_1", torch.zeros(1) if bias is None else bias.detach())
        if network.codebook is None:
            self.register_buffer("keys_DM", None)
            self.register_buffer("values_M1", head_D1)
        else:
            codewords_MD = network.codebook.codewords_MD.detach()
            self.register_buffer("keys_DM", codewords_MD.T / math.sqrt(codewords_MD.shape[1]))
            self.register_buffer("values_M1", codewords_MD @ head_D1)
        for module in network.modules():
            if isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1):
                module.dilation = (1, 1)  # what makes them fast in torch may be slow elsewhere

    def forward(self, images_B3HW: Tensor) -> tuple[Tensor, Tensor]:
        """Return people per pixel (B, 1, H, W) and the statistics of the encoder's levels, one row per image."""
        network = self.network
        features = network.backbone(images_B3HW)
        mixture = network.semantic(features.fused).permute(0, 2, 3, 1)
        if self.keys_DM is not None:
            mixture = torch.softmax(mixture @ self.keys_DM, dim=-1)
        positive_B1hw = functional.relu(mixture @ self.values_M1 + self.bias_1).permute(0, 3, 1, 2)
        occupancy = None if network.occupancy is None else network.occupancy(features.context)
        density = network.to_pixels(network.to_cells(positive_B1hw, occupancy))
        return density, channel_statistics(features.encoder)


def write_graph(network: Network, path: Path) -> Path:
    """Write the counting graph as ONNX in 32 bits."""
    require("onnx", "export")
    optimizer = require("onnxscript.optimizer", "export")
    graph = CountingGraph(network.cpu()).eval().requires_grad_(False)
    # All sizes differ, so that none is mistaken for another; and none is 1, which the exporter treats as a constant.
    example = torch.zeros(2, 3, 4 * STRIDE, 6 * STRIDE)
    free = torch.export.Dim.DYNAMIC
    with quiet():
        program = torch.onnx.export(
            graph,
            (example,),
            dynamo=True,
            opset_version=_OPSET,
            input_names=[INPUT],
            output_names=[DENSITY, STATISTICS],
            dynamic_shapes=({0: free, 2: free, 3: free},),
            optimize=False,
            verbose=False,
        )
        assert program is not None
        # What depends on weights alone is computed now, whatever its size: 8-bit conversion looks for kernels,
        # not for the products that give them.
        optimizer.optimize_ir(program.model, input_size_limit=_FOLDED, output_size_limit=_FOLDED)
        program.save(path, external_data=False)
    _strip_zero_borders(path)
    return path


def _strip_zero_borders(graph: Path) -> None:
    """Replace kernels that begin with a row and a column of zeros by smaller ones under asymmetric padding.

    Torch pads both sides alike, so the network adds these zeros to get "same" padding at stride 2. Graphs can pad one
    side alone, and runtimes have fast code for 3 x 3 and 5 x 5, but none for 4 x 4 and 6 x 6.
    """
    onnx = require("onnx", "export")
    model = onnx.load(graph)
    kernels = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in (node for node in model.graph.node if node.op_type == "Conv" and node.input[1] in kernels):
        kernel = onnx.numpy_helper.to_array(kernels[node.input[1]])
        attributes = {attribute.name: attribute.ints for attribute in node.attribute}
        top, left, bottom, right = attributes["pads"]
        if min(top, left) < 1 or kernel[..., 0, :].any() or kernel[..., 0].any():
            continue
        smaller = np.ascontiguousarray(kernel[..., 1:, 1:])
        kernels[node.input[1]].CopyFrom(onnx.numpy_helper.from_array(smaller, node.input[1]))
        attributes["pads"][:] = [top - 1, left - 1, bottom, right]
        if "kernel_shape" in attributes:
            attributes["kernel_shape"][:] = smaller.shape[2:]
    model.graph.ClearField("value_info")  # holds the former shapes; runtimes infer shapes anew
    onnx.save(model, graph)


def scale_density(graph: Path, factor: float) -> None:
    """Scale the counts of a written graph, which is cheaper than tracing it again."""
    onnx = require("onnx", "export")
    model = onnx.load(graph)
    for tensor in model.graph.initializer:
        if tensor.name in {"values_M1", "bias_1"}:
            scaled = onnx.numpy_helper.to_array(tensor) * np.float32(factor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(scaled, tensor.name))
    onnx.save(model, graph)


def write_onnx(graph: Path, out: Path, description: str) -> None:
    """Write a graph, in 32 bits or in 8, for onnxruntime."""
    onnx = require("onnx", "export")
    model = onnx.load(graph)
    onnx.helper.set_model_props(model, {DESCRIPTION_KEY: description})
    with atomic_write(out) as file:
        file.write(sealed(model.SerializeToString(), ".onnx"))


def write_openvino(graph: Path, out: Path, description: str) -> None:
    """Write a graph, in 32 bits or in 8, for OpenVINO: an .xml and its .bin."""
    openvino = require("openvino", "openvino")
    model = openvino.convert_model(graph)
    model.set_rt_info(description, DESCRIPTION_KEY)
    with folder_beside(out) as folder:
        xml = folder / out.name
        openvino.save_model(model, xml, compress_to_fp16=False)
        xml.write_bytes(sealed(xml.read_bytes(), ".xml", xml.with_suffix(".bin").read_bytes()))
        # The weights first, so that they are there once the .xml appears.
        for suffix in (".bin", ".xml"):
            (folder / out.name).with_suffix(suffix).replace(out.with_suffix(suffix))


WRITERS = {"onnx": write_onnx, "openvino": write_openvino}
"""Writes the exported file, for each engine that reads such files."""
