"""Quantising a counting graph to 8 bits: what is quantised, what stays in 32 bits, and how the bias is corrected.

Two things shift counts. The picture, the density and the gate must not be rounded: there is little to gain, and their
errors go straight into the count. And the rounding errors of a kernel do not cancel if its inputs are all positive, as
after every ReLU: they add up to an offset per channel, largest in depthwise kernels, which have only nine weights. That
offset can be predicted from the mean of each input channel, and is subtracted from the bias.
"""

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdgc.counting.engines import INPUT, require

_KINDS = ["Conv", "Add", "Concat", "Resize", "MaxPool", "Relu", "Clip"]
_LARGEST = 64
"""The whole number that onnxruntime's converter gives to a kernel's largest weight. Seven bits: processors without VNNI
add pairs of 8-bit products in 16 bits, which overflows."""

_FIRST_BLOCKS, _LAST_KERNELS = 2, 3


def in_8_bits(graph: Path, inputs: Sequence[NDArray[np.float32]]) -> Path:
    """Write the graph beside itself in 8 bits, calibrated on these inputs. Both onnxruntime and OpenVINO run it so."""
    quantization = require("onnxruntime.quantization", "export")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.rest = iter(inputs)

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            images = next(self.rest, None)
            return None if images is None else {INPUT: images}

    nodes = require("onnx", "export").load(graph).graph.node
    chosen = nodes_in_8_bits(nodes)
    converted = graph.with_name("int8.onnx")
    with quiet():
        quantization.quantize_static(
            correct_biases(graph, inputs),
            converted,
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=_KINDS,
            nodes_to_exclude=[node.name for node in nodes if node.name not in chosen],
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            # From the least to the largest value: the few that a narrower range cuts off are the densest crowds.
            calibrate_method=quantization.CalibrationMethod.MinMax,
        )
    return converted


def nodes_in_8_bits(nodes: Sequence[Any]) -> set[str]:
    """Return the nodes to convert: those behind the first convolution on whose result the head's product is made.

    All else stays in 32 bits. In front lies the picture: were it rounded, onnxruntime would round the first kernel too,
    and that for all channels alike. Behind lies the head, whose errors are errors of the count, and
    the codebook, whose softmax makes a factor of each error in the logits. Aside lie the gate and the statistics.
    """
    first = next(node for node in nodes if node.op_type == "Conv")
    head = next(node for node in nodes if node.op_type == "MatMul")
    chosen = _leading_to(nodes, head.input[0]) - _leading_to(nodes, first.output[0])
    return chosen - _sensitive(nodes, chosen)


def _sensitive(nodes: Sequence[Any], chosen: set[str]) -> set[str]:
    """Return what small networks, those built of depthwise kernels, keep in 32 bits beside the head and the picture.

    Their first blocks have few channels over which rounding errors could average out, and their last kernels hand
    their errors to the head, where they move all counts of sparse scenes one way.
    """
    kernels = [node for node in nodes if node.op_type == "Conv" and node.name in chosen]
    groups = [next((part.i for part in node.attribute if part.name == "group"), 1) for node in kernels]
    depthwise = [place for place, number in enumerate(groups) if number > 1]
    if len(depthwise) <= _FIRST_BLOCKS:
        return set()
    names = [node.name for node in nodes]
    first_of_last = names.index(kernels[-_LAST_KERNELS].name)
    return {node.name for node in kernels[: depthwise[_FIRST_BLOCKS - 1] + 1]} | set(names[first_of_last:])


def correct_biases(graph: Path, inputs: Sequence[NDArray[np.float32]]) -> Path:
    """Write the graph beside itself with its kernels rounded and the mean of what that changes taken off their biases.

    The converter finds the weights on its own grid, and rounds them no further.
    """
    onnx = require("onnx", "export")
    model = onnx.load(graph)
    rounded = nodes_in_8_bits(model.graph.node)
    kernels = [node for node in model.graph.node if node.op_type == "Conv" and node.name in rounded]
    means = _channel_means(model, sorted({node.input[0] for node in kernels}), inputs)
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in kernels:
        signal, kernel, *bias = node.input
        weight = arrays[kernel].astype(np.float64)
        # Whole multiples of a step per output channel, as the converter will have them.
        largest_O = np.abs(weight).max(axis=(1, 2, 3), keepdims=True)
        step_O = np.where(largest_O > 0, largest_O, 1) / _LARGEST
        on_grid = np.round(weight / step_O) * step_O
        error_OI = (on_grid - weight).sum(axis=(2, 3))
        # A depthwise kernel has one input channel for each output channel.
        shift_O = error_OI[:, 0] * means[signal] if error_OI.shape[1] == 1 else error_OI @ means[signal]
        # Under names of their own: another node may read the same weights or biases.
        own = {f"{node.name}_kernel": on_grid, f"{node.name}_bias": (arrays[bias[0]] if bias else 0) - shift_O}
        node.input[:] = [signal, *own]
        for name, array in own.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    read = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    corrected = graph.with_name(f"corrected-{graph.name}")
    onnx.save(model, corrected)
    return corrected


def _channel_means(
    model: Any, names: Sequence[str], inputs: Sequence[NDArray[np.float32]]
) -> dict[str, NDArray[np.float64]]:
    """Return the mean of each channel of feature maps; pooled within the graph, as the maps are large."""
    onnx, runtime = require("onnx", "export"), require("onnxruntime", "export")
    pooled = [f"{name}_mean" for name in names]
    observed = onnx.ModelProto()
    observed.CopyFrom(model)
    for name, mean in zip(names, pooled, strict=True):
        observed.graph.node.append(onnx.helper.make_node("GlobalAveragePool", [name], [mean]))
        observed.graph.output.append(onnx.helper.make_empty_tensor_value_info(mean))
    session = runtime.InferenceSession(observed.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = [session.run(pooled, {INPUT: images}) for images in inputs]
    return {
        name: np.mean([row[place].mean(axis=(0, 2, 3), dtype=np.float64) for row in rows], axis=0)
        for place, name in enumerate(names)
    }


def _leading_to(nodes: Sequence[Any], tensor: str) -> set[str]:
    """Return the names of the nodes that compute a tensor."""
    made_by = {output: node for node in nodes for output in node.output}
    found: set[str] = set()
    pending = [tensor]
    while pending:
        node = made_by.get(pending.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            pending.extend(node.input)
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of exporters, and keep their progress bars off stdout, which is for data."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
