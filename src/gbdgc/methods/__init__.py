"""What is minimised: one small class per method, named in METHODS; the losses themselves are pure functions."""

from collections.abc import Callable

from gbdgc.errors import InputError
from gbdgc.methods.contract import Losses, Method, MethodOptions, PartialLosses
from gbdgc.methods.erm import PlainRegression
from gbdgc.methods.gbdgc import GranularBallGeneralisation

__all__ = ["METHODS", "Losses", "Method", "MethodOptions", "PartialLosses", "build_method"]

METHODS: dict[str, Callable[[MethodOptions], Method]] = {"gbdgc": GranularBallGeneralisation, "erm": PlainRegression}


def build_method(options: MethodOptions) -> Method:
    """Return the method of that name."""
    if options.name not in METHODS:
        raise InputError(f"method {options.name!r}", "there is no such method", f"choose one of {', '.join(METHODS)}")
    return METHODS[options.name](options)
