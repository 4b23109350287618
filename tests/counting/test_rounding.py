"""8 bits: only kernels on the way to the head are rounded, and that moves no channel's mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gbdgc.counting.rounding import correct_biases, in_8_bits, nodes_in_8_bits

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

Floats = NDArray[np.float32]
KERNELS = {"first": (6, 3, 3, 3), "depthwise": (6, 1, 3, 3), "mixing": (8, 6, 1, 1), "gate": (1, 6, 1, 1)}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Return a small counting graph: a head behind three kernels, and a gate aside."""
    rng = np.random.default_rng(0)
    weights = {f"{name}_w": rng.standard_normal(shape) for name, shape in KERNELS.items()}
    weights |= {"depthwise_b": rng.standard_normal(6), "values_M1": rng.standard_normal((8, 1))}

    def kernel(name: str, source: str, *bias: str, group: int = 1) -> Any:
        side = KERNELS[name][2] // 2
        inputs = [source, f"{name}_w", *bias]
        return onnx.helper.make_node("Conv", inputs, [name], name=name, group=group, pads=[side] * 4)

    def plain(kind: str, *inputs: str, out: str, **options: Any) -> Any:
        return onnx.helper.make_node(kind, inputs, [out], name=out, **options)

    nodes = [
        plain("Add", "images", "images", out="brighter"),
        kernel("first", "brighter"),
        plain("Relu", "first", out="positive"),
        kernel("depthwise", "positive", "depthwise_b", group=6),
        plain("Relu", "depthwise", out="filtered"),
        kernel("mixing", "filtered"),
        plain("Relu", "mixing", out="mixed"),
        plain("Transpose", "mixed", out="pixels", perm=[0, 2, 3, 1]),
        plain("MatMul", "pixels", "values_M1", out="people"),
        plain("Relu", "people", out="density"),
        kernel("gate", "filtered"),
        plain("Add", "gate", "gate", out="statistics"),
    ]
    of_floats = onnx.TensorProto.FLOAT
    made = onnx.helper.make_graph(
        nodes,
        "counting",
        [onnx.helper.make_tensor_value_info("images", of_floats, [1, 3, 32, 32])],
        [onnx.helper.make_tensor_value_info(name, of_floats, None) for name in ("density", "statistics")],
        [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    path = tmp_path / "graph.onnx"
    onnx.save(onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.fixture
def inputs() -> list[Floats]:
    """Return pictures to calibrate on."""
    return list(np.random.default_rng(1).standard_normal((4, 1, 3, 32, 32)).astype(np.float32))


def test_the_picture_the_head_and_what_lies_aside_stay_in_32_bits(graph: Path, inputs: list[Floats]) -> None:
    assert nodes_in_8_bits(onnx.load(graph).graph.node) == {
        *("positive", "depthwise", "filtered", "mixing", "mixed", "pixels")
    }
    nodes = onnx.load(in_8_bits(graph, inputs)).graph.node
    rounded = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear"}
    kernels = {node.name: set(node.input) & rounded for node in nodes if node.op_type == "Conv"}
    assert kernels["first"] == set()
    assert len(kernels["depthwise"]) == len(kernels["mixing"]) == 3
    assert not kernels["gate"] & {name for name in rounded if name.startswith("gate")}
    values = {name for node in nodes if node.op_type == "QuantizeLinear" for name in node.input}
    assert not values & {"brighter", "people", "density", "gate", "statistics"}


def test_rounding_a_kernel_leaves_the_mean_of_each_channel_where_it_was(graph: Path, inputs: list[Floats]) -> None:
    corrected = correct_biases(graph, inputs)
    before, after = weights_of(graph), weights_of(corrected)
    assert {"depthwise_w", "depthwise_b", "mixing_w"}.isdisjoint(after), "what nothing reads any more is left out"
    # The first rounded kernel alone: behind it, means also depend on what the ReLU cuts off.
    expected, found = (channel_means(path, "depthwise", inputs) for path in (graph, corrected))
    bias = after["depthwise_bias"]
    uncorrected = found + before["depthwise_b"] - bias
    assert np.abs(uncorrected - expected).max() > 0.01, "nothing to correct here"
    # Zeros around the picture are not in the mean of the input.
    assert np.abs(found - expected).max() < 0.1 * np.abs(uncorrected - expected).max()


def test_the_converter_rounds_corrected_kernels_no_further(graph: Path, inputs: list[Floats]) -> None:
    corrected, converted = weights_of(correct_biases(graph, inputs)), weights_of(in_8_bits(graph, inputs))
    for kernel in ("depthwise_kernel", "mixing_kernel"):
        whole, step = converted[f"{kernel}_quantized"], converted[f"{kernel}_scale"]
        np.testing.assert_allclose(whole * step[:, None, None, None], corrected[kernel], rtol=1e-5, atol=1e-7)
        assert np.abs(whole).max() == 64


def weights_of(path: Path) -> dict[str, NDArray[Any]]:
    """Return the constants of a graph."""
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def channel_means(path: Path, tensor: str, inputs: list[Floats]) -> NDArray[np.float64]:
    """Return the means of a tensor's channels over all inputs."""
    model = onnx.load(path)
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(tensor))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    maps = [session.run([tensor], {"images": images})[0] for images in inputs]
    return np.concatenate(maps).mean(axis=(0, 2, 3), dtype=np.float64)
