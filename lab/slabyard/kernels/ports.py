"""Sources of ours that go into kernels: where they lie here, and where in a kernel's tree.

`ports/linux` has what is written for kernels alone, `core` and `include` the library. An installed package brings them along in its
folder `sources`; where the package is used as it lies in the repository, they are the repository's own.

    ports/linux/bench.c   what an allocator costs inside a kernel; in every kernel, Linux's own allocators included
    ports/linux/fill.c    what SLOB's pages have unused while objects come and go; likewise
    the rest of it        the port, which goes to mm/slabyard with the core, and takes the place of the kernel's own allocator

What a kernel brings is part of its key (build.py): when one of these files changes, the next build is another kernel.
"""

from __future__ import annotations

from pathlib import Path

from ..base.errors import MISSING, UserError

PACKAGE = Path(__file__).parent.parent
MEASURING = {"bench": "mm/slabyard_bench.c", "fill": "mm/slabyard_fill.c"}  # by their names in ports/linux
OURS = "mm/slabyard"
_SOURCES = (".c", ".h", ".mk")
# Flame graphs ask for flags (build.py), for all of ours at once.
_OUTLINED = b"\nccflags-y += $(SLABYARD_OUTLINED)\n"


def root() -> Path:
    """The folder that has `core`, `include` and `ports`. UserError where there is none."""
    for place in (PACKAGE / "sources", PACKAGE.parent.parent):
        if (place / "ports" / "linux").is_dir():
            return place
    raise UserError("slabyard's own sources for kernels are missing; install slabyard again (pip install .), which brings them", MISSING)


def common() -> dict[str, bytes]:
    """The files that every kernel gets, by their paths in its tree."""
    return {place: (root() / "ports" / "linux" / f"{name}.c").read_bytes() for name, place in MEASURING.items()}


def slabyard() -> dict[str, bytes]:
    """The files of a kernel on slabyard, by their paths in its tree (ports/linux/README.md)."""
    top = root()
    found: dict[str, bytes] = {}
    for folder, place in (("ports/linux", "linux"), ("core", "core"), ("include", "include"), ("library/debug", "library/debug")):
        for path in sorted((top / folder).rglob("*")):
            if path.suffix in _SOURCES or path.name == "Makefile":
                found[f"{OURS}/{place}/{path.relative_to(top / folder)}"] = path.read_bytes()
    found[f"{OURS}/library/amount.h"] = (top / "library" / "amount.h").read_bytes()
    for name in MEASURING:
        del found[f"{OURS}/linux/{name}.c"]
    found[f"{OURS}/linux/Makefile"] += _OUTLINED
    return found
