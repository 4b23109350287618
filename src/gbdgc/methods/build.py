"""Methods by name."""

from collections.abc import Callable

from gbdgc.errors import InputError
from gbdgc.methods.contract import Method
from gbdgc.methods.erm import PlainRegression
from gbdgc.methods.gbdgc import GranularBallGeneralisation
from gbdgc.methods.mixing import DomainMixing
from gbdgc.methods.options import MethodOptions

METHODS: dict[str, Callable[[MethodOptions], Method]] = {
    "gbdgc": GranularBallGeneralisation,
    "mixing": DomainMixing,
    "erm": PlainRegression,
}


def build_method(options: MethodOptions) -> Method:
    """Return the method of that name."""
    if options.name not in METHODS:
        raise InputError(f"method {options.name!r}", "there is no such method", f"choose one of {', '.join(METHODS)}")
    return METHODS[options.name](options)
