"""`gbdgc data`: convert, check, show and draw data sets."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from gbdgc.cli.options import Flag
from gbdgc.files import MAX_PIXELS, write_json
from gbdgc.progress import stderr, stdout, track
from gbdgc.runs import new_run_folder, write_environment

if TYPE_CHECKING:
    from gbdgc.data import Dataset
    from gbdgc.data.checking import Finding
    from gbdgc.data.contact_sheet import Section
    from gbdgc.evaluation import LabelFit

app = App(name="data", help="Convert, check and look at labelled crowds, or draw some.")

_SHOWN_OF_A_KIND = 24
_SHOWN_MISFITS = 12

# What several commands take.
Data = Annotated[Path, Parameter(help="A data set: a folder or a label file.")]
Format = Annotated[str, Parameter(help="The format of the labels; auto recognises it.")]
Point = Annotated[
    Literal["head", "centre"], Parameter(help="Where labels are boxes: the point of a box that stands for its person.")
]
Json = Annotated[bool, Parameter(name="--json", negative="", show_default=False)]
SkipBad = Annotated[
    bool, Parameter(negative="", show_default=False, help="Leave out what cannot be read, and list it.")
]
MaxPixels = Annotated[int, Parameter(help="Refuse larger pictures.", validator=Number(gt=0))]


@app.command
def convert(
    src: Path,
    dest: Path,
    /,
    *,
    format: Format = "auto",
    point: Point = "head",
    max_side: int = 1920,
    min_side: int | None = None,
    quality: int = 95,
    skip_bad: SkipBad = False,
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Write DEST/images and DEST/manifest.jsonl: pictures of a bounded size, their points with them.

    Finished pictures are not converted again, so an interrupted run continues when it is started again.

    Parameters
    ----------
    src
        A data set: a folder or a label file. Nothing is written there.
    dest
        The folder for the converted data set.
    max_side
        Shrink pictures whose longer side exceeds this many pixels.
    min_side
        Enlarge pictures whose shorter side is below this many pixels.
    quality
        JPEG quality, from 1 to 100. Pictures that keep their size are copied unchanged.
    """
    from gbdgc.data.converting import ConversionSettings
    from gbdgc.data.converting import convert as run_conversion
    from gbdgc.data.images import raise_pillow_limit

    raise_pillow_limit(max_pixels)
    settings = ConversionSettings(max_side, min_side, quality, max_pixels)
    result = run_conversion(src, dest, format, settings=settings, skip_bad=skip_bad, point=point)
    _report_left_out(result.dataset.problems)
    stderr.print(
        f"{len(result.dataset)} pictures read as {result.format}: {result.redrawn} resized or turned, "
        f"{result.copied} copied, {result.kept} there already"
    )
    stdout.print(str(result.manifest), markup=False, soft_wrap=True)
    sys.exit(1 if result.dataset.problems else 0)


@app.command
def check(
    data: Data,
    /,
    *,
    format: Format = "auto",
    point: Point = "head",
    model: str | None = None,
    as_json: Json = False,
    out: Path | None = None,
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Find problems: bad files and points, missing labels, duplicate pictures. The exit code is 1 if there are any.

    Parameters
    ----------
    model
        Also look for labels that do not fit what a model sees in their picture: "default", a run's folder or a model
        file. The contact sheet then shows the worst of them beside their density.
    as_json
        Print every finding as JSON instead of a table.
    out
        The folder for findings.json and the contact sheet; otherwise runs/data-check/NAME-N.
    """
    from gbdgc.cli.data_tables import findings_table
    from gbdgc.data import load_dataset
    from gbdgc.data.checking import check as find_problems
    from gbdgc.data.contact_sheet import write_contact_sheet
    from gbdgc.data.images import raise_pillow_limit

    raise_pillow_limit(max_pixels)
    dataset = load_dataset(data, format, skip_bad=True, max_pixels=max_pixels, point=point)
    folder = _run_folder("data-check", data, out)
    fits, misfits, worst = _check_labels(model, dataset, folder, max_pixels) if model else ([], [], [])
    findings = find_problems(dataset, max_pixels=max_pixels, also=misfits)
    wrong = sum(finding.wrong for finding in findings)
    report = {
        "data": str(data),
        "format": dataset.format,
        "images": len(dataset),
        "wrong": wrong,
        "findings": [{**asdict(finding), "wrong": finding.wrong} for finding in findings],
        **({"label_scores": {fit.sample.id: round(fit.score, 3) for fit in fits}} if model else {}),
        "contact_sheet": str(folder / "contact_sheet.html"),
    }
    write_json(folder / "findings.json", report)
    facts = {"format": dataset.format, "pictures": f"{len(dataset):,}", "things wrong": f"{wrong:,}"}
    write_contact_sheet(
        folder / "contact_sheet.html",
        f"Check of {data.resolve().name}",
        facts,
        [*worst, *_finding_sections(findings, dataset)],
        max_pixels=max_pixels,
    )
    if as_json:
        print(json.dumps(report))
    else:
        if findings:
            stdout.print(findings_table(findings))
        verdict = f"{wrong} thing{'s' * (wrong > 1)} wrong" if wrong else "nothing wrong"
        stdout.print(f"{len(dataset)} pictures read as {dataset.format}, {verdict}", markup=False)
    _say_where(folder / "contact_sheet.html", as_json)
    sys.exit(1 if wrong else 0)


@app.command
def show(
    data: Data,
    /,
    *,
    format: Format = "auto",
    point: Point = "head",
    images: Annotated[int, Parameter(validator=Number(gte=0))] = 48,
    as_json: Json = False,
    out: Path | None = None,
    skip_bad: SkipBad = False,
    max_pixels: MaxPixels = MAX_PIXELS,
) -> None:
    """Print the statistics of a data set, and make a contact sheet from its emptiest picture to its fullest.

    Parameters
    ----------
    images
        Number of pictures on the contact sheet.
    as_json
        Print the statistics as JSON instead of tables.
    out
        The folder for the contact sheet; otherwise runs/data-show/NAME-N.
    """
    from gbdgc.cli.data_tables import histogram_table, summary_table
    from gbdgc.data import load_dataset
    from gbdgc.data.contact_sheet import Group, Section, write_contact_sheet
    from gbdgc.data.images import raise_pillow_limit
    from gbdgc.data.statistics import across_counts, histogram, summarise_splits, tag_counts

    raise_pillow_limit(max_pixels)
    dataset = load_dataset(data, format, skip_bad=skip_bad, max_pixels=max_pixels, point=point)
    summaries, bins, tags = summarise_splits(dataset), histogram(dataset), tag_counts(dataset)
    folder = _run_folder("data-show", data, out)
    chosen = across_counts(dataset, images)
    part = "all of them," if len(chosen) == len(dataset) else f"{len(chosen)} of {len(dataset):,}, at equal steps"
    total = list(summaries.values())[-1]
    facts = {
        "format": dataset.format,
        "pictures": f"{total.images:,}",
        "heads": f"{total.heads:,}" if total.labelled else "no labels",
        "median count": f"{total.quantiles['median']:,.0f}" if total.labelled else "–",
        "splits": ", ".join(f"{name or 'none'} {size:,}" for name, size in dataset.split_sizes().items()),
    }
    write_contact_sheet(
        folder / "contact_sheet.html",
        data.resolve().name,
        facts,
        [Section("Pictures", f"{part} from the emptiest to the fullest", [Group([each]) for each in chosen])],
        bars=bins,
        max_pixels=max_pixels,
    )
    if as_json:
        report = {
            "data": str(data),
            "format": dataset.format,
            "splits": {name: asdict(summary) for name, summary in summaries.items()},
            "histogram": [{"low": each.low, "high": each.high, "images": each.images} for each in bins],
            "tags": tags,
            "problems": dataset.problems,
            "contact_sheet": str(folder / "contact_sheet.html"),
        }
        print(json.dumps(report))
    else:
        stdout.print(summary_table(summaries, dataset.format))
        if bins:
            stdout.print(histogram_table(bins))
        for name, values in tags.items():
            stdout.print(f"{name}: {', '.join(f'{value} {number}' for value, number in values.items())}", markup=False)
    _report_left_out(dataset.problems)
    _say_where(folder / "contact_sheet.html", as_json)
    sys.exit(1 if dataset.problems else 0)


@app.command
def demo(
    dest: Path,
    /,
    *,
    images: Annotated[int, Parameter(validator=Number(gte=2))] = 60,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    empty: Flag = False,
) -> None:
    """Draw crowds: a source data set that mixes several domains, and targets of domains it does not have.

    Parameters
    ----------
    dest
        The folder; DEST/source and DEST/targets are made in it.
    images
        Number of source pictures, at least 2. A fifth of them are for testing; each target gets as many.
    seed
        Random seed; each seed draws different pictures.
    empty
        Instead draw all of these places without people, directly into DEST: empty scenes to train on.
    """
    from gbdgc.synthetic import SOURCE_DOMAINS, TARGET_DOMAINS, draw_dataset, draw_demo

    if empty:
        mixed = (*SOURCE_DOMAINS, *TARGET_DOMAINS)
        draw_dataset(dest, images={"train": images}, domains=mixed, seed=seed, size=(1024, 768), empty=True)
        stdout.print(str(dest), markup=False, soft_wrap=True)
        return
    test = max(images // 5, 1)
    draw_demo(dest, seed=seed, train=images - test, test=test)
    for folder in (dest / "source", *sorted((dest / "targets").iterdir())):
        stdout.print(str(folder), markup=False, soft_wrap=True)
    stderr.print(f"next: gbdgc data show {dest / 'source'}", markup=False, soft_wrap=True)


def _run_folder(command: str, data: Path, out: Path | None) -> Path:
    path = data.resolve()
    folder = out or new_run_folder(command, (path.name if path.is_dir() else path.stem) or "data")
    write_environment(folder)
    return folder


def _say_where(sheet: Path, as_json: bool) -> None:
    """Print the last line; where stdout is JSON, which says it too, to stderr."""
    (stderr if as_json else stdout).print(f"contact sheet: {sheet}", markup=False, soft_wrap=True)


def _report_left_out(problems: Sequence[str]) -> None:
    if problems:
        stderr.print(f"left out, {len(problems)}:", *problems, sep="\n  ", markup=False, soft_wrap=True)


def _check_labels(
    model: str, dataset: "Dataset", folder: Path, max_pixels: int
) -> tuple[list["LabelFit"], list["Finding"], list["Section"]]:
    """Score all labels by a model: return the scores, worst first, what is wrong, and what to show of the worst."""
    from PIL import Image

    from gbdgc.counting import Counter
    from gbdgc.data import Sample
    from gbdgc.data.checking import Finding
    from gbdgc.data.contact_sheet import Group, Section
    from gbdgc.evaluation import check_labels

    counter = Counter.load(model, max_pixels=max_pixels)
    labelled = sum(bool(sample.count) for sample in dataset)
    fits = sorted(track(check_labels(counter, dataset), "comparing labels", total=labelled), key=lambda fit: fit.score)
    groups = []
    for number, fit in enumerate(fits[:_SHOWN_MISFITS]):
        seen = counter(fit.sample.image)
        picture = seen.save(folder / "density" / f"{number:02d}.jpg")
        beside = Sample(f"what the model sees in {fit.sample.id}", picture, *Image.open(picture).size)
        groups.append(Group([fit.sample, beside], f"score {fit.score:.2f}"))
    wrong = []
    for fit in (fit for fit in fits if fit.score < 0):
        detail = f"score {fit.score:.2f}; {fit.sample.count} labelled, {fit.count:.0f} counted"
        wrong.append(Finding("misfit", (fit.sample.id,), detail))
    text = (
        "Score: mean log density at the labelled heads against the picture's mean; "
        "below 0 the model sees fewer people at the heads than elsewhere."
    )
    return fits, wrong, [Section("Labels that fit their picture least", text, groups)] if groups else []


def _finding_sections(findings: Sequence["Finding"], dataset: "Dataset") -> list["Section"]:
    from gbdgc.data.checking import KINDS, by_kind
    from gbdgc.data.contact_sheet import Group, Section

    sections = []
    for kind, found in by_kind(findings).items():
        groups = [
            Group([dataset.by_id(id) for id in finding.ids[:_SHOWN_OF_A_KIND]], finding.detail, finding.points)
            for finding in found[:_SHOWN_OF_A_KIND]
        ]
        title = f"{KINDS[kind].title[0].upper()}{KINDS[kind].title[1:]}: {len(found)}"
        left = len(found) - len(groups)
        more = f"and {left} more, in findings.json" if left else ""
        sections.append(Section(title, KINDS[kind].advice, groups, more))
    return sections
