"""Finding what is wrong with a data set: every picture is decoded, checked and compared with all others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gbdgc.data.duplicates import Portrait, portrait, same_pictures
from gbdgc.data.images import MAX_PIXELS, SIDEWAYS, image_orientation, read_image
from gbdgc.data.manifest import Dataset
from gbdgc.data.parallel import map_unordered
from gbdgc.data.sample import Points, Sample
from gbdgc.errors import InputError
from gbdgc.progress import track


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding: its name for people, what to do about it, and whether it means that something is wrong."""

    title: str
    advice: str
    wrong: bool = True


KINDS = {
    "unread": Kind("labels or picture that cannot be read", "fix or remove these files; a reader leaves them out"),
    "undecodable": Kind("picture that does not decode", "copy it again from where it came"),
    "not_finite": Kind("point that is NaN or infinite", "label the picture again"),
    "rotation": Kind("labels made before the EXIF rotation", "turn the points as the EXIF data turn the picture"),
    "misfit": Kind(
        "labels that do not fit their picture", "see whether they belong to it, and are not shifted or turned"
    ),
    "shared": Kind("same picture in two splits", "the test then contains training pictures; keep it in one split"),
    "outside": Kind("point outside the picture", "training would move it to the border; correct or delete it"),
    "unlabelled": Kind("no labels, though others of its split have some", "label it, or remove it from the split"),
    "repeated": Kind("same picture twice in a split", "it weighs double; keep one, with the better labels"),
    "doubled": Kind("duplicate point", "one head is counted twice; delete one of them"),
    "empty": Kind("empty scene", "nobody is in it: useful, if that is true", wrong=False),
    "unlabelled_split": Kind("split without labels", "it can be counted, not trained or evaluated on", wrong=False),
}
"""Every kind of finding, the most serious first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, the samples it is about, the particulars, and which points are bad."""

    kind: str
    ids: tuple[str, ...]
    detail: str
    points: tuple[tuple[float, float], ...] = ()

    @property
    def wrong(self) -> bool:
        """True if it is something to fix."""
        return KINDS[self.kind].wrong


def check(dataset: Dataset, *, max_pixels: int = MAX_PIXELS, also: Sequence[Finding] = ()) -> list[Finding]:
    """Return the findings about a data set, the most serious first; see `KINDS`.

    Read the data set with ``skip_bad=True``: what the reader left out is then among the findings. ``also`` is what
    was found by other means, such as `gbdgc.evaluation.check_labels`.
    """
    found = [Finding("unread", (), problem) for problem in dataset.problems] + list(also)
    portraits: dict[str, Portrait] = {}

    def examine(sample: Sample) -> list[Finding]:
        try:
            portraits[sample.id] = portrait(read_image(sample.image, max_pixels=max_pixels))
            sideways = image_orientation(sample.image, max_pixels=max_pixels) in SIDEWAYS
        except InputError as error:
            return [Finding("undecodable", (sample.id,), str(error)), *_point_findings(sample, False)]
        return list(_point_findings(sample, sideways))

    for findings in track(map_unordered(examine, dataset), "checking", total=len(dataset)):
        found += findings
    # A whole split without labels is meant so, as in NWPU-Crowd's test part; a few pictures of one are forgotten.
    for split in dataset.split_sizes():
        samples = [sample for sample in dataset if sample.split == split]
        missing = [sample.id for sample in samples if sample.points is None]
        if len(missing) == len(samples):
            found.append(Finding("unlabelled_split", (), f"{split or 'the whole data set'}: {len(missing)} pictures"))
        else:
            others = f"{len(samples) - len(missing)} others have labels"
            found += [Finding("unlabelled", (id,), others) for id in missing]
    decoded = [sample for sample in dataset if sample.id in portraits]
    for group in same_pictures([portraits[sample.id] for sample in decoded]):
        copies = [decoded[index] for index in group]
        kind = "shared" if len({sample.split for sample in copies}) > 1 else "repeated"
        exact = len({portraits[sample.id].digest for sample in copies}) == 1
        heads = [str(sample.count) for sample in copies if sample.count is not None]
        detail = "equal in every pixel" if exact else "resized, recompressed or retouched"
        if len(set(heads)) > 1:
            detail += f"; {' or '.join(heads)} heads"
        found.append(Finding(kind, tuple(sample.id for sample in copies), detail))
    gravity, position = list(KINDS), {id: index for index, id in enumerate(dataset.ids)}
    return sorted(found, key=lambda finding: (gravity.index(finding.kind), [position[id] for id in finding.ids]))


def by_kind(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return the findings of each kind that there is, in their order."""
    kinds = dict.fromkeys(finding.kind for finding in findings)
    return {kind: [finding for finding in findings if finding.kind == kind] for kind in kinds}


def _point_findings(sample: Sample, sideways: bool) -> Iterator[Finding]:
    if sample.points is None:
        return
    total = len(sample.points)
    if total == 0:
        yield Finding("empty", (sample.id,), "no heads")
    points: Points = sample.points[np.isfinite(sample.points).all(axis=1)]
    if len(points) < total:
        yield Finding("not_finite", (sample.id,), f"{total - len(points)} of {total} points")
    width, height = sample.width, sample.height
    outside = _outside(points, width, height)
    if len(outside) and sideways and not len(_outside(points, height, width)):
        detail = f"all points fit into {height} x {width}, but not into {width} x {height}"
        yield Finding("rotation", (sample.id,), detail)
    elif len(outside):
        detail = f"{len(outside)} of {total} points are not within {width} x {height}"
        yield Finding("outside", (sample.id,), detail, _to_tuples(outside))
    places, times = np.unique(points, axis=0, return_counts=True)
    if len(points) > len(places):
        detail = f"{len(points) - len(places)} of {total} points stand where another is"
        yield Finding("doubled", (sample.id,), detail, _to_tuples(places[times > 1]))


def _outside(points: Points, width: int, height: int) -> Points:
    """Return the points beyond the edges; on an edge is still inside."""
    return points[((points < 0) | (points > (width, height))).any(axis=1)]


def _to_tuples(points: Points) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in points)
