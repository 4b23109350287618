"""`gbdgc figure`."""

from pathlib import Path
from typing import Annotated

from gbdgc.cli.options import Several
from gbdgc.errors import UsageError
from gbdgc.progress import stdout


def figure(
    *models: str,
    data: Path,
    pictures: Annotated[list[str] | None, Several] = None,
    split: str = "test",
    out: Path = Path("figure"),
) -> None:
    """Draw pictures beside their ground truth and the densities of models, on one scale, as PNG and PDF.

    Parameters
    ----------
    models
        Model files, folders of runs, or names of models that come with the package.
    data
        The labelled data set that the pictures are from.
    pictures
        Their ids, such as part_B/test/IMG_7; by default four, from the sparsest to the densest.
    split
        The part of the data set to choose from, "all" for everything.
    out
        The file to write, without its ending.
    """
    from gbdgc.counting import Counter
    from gbdgc.data import load_dataset
    from gbdgc.report.figure import choose, write_figure

    if not models:
        raise UsageError("", "no model to draw", "name at least one, such as default")
    counters = {name: Counter.load(name) for name in models}
    dataset = load_dataset(data, skip_bad=True)
    if split != "all" and split in dataset.split_sizes():
        dataset = dataset.where(split)
    shown = {counter.info.get("name", name): counter for name, counter in counters.items()}
    for path in write_figure(shown if len(shown) == len(counters) else counters, choose(dataset, pictures or ()), out):
        stdout.print(f"figure: {path}", soft_wrap=True, markup=False)
