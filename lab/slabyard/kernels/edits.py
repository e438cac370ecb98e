"""The changes that are made to the private copy of a kernel's source.

Linux is under the GPL, so not a line of it lies in this repository, and no patch with its lines around ours either: a change is a
place, found by an expression that must match exactly once, and what stands there afterwards. A source in which it doesn't
match once is another Linux than the one that the change was made for, and is refused.

FLOATING_POINT. A user-mode kernel moves its programs' floating-point registers by ptrace. On processors with AVX-512 or AMX the
host insists on the full extended state, which is longer than 6.1 reserves: the first program of the guest dies with `ptrace set fp
regs failed, errno = 14`. The kernel has an older way for processors without extended state at all, and is made to always take it.
It moves the SSE registers alone, so programs of the guest must keep off AVX: machine.py tells their C library so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError


@dataclass(frozen=True)
class Edit:
    """In the file `path` (from the top of the tree), what `pattern` matches becomes `text` (\\g<1> and so on are its groups)."""

    path: str
    pattern: str
    text: str


FLOATING_POINT = Edit(
    "arch/x86/um/os-Linux/registers.c",
    r"(?m)^(\s*have_xstate_support\s*=\s*)1;",
    r"\g<1>0;",
)
ALWAYS = (FLOATING_POINT,)


def apply(tree: Path, edits: Sequence[Edit]) -> None:
    """Makes the changes. UserError where one finds no place, or several."""
    for edit in edits:
        file = tree / edit.path
        try:
            old = file.read_text()
        except OSError:
            raise UserError(f"the kernel source has no {edit.path}; the lab's kernels are Linux 6.1") from None
        new, count = re.subn(edit.pattern, edit.text, old)
        if count != 1:
            raise UserError(f"{edit.path} of the kernel source is not as in Linux 6.1: {count} places to change, not one")
        write(file, new.encode())


def write(file: Path, content: bytes) -> None:
    """Writes a file under another name and renames it, so that no other name of the old one (a hard link) changes with it."""
    if file.is_file() and file.read_bytes() == content:
        return  # its time stays, and make leaves alone what was made of it
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    part.replace(file)
