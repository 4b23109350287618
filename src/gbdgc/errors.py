"""The one error that means: what you gave is wrong, and here is what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something the user gave cannot be used: the thing (empty where the reason names it), why, and what to do.

    The command line and the service render the three parts; nothing else may take the text apart again. Everything
    else that is raised is a bug.
    """

    def __init__(self, thing: object, reason: str = "", next_step: str = "") -> None:
        self.thing, self.reason, self.next_step = str(thing), reason, next_step
        super().__init__(self.thing, reason, next_step)

    def __str__(self) -> str:
        said = ": ".join(part for part in (self.thing, self.reason) if part)
        # A reason may be a list, one item per line.
        return f"{said}{chr(10) if chr(10) in said else '; '}{self.next_step}" if self.next_step else said


class UsageError(InputError):
    """A command was called in a way that cannot be meant."""


@contextmanager
def as_input_error(
    errors: type[Exception] | tuple[type[Exception], ...], thing: object, reason: str, next_step: str = ""
) -> Iterator[None]:
    """Raise what a library or the system raises as an `InputError`; "{error}" in the reason stands for its words."""
    try:
        yield
    except InputError:
        raise
    except errors as error:
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(thing, reason.replace("{error}", words), next_step) from error


@contextmanager
def about(thing: object, part: str = "") -> Iterator[None]:
    """Name the thing that an `InputError` is about, where only the caller knows it, and which part of it."""
    try:
        yield
    except InputError as error:
        reason = f"{part}: {error.reason}" if part else error.reason
        raise InputError(thing, reason, error.next_step) from error


@contextmanager
def noted_in(problems: list[str]) -> Iterator[None]:
    """Add an `InputError` to the problems and continue after the block, so that one does not hide the next."""
    try:
        yield
    except InputError as error:
        problems.append(str(error))


class GbdgcWarning(UserWarning):
    """The result is defined, but not what was asked for."""


def install_advice(extra: str) -> str:
    """Return how to get the packages of an extra. pip adds them to the gbdgc that is there, from a wheel or a clone."""
    return f'pip install "gbdgc[{extra}]"'


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """Return what to tell a user where a package of the extra `torch` is missing; None where anything else is."""
    package = (error.name or "").partition(".")[0]
    if package not in {"torch", "lightning_fabric"}:
        return None
    return InputError("", f"{package} is not installed", install_advice("torch"))
