"""The heap profile of a running program, or of a core file: live memory by the stack that allocated it, for pprof.

It is exact where the program's heap audits (SLABYARD_DEBUG=U). Where it is sampled (`slabyard sample`), each sampled object stands for the
N allocations of which it is one, as in other allocators' profiles; what is not sampled is told beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..attribution import pprof
from ..base.errors import UserError
from ..base.files import whole_file
from ..base.table import counted
from . import sample
from .inspect import Answer, doubts, name_of

_PLACE = re.compile(r"^(?P<function>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)$")
_MIB = 1 << 20


def frames_of(stack: list[str], program: str) -> list[pprof.Frame]:
    """A stack as inspect tells it, innermost first, as frames, outermost first. Inlined functions are frames of their own."""
    frames = []
    for one in stack:
        *inlined, last = one.split(" inlined in ")
        found = _PLACE.match(last)
        file, line = (found["file"], int(found["line"] or 0)) if found else ("", 0)
        frames += [pprof.Frame(name, program, file) for name in inlined]
        frames.append(pprof.Frame(found["function"] if found else last, program, file, line))
    return frames[::-1]


def samples_of(answer: Answer) -> list[pprof.Sample]:
    """A sample for each stack and cache of each heap that has records: live objects and bytes, an estimate where objects are sampled."""
    program = Path(answer["program"]).name or "?"
    made = []
    for heap in answer["heaps"]:
        if not heap["profile"]:
            continue
        weight = heap["profile"]["one_in"] or 1
        for site in heap["profile"]["sites"]:
            objects, size = site["objects"] * weight, site["bytes"] * weight
            frames = frames_of(site["stack"], program) or [pprof.Frame("[unknown]", program)]
            frames.append(pprof.Frame(f"[{site['cache']}]", program))
            made.append(pprof.Sample(frames, {"cache": site["cache"]}, [0, 0, objects, size, 0]))
    return made


def export(answer: Answer, path: Path) -> str:
    """Writes the profile; returns what to say of it. UserError where nothing in the program records who allocates."""
    profiles = [heap["profile"] for heap in answer["heaps"] if heap["profile"]]
    if not profiles and answer["process"] and sample.is_sampled(answer["process"]):
        more = f"slabyard sample --rate 1000 {answer['process']}"
        raise UserError(f"{name_of(answer)} is sampled, but holds no sampled object; look again later, or sample more: {more}")
    if not profiles:
        raise UserError(
            f"{name_of(answer)} does not record who allocates; start it with SLABYARD_DEBUG=U for an exact profile, "
            f"or sample it: slabyard sample {answer['process'] or 'PID'}"
        )
    samples = samples_of(answer)
    with whole_file(path) as part:
        part.write_bytes(pprof.write(samples, 0, f"slabyard inspect of {name_of(answer)}"))
    total = sum(sample.values[3] for sample in samples)
    said = [f"{path}: {total / _MIB:,.1f} MiB live in {counted(len(samples), 'stack')} of {name_of(answer)}"]
    return "\n".join([*said, *_limits(answer, profiles), *doubts(answer)])


def _limits(answer: Answer, profiles: list[dict[str, Any]]) -> list[str]:
    """What the profile leaves out."""
    said = []
    sampled = [one for one in profiles if one["one_in"]]
    if sampled:
        large = sum(heap["large"]["used_bytes"] for heap in answer["heaps"] if not heap["profile"])
        large += answer["mappings"]["bytes"] if answer["mappings"] else 0
        objects = sum(site["objects"] for one in sampled for site in one["sites"])
        rate = sampled[0]["one_in"]
        said.append(f"An estimate from {counted(objects, 'sampled object')}, one in {rate:,} allocations since sampling began.")
        if large:
            said.append(f"Allocations above 64 KiB are not sampled: {large / _MIB:,.1f} MiB are in large allocations and mappings.")
    missed = sum(one["missed"] for one in sampled)
    if missed:
        came = counted(missed, "allocation")
        said.append(f"{came} came when as many objects as can be were sampled: sample fewer (slabyard sample --rate).")
    lost = sum(one["stacks_lost"] for one in profiles)
    if lost:
        said.append(f"{counted(lost, 'allocation')} found no room for a stack: in the profile, live ones are under [unknown].")
    return said
