"""`gbdgc export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gbdgc.cli.options import Flag
from gbdgc.errors import InputError, UsageError, noted_in
from gbdgc.files import folder_beside
from gbdgc.progress import stderr, stdout

if TYPE_CHECKING:
    from gbdgc.data.images import RGB

_CALIBRATION_IMAGES, _CHECK_IMAGES = 32, 16


def export(
    weights: Path,
    *,
    to: Literal["onnx", "openvino", "safetensors"],
    int8: Flag = False,
    calibrate: Path | None = None,
    out: Path | None = None,
    force: Flag = False,
) -> None:
    """Write a model for another runtime, and check its counts against torch.

    Parameters
    ----------
    weights
        A run's folder, a model file, or a name from `gbdgc models`.
    to
        The runtime; safetensors is this package's own format, with 16-bit weights.
    int8
        Convert to 8 bits, which is faster and less exact.
    calibrate
        A folder of pictures like those to be counted, used to calibrate 8 bits and to measure the drift; by default
        drawn scenes.
    out
        The file to write; by default next to the weights.
    force
        Keep an 8-bit model whose counts drift by more than 2 %.
    """
    from gbdgc.checkpoint import model_file, save_half
    from gbdgc.counting.engines import EXPORT_SUFFIXES
    from gbdgc.counting.export import DRAWN_CHECKED, MAX_DRIFT, drawn_scenes, measure_drift
    from gbdgc.counting.export import export as write_export

    if force and not int8:
        raise UsageError("--force", "only models in 8 bits are refused for their drift", "leave it out, or add --int8")
    file = model_file(weights)
    if to == "safetensors" and int8:
        raise UsageError("--int8", "this package's own files have 16 bits", "leave it out, or take onnx or openvino")
    suffix = EXPORT_SUFFIXES.get(to, ".safetensors")
    kind = "-int8" if int8 else "-half" if to == "safetensors" else ""
    out = out or file.with_name(f"{file.stem}{kind}{suffix}")
    if out.is_dir():
        raise UsageError(f"--out {out}", "a folder", f"name a file, such as {out / file.stem}{suffix}")
    if out.suffix != suffix:
        raise UsageError(f"--out {out}", f"files for {to} end in {suffix}")
    with stderr.status("drawing scenes" if calibrate is None else f"reading pictures of {calibrate}"):
        if calibrate is None:
            calibration = drawn_scenes() if int8 else []
            check = drawn_scenes(DRAWN_CHECKED, first=len(calibration))
        else:
            chosen = read_some(calibrate, _CALIBRATION_IMAGES + _CHECK_IMAGES)
            # Those to check on are others, unless there are few.
            few = len(chosen) < 6
            calibration = [image for index, image in enumerate(chosen) if few or index % 3]
            check = chosen if few else chosen[::3]
    with folder_beside(out) as folder:
        made = folder / out.name
        with stderr.status(f"exporting for {to}"):
            if to == "safetensors":
                save_half(file, made)
            else:
                write_export(file, made, calibration=calibration if int8 else None)
        with stderr.status(f"counting {len(check)} pictures by torch and by {to}"):
            drift = measure_drift(file, made, check)
        stdout.print(
            f"speed: {drift.speedup:.2f} x torch ({drift.torch_milliseconds:.0f} -> {drift.milliseconds:.0f} ms)"
        )
        stdout.print(f"drift: {drift.relative:.3%} of the count (bias {drift.bias:+.3%}) on {drift.images} pictures")
        if int8 and drift.relative > MAX_DRIFT and not force:
            reason = f"not written: in 8 bits the counts drift by {drift.relative:.1%}, over {MAX_DRIFT:.0%}"
            advice = "calibrate on more pictures like those to be counted, leave --int8 out, or keep it by --force"
            raise InputError(out, reason, advice)
        for part in sorted(folder.iterdir(), key=lambda part: part.suffix == ".xml"):
            part.replace(out.with_suffix(part.suffix))
    stdout.print(f"model: {out}", soft_wrap=True, markup=False)


def read_some(folder: Path, count: int) -> "list[RGB]":
    """Return ``count`` pictures evenly spread over a folder; unreadable ones are reported and left out."""
    from gbdgc.data.images import IMAGE_SUFFIXES, read_image
    from gbdgc.data.statistics import at_equal_steps

    if not folder.is_dir():
        raise InputError(f"--calibrate {folder}", "no such folder")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        raise InputError(f"--calibrate {folder}", "there are no pictures in it")
    chosen: list[RGB] = []
    problems: list[str] = []
    for path in at_equal_steps(paths, count):
        with noted_in(problems):
            chosen.append(read_image(path))
    for problem in problems:
        stderr.print(f"left out: {problem}", soft_wrap=True, markup=False)
    if not chosen:
        raise InputError(f"--calibrate {folder}", "none of the pictures looked at can be read")
    return chosen
