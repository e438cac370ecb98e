"""inspect: what is in the heaps of a running process or a core file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..base.errors import DONE, INCOMPLETE, UserError
from ..base.files import check_outputs, to_json
from ..base.table import FORMATS, render
from .words import add_verb, count

SHOWN = 40  # slabs, and parts of a slab


def add(parent: Any) -> None:
    """The verb's parser."""
    verb = add_verb(
        parent, "inspect", "what is in the heaps of a process or a core file", inspect,
        "slabyard inspect 4711\n  slabyard inspect core --slabs kmalloc-64\n  slabyard inspect 4711 --address 0x7f1234567890\n"
        "  slabyard inspect 4711 --log\n  slabyard inspect 4711 --format prometheus\n"
        "  slabyard inspect 4711 --profile heap.pb.gz",
        "The program must use slabyard's malloc or library. A process is stopped for less than 100 ms. Needs the right to trace it "
        "(its user, or root). Stacks of allocations are known if the program was started with SLABYARD_DEBUG=U, and for sampled "
        "objects (slabyard sample).",
    )  # fmt: skip
    verb.add_argument("target", metavar="PID|CORE", help="a process by its number, or a core file")
    verb.add_argument("--slabs", nargs="?", const="", metavar="CACHE", help="also each slab of this cache, or of all")
    verb.add_argument(
        "--address", type=address, metavar="ADDRESS", help="where it belongs: heap, slab, object, neighbours, who allocated it"
    )
    verb.add_argument("--slab", type=address, metavar="ADDRESS", help="everything in the slab at this address")
    verb.add_argument("--profile", type=Path, metavar="FILE", help="write live memory by stack, a heap profile for pprof (FILE.pb.gz)")
    verb.add_argument("--log", action="store_true", help="the last allocations and frees; with --address, of objects there")
    verb.add_argument("--last", type=count(10**6), default=20, metavar="N", help="transactions of --log (default: 20)")
    verb.add_argument("--lines", type=count(10**6), default=SHOWN, metavar="N", help=f"slabs, or parts of one, in text (default: {SHOWN})")
    verb.add_argument("--format", choices=(*FORMATS, "prometheus"), default="text", help="output format (default: text)")
    verb.usage = "slabyard inspect [options] PID|CORE"


def address(text: str) -> int:
    """An address: `0x7f12` or `7f12`, as debuggers print them."""
    try:
        found = int(text.removeprefix("0x"), 16)
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text!r} is no address, as in 0x7f1234567890")
    return found


def inspect(options: argparse.Namespace) -> int:
    from ..live import inspect as live

    if options.slab is not None and (options.address is not None or options.log):
        raise UserError("--slab goes alone; give --address with --log")
    asked_address = options.address if options.slab is None else options.slab
    words = [] if asked_address is None else ["--address", hex(asked_address)]
    words += ["--slab"] if options.slab is not None else []
    words += ["--log", "--last", str(options.last)] if options.log else []
    words += ["--profile"] if options.profile else []
    words += ["--slabs", options.slabs] if options.slabs is not None else []
    if options.profile and len(words) > 1:
        raise UserError("--profile goes alone")
    check_outputs((options.profile,))  # before a process is stopped for it
    if options.format in ("csv", "md", "prometheus") and (options.log or options.address is not None):
        raise UserError(f"--format {options.format} goes with tables; --address and --log are text or json")
    if options.format == "prometheus" and (options.slab is not None or options.slabs is not None):
        raise UserError("--format prometheus has the heaps and caches alone")
    answer = live.ask(options.target, *words)
    if options.profile:
        from ..live import profile

        print(profile.export(answer, options.profile))
        return INCOMPLETE if answer["truncated"] else DONE
    if options.slabs:
        live.check_cache(answer, options.slabs)
    sys.stdout.write(_written(answer, options))
    return INCOMPLETE if answer["truncated"] else DONE


def _written(answer: dict[str, Any], options: argparse.Namespace) -> str:
    from ..live import inspect as live
    from ..live import prometheus

    most = options.lines if options.format == "text" else None
    if options.format == "json":
        return to_json(answer)
    if options.format == "prometheus":
        return prometheus.text(answer)
    if options.log:
        return live.describe_log(answer)
    if options.address is not None:
        return live.describe_address(answer)
    made = [live.part_table(answer, most)] if options.slab is not None else live.tables(answer, most)
    return render(made, options.format)
