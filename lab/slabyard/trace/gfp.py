"""GFP flag names and migrate type numbers, as Linux prints them, in the core's terms.

The kernel prints an allocation's flags with composite names first (`GFP_KERNEL|__GFP_ZERO`; linux/gfp_types.h and
include/trace/events/mmflags.h say what each is made of). Before Linux 4.7 the underscores of `__GFP_ZERO` are not printed,
which makes names mean two things only where it makes no difference here (`GFP_DMA`, `GFP_THISNODE`). What the kernel has no
name for is a number at the end, and some tools print all flags as one. Most bits moved in Linux 5.0; a number with one of the two
bits of reclaim that it brought is read by today's table. Only what changes the behaviour of an allocator matters here:

    __GFP_ZERO                                SY_ZERO
    __GFP_RECLAIMABLE, in GFP_TEMPORARY       SY_RECLAIMABLE (Linux before 4.14 has the latter)
    __GFP_MOVABLE, in GFP_HIGHUSER_MOVABLE    SY_MOVABLE
    __GFP_HIGH without __GFP_DIRECT_RECLAIM   SY_HIGHATOMIC: what Linux lets into the HighAtomic reserve; GFP_ATOMIC is it
    __GFP_ACCOUNT, in GFP_KERNEL_ACCOUNT      SY_ACCOUNT, as does the `accounted` of the event
    GFP_DMA, __GFP_DMA                        SY_DMA
    GFP_DMA32, __GFP_DMA32                    SY_DMA32
    __GFP_THISNODE                            SY_THISNODE
"""

from __future__ import annotations

import re

ZERO, RECLAIMABLE, MOVABLE, HIGHATOMIC, ACCOUNT, DMA, DMA32, THISNODE = (1 << bit for bit in range(8))
IMPLIED = 1 << 31

# Without the underscores.
_DIRECT = {
    "GFP_ZERO": ZERO,
    "GFP_RECLAIMABLE": RECLAIMABLE,
    "GFP_TEMPORARY": RECLAIMABLE,
    "GFP_MOVABLE": MOVABLE,
    "GFP_HIGHUSER_MOVABLE": MOVABLE,
    "GFP_TRANSHUGE": MOVABLE,
    "GFP_TRANSHUGE_LIGHT": MOVABLE,
    "GFP_ACCOUNT": ACCOUNT,
    "GFP_KERNEL_ACCOUNT": ACCOUNT,
    "GFP_DMA": DMA,
    "GFP_DMA32": DMA32,
    "GFP_THISNODE": THISNODE,
}
_HIGH = {"GFP_HIGH", "GFP_ATOMIC"}
_SLEEPS = {
    "GFP_KERNEL", "GFP_KERNEL_ACCOUNT", "GFP_NOFS", "GFP_NOIO", "GFP_USER", "GFP_HIGHUSER", "GFP_HIGHUSER_MOVABLE",
    "GFP_TEMPORARY", "GFP_TRANSHUGE", "GFP_DIRECT_RECLAIM", "GFP_RECLAIM", "GFP_WAIT",
}  # fmt: skip
_NUMBERED = {0x1: DMA, 0x4: DMA32, 0x8: MOVABLE}
_SINCE_5_0 = {**_NUMBERED, 0x10: RECLAIMABLE, 0x100: ZERO, 0x200000: THISNODE, 0x400000: ACCOUNT}
_SINCE_4_4 = {**_NUMBERED, 0x10: RECLAIMABLE, 0x8000: ZERO, 0x40000: THISNODE, 0x100000: ACCOUNT}
_BEFORE_4_4 = {**_NUMBERED, 0x8000: ZERO, 0x40000: THISNODE, 0x80000: RECLAIMABLE}
_RECLAIM = 0xC00  # direct, by kswapd; before 5.0 these bits said to retry, or never to fail
_DIRECT_RECLAIM, _HIGH_BIT, _IO_AND_FS = 0x400, 0x20, 0xC0
_RECLAIM_4_4 = 0x200000  # from here on are the bits of reclaim of Linux 4.4 to 4.20
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}")

UNMOVABLE, MOVABLE_TYPE, RECLAIMABLE_TYPE, HIGHATOMIC_TYPE = range(4)  # as Linux numbers them
MIGRATE_NAMES = {"Unmovable": UNMOVABLE, "Movable": MOVABLE_TYPE, "Reclaimable": RECLAIMABLE_TYPE, "HighAtomic": HIGHATOMIC_TYPE}


def flags_of(text: str) -> int:
    """The `enum sy_flags` of a flag text such as `GFP_ATOMIC|__GFP_ZERO`, `GFP_KERNEL|GFP_ZERO` or `0x8`."""
    names = {name.removeprefix("__") for name in text.split("|")}
    flags = 0
    for name in names:
        flags |= _DIRECT.get(name, 0)
        if _NUMBER.fullmatch(name):
            flags |= _of_number(int(name, 16 if name[1:2] in ("x", "X") else 10), len(names) == 1)
    if names & _HIGH and not names & _SLEEPS:
        flags |= HIGHATOMIC
    return flags


def _of_number(number: int, whole: bool) -> int:
    """Of all flags as a number (`whole`), or of what is left where the others have names."""
    if not whole:
        return sum(flag for bit, flag in _NUMBERED.items() if number & bit)
    new = bool(number & _RECLAIM) or not (number >= 0x10000 or number & 0xD0)
    table = _SINCE_5_0 if new else _SINCE_4_4 if number >= _RECLAIM_4_4 else _BEFORE_4_4
    flags = sum(flag for bit, flag in table.items() if number & bit)
    sleeps = number & (_DIRECT_RECLAIM if new else _IO_AND_FS)
    return flags | (HIGHATOMIC if number & _HIGH_BIT and not sleeps else 0)


def migrate_of(number: int) -> int:
    """The `enum sy_migrate` of a migrate type as Linux numbers it.

    -1 (not said) is unmovable, as a request without flags is. Higher numbers are CMA and isolated blocks, which hold movable pages only.
    """
    return UNMOVABLE if number < 0 else number if number <= HIGHATOMIC_TYPE else MOVABLE_TYPE
