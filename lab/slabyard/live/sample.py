"""Sampling in a running process: sets its `slabyard_sample_rate` (malloc/sample.c), which the malloc library reads now and then.

slabyard-inspect finds the variable, in the library or in a program with the archive in it. It is written by way of /proc/PID/mem, which
the kernel allows to whom it would allow to debug the process.
"""

from __future__ import annotations

import struct
from pathlib import Path

from ..base import programs
from ..base.errors import MISSING, UserError

WORD = struct.Struct("I")  # the variable, an unsigned int of the machine


def set_rate(pid: int, rate: int) -> int:
    """Has a process sample one allocation in `rate` from now on; 0: none. Returns the rate before. UserError where it can't."""
    return _exchange(pid, rate)


def is_sampled(pid: int) -> bool:
    """Whether a process samples now; not, where it has no malloc of slabyard's, or may not be asked."""
    try:
        return _exchange(pid, None) > 0
    except UserError:
        return False


def _exchange(pid: int, rate: int | None) -> int:
    address = int(programs.run_json(programs.INSPECT, "--pid", str(pid), "--sampling")["sample_rate"], 16)
    try:
        with Path(f"/proc/{pid}/mem").open("rb" if rate is None else "r+b", buffering=0) as memory:
            memory.seek(address)
            (before,) = WORD.unpack(memory.read(WORD.size))
            if rate is not None:
                memory.seek(address)
                memory.write(WORD.pack(rate))
    except PermissionError as error:
        raise UserError(
            f"process {pid} may not be written to by this user; it takes the right to trace it (root, or the process's user)", MISSING
        ) from error
    except (OSError, OverflowError, struct.error) as error:
        raise UserError(f"process {pid} has ended") from error
    return int(before)
