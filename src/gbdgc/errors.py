"""The one error that means: what you gave is wrong, and here is what to do."""


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message names the thing, the reason and, where there is one, the next step. The command line prints it
    without a traceback; everything else that is raised is a bug.
    """


class UsageError(InputError):
    """A command was called in a way that cannot be meant."""


class GbdgcWarning(UserWarning):
    """The result is defined, but not what was asked for."""


def install_advice(extra: str) -> str:
    """Return how to get the packages of an extra; it names a clone, as the package is on no index."""
    return f'pip install ".[{extra}]" in a clone of gbdgc'
