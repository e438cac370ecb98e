"""Modules of others that are kept out of this process, though they may be installed."""

from __future__ import annotations

import sys

_kept_out: set[str] = set()


class _Finder:
    """First among the finders of modules, once a module is kept out."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name in _kept_out:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def keep_out(name: str) -> None:
    """From now on it is not found. None in its place in sys.modules would not do: code of Cython takes that for the module."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    _kept_out.add(name)


def let_in(name: str) -> None:
    """It is found again, if it was kept out."""
    _kept_out.discard(name)
