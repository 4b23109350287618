"""`gbdgc models`."""

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from gbdgc.progress import stdout
from gbdgc.shipped import shipped_models


def models() -> None:
    """List the models that come with the package: the network, the training data and the errors of each."""
    from gbdgc.checkpoint import read

    table = Table("name", box=SIMPLE)
    for heading in ("network", "trained on", "MAE", "intervals"):
        table.add_column(heading, overflow="fold")
    for name, path in shipped_models().items():
        _, info = read(path)
        kind = ", ".join(filter(None, (info["build"]["backbone"], info.get("method"))))
        network = f"{kind}\n{path.stat().st_size / 1e6:.1f} MB"
        # `gbdgc data demo crowds` makes crowds/source, whose last part says nothing
        names = (each.removesuffix("/source").rsplit("/", 1)[-1] for each in info.get("source", ["not recorded"]))
        source = "\n".join(names)
        errors = [f"{data} {errors['mae']:.1f}" for data, errors in info.get("errors", {}).items()]
        known = info.get("calibration")
        calibration = f"{known['coverage']:.0%}\n{known['images']} pictures" if known else "none"
        cells = (name, network, source, "\n".join(errors or ["not recorded"]), calibration)
        table.add_row(*map(escape, cells))
    stdout.print(table)
    stdout.print("use one by its name: gbdgc count --model NAME, gbdgc eval NAME DATA, train.start=NAME", markup=False)
    stdout.print("how the default one was made, and all its errors: docs/model-card.md", markup=False)
