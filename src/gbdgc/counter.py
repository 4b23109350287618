"""Counter: the object to deploy. Pictures in, Results out, on any engine."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gbdgc import tiling
from gbdgc.data.images import MAX_PIXELS, RGB, read_image, to_array, to_rgb
from gbdgc.data.transforms import limit_side, resized
from gbdgc.engines import ENGINES, EXPORTED, SUFFIXES, Engine, EngineName, TorchEngine
from gbdgc.errors import InputError
from gbdgc.result import Result
from gbdgc.trust import FAR, Trust

Picture = str | os.PathLike[str] | bytes | Image.Image | NDArray[np.uint8]
"""What can be counted: a path, an encoded file's bytes, a PIL image, an RGB or grey array of eight bits."""

BUNDLED = "weights/bundled.safetensors"

_BATCH = 8
"""Pictures of one size counted together on a graphics card; a CPU gains nothing by it and needs the memory."""

_FINE_PIXELS = 16_000_000
_COARSE_STRIDE = 4
"""Over so many pixels a result keeps its density at this stride, which is the network's own: 1/16 of the memory."""


class Counter:
    """Count people in pictures.

    Parameters
    ----------
    engine : what runs the network.
    trust : the training cloud, by which results say how far a picture lies out of it.
    max_side : pictures are made smaller to this longer side first, as in the model's training.
    descriptor_size : the side to which pictures are brought to be judged by ``trust``.
    tile : pictures with a longer side are counted in overlapping windows of this side, in bounded memory.
    batch : pictures of one size that are counted together. More than 1 pays on graphics cards.
    max_pixels : larger picture files, and videos of larger pictures, are refused.
    info : what else the model's file says of it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        trust: Trust | None = None,
        max_side: int | None = None,
        descriptor_size: int = 224,
        tile: int = tiling.TILE,
        batch: int = 1,
        max_pixels: int = MAX_PIXELS,
        info: dict[str, Any] | None = None,
    ) -> None:
        if max_side is not None and max_side < 1:
            raise InputError(f"max_side={max_side}: a side has at least one pixel; give None to count at full size")
        self.engine = engine
        self.trust = trust
        self.max_side = max_side
        self.descriptor_size = descriptor_size
        self.tile = tiling.check_tile(tile)
        self.batch = batch
        self.max_pixels = max_pixels
        self.info = info or {}

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        engine: EngineName | None = None,
        device: str | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> Self:
        """Load a model.

        Parameters
        ----------
        path : a run's folder, a model file, or a file made by ``gbdgc export``; the bundled model unless given.
        engine : "torch", "onnx" or "openvino". An exported file knows its own; every other model runs in torch unless
            another is named, and is then exported once, into the cache.
        device : where to run, as the engine calls it; by default the graphics card where torch has one, else the CPU.
        threads : CPU threads to use.
        **options : arguments of `Counter`, such as ``tile``.
        """
        path = bundled_model() if path is None else Path(path)
        exported_for = SUFFIXES.get(path.suffix.lower())
        chosen = engine or exported_for or "torch"
        if chosen not in ENGINES:
            raise InputError(f"engine {chosen!r}: there is no such engine; choose one of {', '.join(ENGINES)}")
        if exported_for is not None and chosen != exported_for:
            raise InputError(f"{path}: made for {exported_for}, not for {chosen}; leave the engine out")
        if threads is not None and threads < 1:
            raise InputError(f"threads={threads}: at least one; leave it out to use all cores")
        if chosen == "torch":
            from gbdgc.checkpoint import load_model

            network, info, tensors = load_model(path)
            extras = {name: tensor.numpy() for name, tensor in tensors.items()}
            runner = TorchEngine(network, device=device, threads=threads)
            made: Engine = runner
            batch = 1 if runner.device.type == "cpu" else _BATCH
        else:
            if exported_for is None:
                from gbdgc.export import export_to_cache

                path = export_to_cache(path, chosen)
            runtime = EXPORTED[chosen](path, device=device, threads=threads)
            info, extras = runtime.description
            made, batch = runtime, 1
        trust = {name.removeprefix("trust/"): array for name, array in extras.items() if name.startswith("trust/")}
        settings: dict[str, Any] = {name: info[name] for name in ("max_side", "descriptor_size") if name in info}
        settings |= {"batch": batch, "trust": Trust.from_arrays(trust) if trust else None, "info": info}
        return cls(made, **(settings | options))

    @overload
    # A str is an iterable of str, but it is one picture: this signature comes first.
    def __call__(self, source: Picture) -> Result: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, source: Iterable[Picture]) -> list[Result]: ...

    def __call__(self, source: Picture | Iterable[Picture]) -> Result | list[Result]:
        """Count one picture, or each of several; a list gives a list, in its order."""
        if isinstance(source, str | os.PathLike | bytes | Image.Image | np.ndarray) or not isinstance(source, Iterable):
            return self.count(source)
        return list(self.each(source))

    def count(self, picture: Picture, *, check: Callable[[], None] | None = None) -> Result:
        """Count one picture; ``check`` is called before each of its windows, and what it raises ends the count."""
        return self._count([_open(picture, self.max_pixels)], check)[0]

    def each(self, sources: Iterable[Picture]) -> Iterator[Result]:
        """Count pictures one after another as they are asked for; up to ``batch`` of one size in a row go together.

        A picture that is bad raises its error behind the results of those before it.
        """
        waiting: list[_Opened] = []
        for source in sources:
            try:
                picture = _open(source, self.max_pixels)
            except InputError:
                yield from self._count(waiting)
                raise
            if waiting and waiting[0].image.shape != picture.image.shape:
                yield from self._count(waiting)
                waiting = []
            waiting.append(picture)
            # Not when the next one comes: it may be long in coming, as from a folder that is watched.
            if len(waiting) >= self.batch:
                yield from self._count(waiting)
                waiting = []
        yield from self._count(waiting)

    def stream(self, source: str | int | Path, every: float = 1.0, **options: Any) -> Iterator[Result]:
        """Count a frame of a video, camera or stream every so many seconds, each with its time and a smoothed count.

        A result names its source without the password that an address may hold.

        Parameters
        ----------
        source : as for `gbdgc.video.frames`: a file, a camera's number, an address.
        every : seconds between counts; 0 counts every frame.
        **options : further arguments of `gbdgc.video.frames`.
        """
        from gbdgc.video import Smoother, frames
        from gbdgc.video.sources import public_name

        smoother, name = Smoother(), public_name(source)
        for frame in frames(source, every, **({"max_pixels": self.max_pixels} | options)):
            result = self._count([_Opened(frame.image, name)])[0]
            yield replace(result, time=frame.time, smoothed=smoother(result.count, frame.time))

    def _count(self, pictures: Sequence["_Opened"], check: Callable[[], None] | None = None) -> list[Result]:
        """Count pictures of one size together."""
        if not pictures:
            return []
        started = time.perf_counter()
        images = [picture.image for picture in pictures]
        height, width = images[0].shape[:2]
        stride = 1 if height * width <= _FINE_PIXELS else _COARSE_STRIDE
        seen = [limit_side(image, self.max_side) for image in images]
        if seen[0].shape == images[0].shape:
            cells = tiling.count_cells(self.engine, seen, stride=stride, tile=self.tile, check=check)
        else:
            densities = tiling.count_cells(self.engine, seen, tile=self.tile, check=check)
            cells = np.stack([tiling.regrid(density, height, width, stride) for density in densities])
        verdicts = self._judge(seen)
        milliseconds = 1000 * (time.perf_counter() - started) / len(images)
        return [
            Result(
                own,
                width=width,
                height=height,
                stride=stride,
                image=picture.image,
                source=picture.name,
                milliseconds=milliseconds,
                **verdict,
            )
            for own, picture, verdict in zip(cells, pictures, verdicts, strict=True)
        ]

    def _judge(self, images: Sequence[RGB]) -> list[dict[str, Any]]:
        """Say of each picture which latent domain it is nearest to, and how far out of the training cloud."""
        if self.trust is None:
            return [{} for _ in images]
        size = self.descriptor_size
        rows = self.engine.describe(tiling.stack([resized(image, size, size) for image in images]))
        verdicts = [self.trust.judge(row) for row in rows]
        return [
            {
                "domain": verdict.domain,
                "novelty": verdict.novelty,
                "warnings": (_unlike(verdict.novelty),) if verdict.novelty > FAR else (),
            }
            for verdict in verdicts
        ]


class _Opened(NamedTuple):
    image: RGB
    name: str | None


def _open(source: Picture, max_pixels: int) -> _Opened:
    """Return any kind of picture as upright RGB, with its name where it has one."""
    if isinstance(source, np.ndarray):
        return _Opened(_check_array(source), None)
    if isinstance(source, Image.Image):
        name = str(getattr(source, "filename", "")) or None
        try:
            return _Opened(to_array(to_rgb(ImageOps.exif_transpose(source))), name)
        except OSError as error:  # Pillow decodes no earlier than this
            raise InputError(f"{name or 'the picture'}: damaged or truncated ({error})") from error
    if isinstance(source, bytes):
        return _Opened(read_image(source, max_pixels=max_pixels), None)
    if isinstance(source, str | os.PathLike):
        return _Opened(read_image(source, max_pixels=max_pixels), os.fspath(source))
    raise InputError(f"cannot count a {type(source).__name__}; give a path, a PIL image or an RGB array")


def _check_array(array: NDArray[Any]) -> RGB:
    """Return an array as RGB, or say what is wrong with it: a guess would give a wrong number without a word."""
    shape = " x ".join(map(str, array.shape))
    if array.dtype != np.uint8:
        raise InputError(
            f"an array of {array.dtype}: give eight bits (uint8) from 0 to 255; "
            "for values from 0 to 1 that is (255 * image).round().astype('uint8')"
        )
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3:
        hint = "; a list of pictures gives a list of results" if array.ndim == 4 else ""
        raise InputError(f"an array of {shape}: give rows x columns x 3 (RGB) or rows x columns (grey){hint}")
    if 0 in array.shape:
        raise InputError(f"an array of {shape}: there is nothing in it")
    return array


def _unlike(novelty: float) -> str:
    return f"unlike the pictures the model was trained on (novelty {novelty:.2f}): the count may be far off"


def bundled_model() -> Path:
    """Return the model that comes with the package."""
    path = Path(str(files("gbdgc") / BUNDLED))
    if not path.exists():
        raise InputError(
            f"{path}: this installation has no bundled model; train one (docs/training.md) and give its run folder, "
            "or install gbdgc again from a whole clone"
        )
    return path
