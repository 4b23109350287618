"""What is minimised: one small class per method, named in METHODS; the losses themselves are pure functions."""

import inspect
from collections.abc import Callable

from gbdgc.errors import InputError
from gbdgc.methods.contract import Losses, Method, PartialLosses
from gbdgc.methods.erm import PlainRegression
from gbdgc.methods.gbdgc import GranularBallGeneralisation

__all__ = ["METHODS", "Losses", "Method", "PartialLosses", "build_method"]

METHODS: dict[str, Callable[..., Method]] = {"gbdgc": GranularBallGeneralisation, "erm": PlainRegression}


def build_method(name: str, **options: object) -> Method:
    """Return the method of that name; options it has no use for (erm takes only `density`) are left aside."""
    if name not in METHODS:
        raise InputError(f"method {name!r}", "there is no such method", f"choose one of {', '.join(METHODS)}")
    known = inspect.signature(METHODS[name]).parameters
    return METHODS[name](**{key: value for key, value in options.items() if key in known})
