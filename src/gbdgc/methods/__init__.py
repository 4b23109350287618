"""The training objectives: one small class per method, named in `build.METHODS`; the losses are pure functions."""

from gbdgc.methods.options import MethodOptions

__all__ = ["MethodOptions"]
