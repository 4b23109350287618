"""How the C library keeps memory that the process has given back."""

import ctypes
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # <malloc.h>
_NEVER = -1


def give_back_freed_memory() -> None:
    """Return to the system what the process has freed, where the C library is glibc; elsewhere do nothing.

    After a large picture glibc keeps most of what it took, in case of another.
    """
    if trim := _glibc("malloc_trim"):
        trim(0)


def keep_freed_memory() -> None:
    """Keep freed blocks in the process for the next ones, where the C library is glibc; elsewhere do nothing.

    By default glibc takes every block of more than 32 MB fresh from the system and gives it back at once. A step of
    training makes and drops many such feature maps, each zeroed anew page by page, which takes a good part of it.
    For processes that train or evaluate: it spends memory, which counting one large picture would rather save.
    """
    if mallopt := _glibc("mallopt"):
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)


def _glibc(function: str) -> Callable[..., int] | None:
    """Return a function of glibc's own; musl has none of them."""
    return getattr(ctypes.CDLL(None), function, None) if sys.platform.startswith("linux") else None
