"""heaptrack's files of user programs as text of kmem events, so that any program becomes a trace.

heaptrack writes lines of a letter and hexadecimal numbers (its source, src/track and src/interpret; the file is compressed with zstd
or gzip):

    v 10400 3                  versions of heaptrack and of the file
    s 8 _dl_init               a string, by its length; strings, addresses, stacks and kinds are numbered from 1, 1, 1 and 0
    i 7fe7a3a2ab9f 8 c d 79    an address: module, then of each inlined call function, file and line
    t 2 1                      a stack: its innermost address, and the stack around it
    a 11c00 4                  a kind of allocation: bytes, stack
    + 0   - 0                  an allocation of that kind, a free of one
    + 11c00 4 55d0c0ffee0      of a raw file: bytes, stack, address; - 55d0c0ffee0
    c 4a                       milliseconds since the start

An allocation becomes a kmalloc of one CPU. heaptrack tells no thread, no address (but in raw files), and the time to a millisecond;
frees of one kind are taken to free the latest allocation of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

_BEGINNING = re.compile(rb"v [0-9a-f]{1,8} [0-9a-f]{1,4}\n")
_FIRST_ADDRESS, _ADDRESS_STEP = 1 << 32, 16
_UNKNOWN = "unknown"
LONGEST = 1 << 20  # bytes of a line: names of C++ functions have some thousands


def is_heaptrack(head: bytes) -> bool:
    """Whether a text that begins so is heaptrack's."""
    return _BEGINNING.match(head) is not None


class Text:
    """The events as a binary stream of perf script's text, for reading. `file`: heaptrack's text, decompressed. A context manager."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = _events(file)
        self._file = file

    def read(self, size: int) -> bytes:
        """At least `size` bytes if there are so many left; empty at the end."""
        taken, length = [], 0
        for line in self._lines:
            taken.append(line)
            length += len(line)
            if length >= size:
                break
        return "".join(taken).encode()

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _events(file: IO[bytes]) -> Iterator[str]:
    names = _Names()
    kinds: list[tuple[int, int]] = []  # bytes, stack
    live: dict[int, list[int]] = {}  # addresses by kind
    milliseconds, address, order = 0, _FIRST_ADDRESS, 0

    def event(name: str, fields: str) -> str:
        nonlocal order
        order += 1  # within the millisecond: all have times of their own
        nanoseconds = milliseconds * 1_000_000 + min(order, 999_999)
        return f"[000] {nanoseconds // 10**9}.{nanoseconds % 10**9:09}: kmem:{name}: {fields}\n"

    def allocation(size: int, stack: int, at: int) -> str:
        sizes = f"bytes_req={max(size, 1)} bytes_alloc={max(size, 1)}"
        return event("kmalloc", f"call_site={names.of_stack(stack)} ptr={at:#x} {sizes} gfp_flags=GFP_KERNEL node=-1 accounted=false")

    for line in _lines(file):
        letter, words = line[:1], line[2:].split(" ")
        try:
            if letter == "s":
                names.strings.append(line[2:].partition(" ")[2])
            elif letter == "i":
                names.addresses.append([int(word, 16) for word in words])
            elif letter == "t":
                names.stacks.append(int(words[0], 16))
            elif letter == "a":
                kinds.append((int(words[0], 16), int(words[1], 16)))
            elif letter == "c":
                milliseconds, order = max(milliseconds, int(words[0], 16)), 0
            elif letter == "+" and len(words) == 3:
                yield allocation(*(int(word, 16) for word in words))
            elif letter == "+":
                size, stack = kinds[int(words[0], 16)]
                yield allocation(size, stack, address)
                live.setdefault(int(words[0], 16), []).append(address)
                address += _ADDRESS_STEP
            elif letter == "-":
                number = int(words[0], 16)
                stack_of = kinds[number][1] if number < len(kinds) else 0
                freed = live[number].pop() if live.get(number) else number
                yield event("kfree", f"call_site={names.of_stack(stack_of)} ptr={freed:#x}")
        except (ValueError, IndexError):
            yield f"kmalloc: damaged line of heaptrack: {letter}\n"  # counts as one that could not be read


def _lines(file: IO[bytes]) -> Iterator[str]:
    """Whole lines; decompressed streams have no lines of their own. One without an end is cut off, and does not count."""
    rest = b""
    while block := file.read(1 << 16):
        if len(rest) > LONGEST:
            rest = rest[:1]  # no line of heaptrack's: what is left of it is damaged
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")


class _Names:
    """Functions by stack, as far as heaptrack knows them."""

    def __init__(self) -> None:
        self.strings, self.addresses, self.stacks = [""], [[0]], [0]

    def of_stack(self, number: int) -> str:
        """The innermost function, or its address."""
        address = self.stacks[number] if number < len(self.stacks) else 0
        entry = self.addresses[address] if address < len(self.addresses) else [0]
        if len(entry) > 2 and entry[2] < len(self.strings):
            return re.sub(r"[\s=]+", "_", self.strings[entry[2]]) or _UNKNOWN
        return f"{entry[0]:#x}" if entry[0] else _UNKNOWN
