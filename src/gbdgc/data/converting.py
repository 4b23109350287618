"""Converting a data set: pictures of bounded size, their points scaled with them, and a manifest.

Every finished picture is recorded in ``conversion.jsonl`` with what it was made from. A second run only does what is
missing there, or was made from another file or with other settings; so an interrupted run continues when it is started
again. The manifest is written only when everything is done.
"""

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from threading import Lock

import numpy as np
from PIL import Image

from gbdgc.data.formats.entry import beneath
from gbdgc.data.images import IMAGE_SUFFIXES, MAX_PIXELS, image_orientation, read_image, scaled_size
from gbdgc.data.manifest import Dataset, Problem
from gbdgc.data.parallel import map_unordered
from gbdgc.data.reading import BoxPoint, list_problems, load_dataset
from gbdgc.data.sample import Sample
from gbdgc.data.transforms import resized
from gbdgc.errors import InputError, UsageError
from gbdgc.files import AnyPath, atomic_write, claim, make_folder, sweep_parts
from gbdgc.progress import track
from gbdgc.runs import Journal

_IMAGES = "images"
_JOURNAL = "conversion.jsonl"
_MANIFEST = "manifest.jsonl"
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f<>:"|?*]')
_LONGEST_SIDE = 65_500  # of a JPEG


@dataclass(frozen=True, slots=True)
class ConversionSettings:
    """How pictures are converted; see `convert`."""

    max_side: int = 1920
    min_side: int | None = None
    quality: int = 95
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if self.max_side < 1 or (self.min_side is not None and not 1 <= self.min_side <= self.max_side):
            given = f"min_side is {self.min_side} and max_side is {self.max_side}"
            raise UsageError("", f"the sides must be 1 <= min_side <= max_side, but {given}")
        if not 1 <= self.quality <= 100:
            raise UsageError("", f"the quality of a JPEG lies between 1 and 100, not {self.quality}")

    def size_for(self, width: int, height: int) -> tuple[int, int]:
        """Return the size that a picture gets, in its own proportions."""
        scale = min(1.0, self.max_side / max(width, height))
        if self.min_side is not None:
            scale = max(scale, self.min_side / min(width, height))
        return scaled_size(width, height, scale)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a conversion: the data set, and how many pictures were redrawn, copied, and done before."""

    dataset: Dataset
    manifest: Path
    format: str
    redrawn: int
    copied: int
    kept: int


@dataclass(frozen=True, slots=True)
class _Done:
    """One line of the journal: a picture that is there, and whole."""

    id: str
    image: str
    width: int
    height: int
    bytes: int
    copied: bool
    origin: list[int | None]


def convert(
    source: AnyPath,
    dest: AnyPath,
    format: str = "auto",
    *,
    settings: ConversionSettings | None = None,
    skip_bad: bool = False,
    point: BoxPoint = "head",
) -> Conversion:
    """Write ``dest/images`` and ``dest/manifest.jsonl`` from a data set in any format.

    A picture whose longer side is over ``settings.max_side`` is made smaller, one whose shorter side is under
    ``settings.min_side`` larger (where a picture is too long to have both, the second counts), as JPEG and its points
    with it. Any other is copied byte for byte, unless it is stored rotated: then it is written upright. ``format`` and
    ``point`` are those of `load_dataset`.

    Raises
    ------
    InputError
        When a picture is bad and ``skip_bad`` is not set: all of them are listed, what is good is done, and a second
        run with ``skip_bad`` has only the manifest to write. When the disk is full: what is done stays.
    """
    settings = settings or ConversionSettings()
    source, dest = Path(source), Path(dest)
    dataset = load_dataset(source, format, skip_bad=True, max_pixels=settings.max_pixels, point=point)
    # The source is never written to, so neither folder may lie in the other.
    folders = {sample.image.parent.resolve() for sample in dataset}
    for folder in sorted(folders | {source.resolve()} if source.is_dir() else folders):
        if dest.resolve().is_relative_to(folder) or folder.is_relative_to(dest.resolve()):
            reason = f"this would write among the source's own files in {folder}"
            raise InputError(dest, reason, "choose a folder apart")
    journal = Journal(dest / _JOURNAL)
    before = _done_before(journal)
    planned = _plan(dataset, settings)
    kept = {id: before[id] for id, plan in planned.items() if id in before and _is_done(before[id], *plan, dest)}
    missing = [sample for sample in dataset if sample.id not in kept]
    new: dict[str, _Done] = {}
    problems = list(dataset.problems)
    if missing:
        make_folder(dest)
        try:
            with claim(dest):
                (dest / _MANIFEST).unlink(missing_ok=True)
                sweep_parts(dest)
                journal.replace(map(asdict, kept.values()))
                lock = Lock()

                def convert_one(sample: Sample) -> _Done | str:
                    outcome = _convert_one(sample, *planned[sample.id], dest, settings)
                    if isinstance(outcome, _Done):
                        with lock:  # at once, so that nothing which is done is done again
                            journal.append(asdict(outcome))
                    return outcome

                for outcome in track(map_unordered(convert_one, missing), "converting", total=len(missing)):
                    if isinstance(outcome, str):
                        problems.append(outcome)
                        continue
                    new[outcome.id] = outcome
                    if (old := before.get(outcome.id)) is not None and old.image != outcome.image:
                        (dest / old.image).unlink(missing_ok=True)
        except (InputError, OSError) as error:
            reason = f"{error}\n{len(new)} of the {len(missing)} pictures to convert are done and stay"
            raise InputError("", reason, "run it again to go on from there") from error
    done = kept | new
    if problems and not skip_bad:
        count = "one picture" if len(problems) == 1 else f"{len(problems)} pictures"
        advice = f"the other {len(done)} are done; fix these, or leave them out (skip_bad), and run it again"
        raise InputError(source, f"{count} cannot be converted:{list_problems(problems)}", advice)
    samples = []
    for sample in dataset:
        if sample.id in done:
            image, width, height = dest / done[sample.id].image, done[sample.id].width, done[sample.id].height
            factors = np.array([width / sample.width, height / sample.height], dtype=np.float32)
            points = None if sample.points is None else sample.points * factors
            samples.append(replace(sample, image=image, width=width, height=height, points=points))
    converted = Dataset(samples, problems=map(Problem, problems))
    manifest = converted.save(dest / _MANIFEST)
    copied = sum(each.copied for each in new.values())
    return Conversion(converted, manifest, dataset.format, len(new) - copied, copied, len(kept))


def _plan(dataset: Dataset, settings: ConversionSettings) -> dict[str, tuple[str, list[int | None]]]:
    """Return where each picture goes, but for the suffix, and what its file and the settings are, by id."""
    plans: dict[str, tuple[str, list[int | None]]] = {}
    taken: set[str] = set()
    for sample in dataset:
        # An id may hold anything; as a path it must not lead out of the folder.
        path = PurePosixPath(sample.id.replace("\\", "/"))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            path = path.with_suffix("")
        stem = "/".join([_IMAGES, *(_NOT_IN_NAMES.sub("_", part).strip(" ./") or "_" for part in path.parts)])
        if stem.casefold() in taken:
            stem = f"{stem}-{sha256(sample.id.encode(errors='surrogateescape')).hexdigest()[:12]}"
        taken.add(stem.casefold())
        file = sample.image.stat()
        wanted = (settings.max_side, settings.min_side, settings.quality)
        plans[sample.id] = stem, [file.st_size, file.st_mtime_ns, *wanted]
    return plans


def _is_done(done: _Done, stem: str, origin: list[int | None], dest: Path) -> bool:
    file = dest / done.image
    as_planned = done.origin == origin and PurePosixPath(done.image).with_suffix("").as_posix() == stem
    return as_planned and file.is_file() and file.stat().st_size == done.bytes


def _convert_one(
    sample: Sample, stem: str, origin: list[int | None], dest: Path, settings: ConversionSettings
) -> _Done | str:
    """Convert one picture; return what was done, or what is wrong with the picture."""
    width, height = size = settings.size_for(sample.width, sample.height)
    try:
        # Also what is only copied is decoded, as otherwise a truncated picture would pass for a good one.
        image = read_image(sample.image, max_pixels=settings.max_pixels)
        upright = image_orientation(sample.image, max_pixels=settings.max_pixels) == 1
    except InputError as error:
        return str(error)
    copied = upright and size == (sample.width, sample.height)
    if not copied and max(size) > _LONGEST_SIDE:
        return (
            f"{sample.image}: would be {width} x {height} pixels, and a JPEG has at most {_LONGEST_SIDE} a side; "
            "choose a smaller min_side or max_side, or cut the picture"
        )
    # Into memory first: Pillow, writing to a full disk, does not say that it is full.
    buffer = BytesIO(sample.image.read_bytes() if copied else b"")
    if not copied:
        # Colour at full resolution, as a head may be a few pixels wide.
        drawn = Image.fromarray(resized(image, width, height))
        drawn.save(buffer, "JPEG", quality=settings.quality, subsampling=0, optimize=True)
    name = stem + (sample.image.suffix.lower() if copied else ".jpg")
    with atomic_write(dest / name) as file:
        file.write(buffer.getvalue())
    return _Done(sample.id, name, width, height, len(buffer.getvalue()), copied, origin)


def _done_before(journal: Journal) -> dict[str, _Done]:
    """Return what earlier runs did, by id."""
    done = {}
    for row in journal.rows():
        with suppress(ValueError, TypeError):
            entry = _Done(**row)
            beneath(journal.path.parent, entry.image, journal.path)  # what it names may be deleted
            done[entry.id] = entry
    return done
