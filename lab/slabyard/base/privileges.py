"""What this process may do: the capabilities(7) that it has, and giving up those that it no longer needs.

Recording takes root, or capabilities; what follows reads files and writes one. So the others are given up when a recording is there,
in this process and for all that it starts: root's other rights are gone then, as uid 0 alone only owns its own files.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from .errors import MISSING, UserError

TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SETPCAP, CAP_SYS_ADMIN, CAP_SYSLOG, CAP_PERFMON = 1, 2, 8, 21, 34, 38
FILES_AND_SYMBOLS = (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYSLOG)  # the last: addresses of the kernel's functions
_VERSION = 0x20080522  # of capset; two words of 32 capabilities
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Words(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


_OF_THIS_PROCESS = _Header(_VERSION, 0)
_libc = ctypes.CDLL(None, use_errno=True)


def has(capability: int) -> bool:
    """Whether the process has it now. UserError if the kernel does not say."""
    words = _read()
    return bool(words[capability // 32].effective >> capability % 32 & 1)


def keep_only(kept: Collection[int]) -> None:
    """Gives up all capabilities but those of `kept` that the process has, and every way to get others. UserError if that fails."""
    if has(CAP_SETPCAP):
        number = 0
        while (bounding := _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0)) >= 0:
            if bounding and number not in kept and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
                raise _failure("give up the rights that recording took")
            number += 1
    words = _read()
    for place in range(2):
        wanted = sum(1 << number % 32 for number in kept if number // 32 == place)
        words[place].effective = words[place].permitted = words[place].permitted & wanted
        words[place].inheritable = 0
    if _libc.capset(ctypes.byref(_OF_THIS_PROCESS), words) or _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise _failure("give up the rights that recording took")


def tracefs(name: str, mounts: Sequence[Path] = TRACEFS) -> Path:
    """The folder of this name in the mounted tracefs. UserError where that is not mounted, or this user may not read it."""
    for folder in (mount / name for mount in mounts):
        try:
            os.scandir(folder).close()
        except PermissionError:
            raise UserError(f"{folder.parent} may be read by root only; run it with sudo", MISSING) from None
        except OSError:
            continue
        return folder
    raise UserError(f"tracefs is not mounted; mount it with: mount -t tracefs tracefs {mounts[0]}", MISSING)


def _read() -> ctypes.Array[_Words]:
    words = (_Words * 2)()
    if _libc.capget(ctypes.byref(_OF_THIS_PROCESS), words):
        raise _failure("read this process's capabilities")
    return words


def _failure(what: str) -> UserError:
    return UserError(f"cannot {what}: {os.strerror(ctypes.get_errno())}")
