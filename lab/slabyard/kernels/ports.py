"""Sources of ours that go into kernels: where they lie here, and where in a kernel's tree.

`ports/linux` has what is written for kernels alone, `core` and `include` the library. An installed package brings them along in its
folder `sources`; where the package is used as it lies in the repository, they are the repository's own.

    bench.c   what an allocator costs inside a kernel; in every kernel, Linux's own allocators included

What a kernel brings is part of its key (build.py): when one of these files changes, the next build is another kernel.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import MISSING, UserError

PACKAGE = Path(__file__).parent.parent
BENCH = "mm/slabyard_bench.c"


def root() -> Path:
    """The folder that has `core`, `include` and `ports`. UserError where there is none."""
    for place in (PACKAGE / "sources", PACKAGE.parent.parent):
        if (place / "ports" / "linux").is_dir():
            return place
    raise UserError("slabyard's own sources for kernels are missing; install slabyard again (pip install .), which brings them", MISSING)


def common() -> dict[str, bytes]:
    """The files that every kernel gets, by their paths in its tree."""
    return {BENCH: (root() / "ports" / "linux" / "bench.c").read_bytes()}
