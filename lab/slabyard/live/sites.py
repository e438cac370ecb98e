"""Which call sites allocate, of a running kernel, by cache.

Two sources, of which the first is there on few machines:

    /proc/allocinfo   kernels that count every allocation (CONFIG_MEM_ALLOC_PROFILING, since Linux 6.10): live bytes by line of source
    kmem events       traced by the kernel itself, in an instance of tracefs of our own, for a short part of the time: what was allocated
                      then, by the function that asked. What becomes of it such a sample doesn't tell

Tracing everything all the time would cost more than what is looked for. A sample of SAMPLE seconds in each interval is scaled to a second.
The instance is removed at the end, so that nothing stays behind; other users of tracefs see nothing of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import MISSING, UserError
from ..base.files import read_text_if_there
from ..base.privileges import TRACEFS, tracefs
from ..trace import snapshots

ALLOCINFO = Path("/proc/allocinfo")
SAMPLE = 0.05  # seconds
BUFFER_KIB = 8192  # for each CPU
EVENTS = ("kmalloc", "kmem_cache_alloc")
_EVENT = re.compile(r" (kmalloc|kmem_cache_alloc): call_site=(\S+) .*?(?:name=(\S+) )?bytes_req=\d+ bytes_alloc=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Site:
    """A place in the kernel that allocates."""

    name: str
    cache: str  # empty where the source does not tell


def read_allocinfo(path: Path = ALLOCINFO) -> dict[Site, int] | None:
    """Live bytes of each call site that has any; None where the kernel does not count them."""
    text = read_text_if_there(path)
    return None if text is None else parse_allocinfo(text)


def parse_allocinfo(text: str) -> dict[Site, int]:
    """The same of allocinfo's text."""
    found: Counter[Site] = Counter()
    for line in snapshots.parse_allocinfo(text):
        if line.bytes:
            found[Site(f"{line.function} {line.place}" + (f" [{line.module}]" if line.module else ""), "")] += line.bytes
    return dict(found)


class Sampler:
    """Traces allocations for SAMPLE seconds at a time, in an instance of tracefs that lives as long as the context."""

    def __init__(self, mounts: Sequence[Path] = TRACEFS) -> None:
        self._folder = tracefs("instances", mounts) / f"slabyard-{os.getpid()}"

    def __enter__(self) -> Sampler:
        try:
            self._folder.mkdir()
            self._write("buffer_size_kb", str(BUFFER_KIB))
            self._write("tracing_on", "0")
            for event in EVENTS:
                self._write(f"events/kmem/{event}/filter", f"common_pid != {os.getpid()}")
                self._write(f"events/kmem/{event}/enable", "1")
        except BaseException as error:  # Ctrl-C, too
            self.close()
            if not isinstance(error, OSError):
                raise
            raise UserError(f"tracing is not possible here ({(error.strerror or str(error)).lower()}); it needs root", MISSING) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the instance."""
        try:
            with contextlib.suppress(OSError):
                self._write("events/kmem/enable", "0")
        finally:
            with contextlib.suppress(OSError):
                self._folder.rmdir()

    def _write(self, name: str, text: str) -> None:
        with (self._folder / name).open("w") as file:
            file.write(text)

    def sample(self) -> dict[Site, int]:
        """Bytes that each call site allocates in a second, from what it did in SAMPLE seconds."""
        self._write("trace", "")
        began = time.monotonic()
        self._write("tracing_on", "1")
        time.sleep(SAMPLE)
        self._write("tracing_on", "0")
        took = time.monotonic() - began
        text = (self._folder / "trace").read_text(errors="replace")
        return {site: round(size / took) for site, size in parse_events(text).items()}


def parse_events(text: str) -> dict[Site, int]:
    """Bytes allocated by call site and cache, of tracefs's text."""
    found: Counter[Site] = Counter()
    for event, site, name, size in _EVENT.findall(text):
        cache = name or (kmalloc_cache(int(size)) if event == "kmalloc" else "")
        found[Site(site.partition("+")[0], cache)] += int(size)
    return dict(found)


def kmalloc_cache(size: int) -> str:
    """The name of the cache that has a kmalloc of this final size; of large ones, which are in none, `large`."""
    return "large" if size > 8192 else snapshots.kmalloc_name(size)
