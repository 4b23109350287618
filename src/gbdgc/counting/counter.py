"""Counter: the object to deploy. Pictures in, Results out, on any engine."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from PIL import Image

from gbdgc.counting import tiling
from gbdgc.counting.conformal import Conformal, features_of
from gbdgc.counting.engines import ENGINES, EXPORT_SUFFIXES, Engine, exported_for, require
from gbdgc.counting.result import Result
from gbdgc.counting.sources import Picture, Source
from gbdgc.counting.trust import FAR, Trust
from gbdgc.data.images import MAX_PIXELS, RGB
from gbdgc.data.transforms import DESCRIBED_SIDE, check_preparation, limit_side, preparation, resized
from gbdgc.errors import InputError, about
from gbdgc.files import AnyPath
from gbdgc.shipped import find_model

_FINE_PIXELS = 16_000_000
_COARSE_STRIDE = 4  # above _FINE_PIXELS a result keeps its density at this stride: a sixteenth of the memory

_TINY = np.zeros((1, 3, 32, 32), dtype=np.float32)
"""A picture to describe once, to learn the length of an engine's descriptors."""


@dataclass(eq=False, repr=False)
class Counter:
    """Count people in pictures.

    Parameters
    ----------
    engine : what runs the network.
    trust : the training cloud; results say how far their picture lies outside it.
    conformal : the calibration of intervals; results without it have none.
    max_side : pictures with a longer side are shrunk to it first, as in the model's training.
    test_scale : pictures, shrunk to ``max_side`` if need be, are scaled by this factor before counting.
    descriptor_size : the side to which pictures are resized to be judged by ``trust``.
    tile : pictures with a longer side are counted in overlapping windows of this side, in bounded memory.
    batch : pictures of one size that are counted together. More than 1 pays on graphics cards.
    max_pixels : larger picture files, and videos of larger pictures, are refused.
    info : everything else that the model's file says about it.
    """

    engine: Engine
    _: KW_ONLY
    trust: Trust | None = None
    conformal: Conformal | None = None
    max_side: int | None = None
    test_scale: float = 1.0
    descriptor_size: int = DESCRIBED_SIDE
    tile: int = tiling.TILE
    batch: int = 1
    max_pixels: int = MAX_PIXELS
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tile = tiling.check_tile(self.tile)
        check_preparation(self.max_side, self.test_scale, self.descriptor_size)

    @classmethod
    def load(
        cls,
        path: AnyPath | None = None,
        *,
        engine: str | None = None,
        int8: bool = False,
        device: str | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> Self:
        """Load a model.

        Parameters
        ----------
        path : a run's folder, a model file, a file made by ``gbdgc export``, or the name of a model that comes with the
            package, as ``gbdgc models`` lists them; by default the bundled one.
        engine : "torch", "onnx" or "openvino". An exported file knows its own; every other model runs in torch unless
            another is named, and is then exported once, into the cache.
        int8 : have "onnx" or "openvino" count in 8 bits, which is faster and a little less exact.
        device : where to run, as the engine calls it; by default the graphics card where torch has one, else the CPU.
        threads : CPU threads to use.
        **options : arguments of `Counter`, such as ``tile``.
        """
        path = find_model(path)
        made_for = exported_for(path)
        chosen = engine or made_for or "torch"
        if chosen not in ENGINES:
            raise InputError(f"engine {chosen!r}", "there is no such engine", f"choose one of {', '.join(ENGINES)}")
        if made_for is not None and chosen != made_for:
            raise InputError(path, f"made for {made_for}, not for {chosen}", "leave the engine out")
        if int8 and made_for is not None:
            raise InputError("int8", f"{path} is exported already, in the bits it has", "leave it out")
        if int8 and chosen not in EXPORT_SUFFIXES:
            advice = f"name one of {', '.join(EXPORT_SUFFIXES)} as the engine"
            raise InputError("int8", f"{chosen} counts in 32 bits", advice)
        if threads is not None and threads < 1:
            raise InputError(f"threads={threads}", "at least one", "leave it out to use all cores")
        if made_for is None and chosen in EXPORT_SUFFIXES:
            require("torch", "torch")
            from gbdgc.counting.export import export_to_cache

            path = export_to_cache(path, chosen, int8=int8)
        opened = ENGINES[chosen](path, device=device, threads=threads)
        info, extras = opened.description
        trust, conformal = (
            {name.removeprefix(part): array for name, array in extras.items() if name.startswith(part)}
            for part in ("trust/", "conformal/")
        )
        with about(path):
            settings: dict[str, Any] = preparation(info) | {"batch": opened.batch, "info": info}
        if trust:
            with about(path, "trust"):
                settings["trust"] = Trust.from_arrays(trust)
                settings["trust"].check_fits(opened.describe(_TINY)[0])
        if conformal:
            with about(path, "intervals"):
                settings["conformal"] = Conformal.from_arrays(conformal)
        return cls(opened, **(settings | options))

    @overload
    # A str is an iterable of str, but it is one picture: this signature comes first.
    def __call__(self, source: Picture) -> Result: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, source: Iterable[Picture]) -> list[Result]: ...

    def __call__(self, source: Picture | Iterable[Picture]) -> Result | list[Result]:
        """Count one picture, or each of several; a list gives a list, in its order."""
        if isinstance(source, str | os.PathLike | bytes | Image.Image | np.ndarray) or not isinstance(source, Iterable):
            return next(self.each([source]))
        return list(self.each(source))

    def each(self, sources: Iterable[Picture]) -> Iterator[Result]:
        """Count pictures one after another as they are asked for; up to ``batch`` of one size in a row go together.

        A picture that is bad raises its error after the results of those before it.
        """
        yield from _results(self, sources)

    def stream(self, source: str | int | Path, every: float = 1.0, **options: Any) -> Iterator[Result]:
        """Count frames of a video, camera or stream at regular intervals, each with its time and a smoothed count.

        A result names its source without the password that an address may hold.

        Parameters
        ----------
        source : as for `gbdgc.counting.video.frames`: a file, a camera's number, an address.
        every : seconds between counts; 0 counts every frame.
        **options : further arguments of `gbdgc.counting.count_sources` and `gbdgc.counting.video.frames`.
        """
        yield from _results(self, [Source(source, moving=True)], every=every, **options)

    def count_together(
        self, images: Sequence[RGB], *, size: tuple[int, int] | None = None, check: Callable[[], None] | None = None
    ) -> list[Result]:
        """Count pictures of one size together; ``check`` is called before each window, and may raise to give up.

        ``size`` is their own width and height, where they were decoded at a smaller size: results are in its pixels.
        """
        started = time.perf_counter()
        height, width = images[0].shape[:2] if size is None else size[::-1]
        seen = [limit_side(image, self.max_side, self.test_scale) for image in images]
        full_size = seen[0].shape[:2] == (height, width)
        # What was resized has no finer detail to keep.
        stride = 1 if height * width <= (_FINE_PIXELS if full_size else _FINE_PIXELS // 4) else _COARSE_STRIDE
        if full_size:
            cells = tiling.count_cells(self.engine, seen, stride=stride, tile=self.tile, check=check)
        else:
            densities = tiling.count_cells(self.engine, seen, tile=self.tile, check=check)
            cells = np.stack([tiling.regrid(density, height, width, stride) for density in densities])
        verdicts = self._judge(seen)
        milliseconds = 1000 * (time.perf_counter() - started) / len(images)
        shape = {"width": width, "height": height, "stride": stride}
        kept = images if images[0].shape[:2] == (height, width) else [None] * len(images)
        results = [
            Result(own, **shape, image=image, milliseconds=milliseconds, **verdict)
            for own, image, verdict in zip(cells, kept, verdicts, strict=True)
        ]
        if self.conformal is None:
            return results
        seen_as = (width, height, self.max_side)
        features = [features_of(each.count, each.novelty, *seen_as, each.domain) for each in results]
        spreads = map(self.conformal.spread, features)
        return [replace(result, spread=spread) for result, spread in zip(results, spreads, strict=True)]

    @property
    def far(self) -> float:
        """The novelty above which results carry a warning: where errors double, if that was measured."""
        return FAR if self.conformal is None else float(self.conformal.far[0])

    def __repr__(self) -> str:
        trained = self.info.get("source")
        parts = [f"on {self.engine.name}", f"windows of {self.tile}"]
        parts += [f"pictures {self.test_scale:g} times their size"] if self.test_scale != 1 else []
        parts += [f"longer side at most {self.max_side}"] if self.max_side is not None else []
        parts += [f"trained on {', '.join(map(str, trained))}"] if isinstance(trained, list | tuple) else []
        return f"<Counter {self.info.get('name', 'unnamed')}: {', '.join(parts)}>"

    def _judge(self, images: Sequence[RGB]) -> list[dict[str, Any]]:
        """Return for each picture its nearest latent domain and how far it lies outside the training cloud."""
        if self.trust is None:
            return [{} for _ in images]
        size = self.descriptor_size
        rows = self.engine.describe(tiling.stack([resized(image, size, size) for image in images]))
        verdicts = []
        for domain, novelty in map(self.trust.judge, rows):
            unlike = f"unlike the pictures the model was trained on (novelty {novelty:.2f}): the count may be far off"
            warnings = (unlike,) if novelty > self.far else ()
            verdicts.append({"domain": domain, "novelty": novelty, "warnings": warnings})
        return verdicts


def _results(counter: Counter, sources: Iterable[Source | Picture], **options: Any) -> Iterator[Result]:
    """Count sources, and raise the error of the first that cannot be counted."""
    from gbdgc.counting.pipeline import Failure, count_sources

    for outcome in count_sources(counter, sources, **options):
        if isinstance(outcome, Failure):
            raise outcome.error
        if isinstance(outcome, Result):
            yield outcome
