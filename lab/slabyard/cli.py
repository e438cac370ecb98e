"""The command line: `slabyard VERB`.

One function for each verb, one parser for each, with an example. Whatever goes wrong ends here: a UserError is printed as its
one line; Ctrl-C, a closed pipe and a full disk likewise; any other exception is a bug of slabyard's, told in one
line with how to see where it happened (SLABYARD_DEBUG=1). No child and no half-written file is left behind in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__, programs
from .errors import DONE, INCOMPLETE, INTERRUPTED, USAGE, UserError
from .kernels import commands
from .output import FORMATS, Progress, Table, describe_os_error, is_special, note, render, to_json, whole_file

if TYPE_CHECKING:
    from . import threads
    from .compare import Plan
    from .replay import Workload
    from .snapshots import SlabLine
    from .trace import Metadata

STATUSES = """\
exit status:
  0  done
  1  a regression was found, where asked to look for one
  2  wrong usage or input
  3  done, but the trace is incomplete: events were lost
  4  a privilege or a tool is missing; the message says which, and how to get it
  130  interrupted: Ctrl-C, SIGTERM, SIGHUP
"""


SCRIPT = """\
cpus 2                    the machine; also: nodes N
cache inode 400           also: align=N ctor hwcache rcu nomerge
alloc a..h inode cpu=1    objects a to h of a cache; also: node=N
kmalloc x1..x3 100        three of 100 bytes
free b d x2               also: cpu=N
show some title           draws memory here, and goes on
shrink                    also: drain CPU; tick SECONDS
"""

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; the exit status."""
    try:
        _take_signals()
        _occupy_closed_streams()
        status = _run(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except UserError as error:
        return _fail(error.message, error.status)
    except KeyboardInterrupt:
        programs.kill_children()
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone; what is still in the buffer must not be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except MemoryError:
        return _fail("out of memory; close other programs, or use a smaller trace", USAGE)
    except OSError as error:
        if os.environ.get("SLABYARD_DEBUG"):
            raise
        return _fail(describe_os_error(error, error.filename or "standard output"), USAGE)
    except Exception as error:
        if os.environ.get("SLABYARD_DEBUG"):
            raise
        text = " ".join(str(error).split()) or "no message"
        return _fail(f"unexpected {type(error).__name__}: {text[:200]} (a bug; SLABYARD_DEBUG=1 shows where)", USAGE)


def _take_signals() -> None:
    """Ctrl-C, SIGTERM and SIGHUP end us in order; who starts us with one of them ignored (nohup) wants it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # __main__ has left it so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminated)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    for number in ENDING:  # nothing is to disturb the tidying up
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _occupy_closed_streams() -> None:
    """A standard stream that is closed must not become the number of the next file: what is printed would go into that."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")


def _fail(message: str, status: int) -> int:
    with contextlib.suppress(OSError):  # a terminal that has gone
        print(f"slabyard: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


def _run(argv: list[str]) -> int:
    # What stands after -- is the command to record or run, and none of our options.
    command: list[str] | None = None
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1 :]
    parser = _parser()
    options = parser.parse_args(argv)
    options.command = command
    if options.verb is None:
        parser.print_help()
        return USAGE
    if command is not None and options.verb not in ("record", "compare", "run"):
        raise UserError(f"{options.verb} takes no command after --; see slabyard {options.verb} --help")
    if sys.stdout is None and options.verb not in ("record", "import", "run"):
        raise UserError("standard output is closed, and the result goes there; send it to a file or a pipe")
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


# ---- Parsers -----------------------------------------------------------------------------------------------------


def _parser() -> Parser:
    parser = Parser(
        prog="slabyard",
        description="Which kernel allocator suits this workload, what it costs in time, memory and fragmentation, and why.",
        epilog=STATUSES + "\nslabyard VERB --help tells more, with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"slabyard {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)

    verb = _verb(verbs, "list", "the allocators and their tunables", _list, "slabyard list\n  slabyard list --format json")
    _format(verb)

    verb = _verb(
        verbs, "record", "record every kernel allocation while a command runs", _record,
        "slabyard record -o make.parquet -- make -j2",
        "Needs perf, tracefs and the right to trace (root). Records the whole machine.",
    )  # fmt: skip
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="T.parquet", help="the trace to write")
    verb.usage = "slabyard record -o T.parquet -- CMD..."

    verb = _verb(
        verbs, "import", "make a trace of perf.data, perf script text or tracefs text", _import,
        "slabyard import perf.data -o t.parquet\n  slabyard import trace.txt -o t.parquet --snapshot end=DIR:after",
    )  # fmt: skip
    verb.add_argument("capture", type=Path, metavar="CAPTURE", help="perf.data, or text from perf script or tracefs; - for standard input")
    verb.add_argument("-o", "--output", type=Path, metavar="T.parquet", help="the trace to write (default: the capture's name, here)")
    verb.add_argument(
        "--snapshot", action="append", default=[], metavar="NAME=DIR:SUFFIX",
        help="the kernel's figures at the mark NAME (or `end`): DIR/slabinfo.SUFFIX and its siblings",
    )  # fmt: skip
    verb.add_argument("--cpus", type=_count(512), metavar="N", help="CPUs of the recorded machine, where the capture does not tell")
    verb.add_argument("--page-size", type=int, metavar="BYTES", help="of the recorded machine, where the capture does not tell")

    verb = _verb(verbs, "info", "what a trace holds", _info, "slabyard info t.parquet\n  slabyard info t.parquet --format json")
    verb.add_argument("trace", type=Path, metavar="T.parquet")
    verb.add_argument("--caches", action="store_true", help="all caches, not the busiest alone")
    _format(verb)

    verb = _verb(
        verbs, "replay", "one trace under one allocator", _replay,
        "slabyard replay t.parquet --allocator slub\n  slabyard replay t.parquet --allocator slob:fit=best --format json\n"
        "  slabyard replay t.parquet --allocator slob:fit=best,log_every=1000 --log -\n"
        "  slabyard replay t.parquet --allocator slub --proc buddyinfo\n"
        "  slabyard replay t.parquet --allocator slab --slabinfo --sort c",
    )  # fmt: skip
    verb.add_argument("trace", type=Path, metavar="T.parquet")
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...], malloc:system or malloc:LIB.so")
    verb.add_argument("--runs", type=_count(1000), default=1, metavar="N", help="timed repetitions (default: 1; intervals from 6 on)")
    verb.add_argument("--caches", action="store_true", help="also show each cache's slabs")
    verb.add_argument(
        "--log", metavar="FILE", help="write what the policy logs (slob: searches, with log_every=N); - for standard error"
    )
    verb.add_argument(
        "--proc", choices=("buddyinfo", "pagetypeinfo", "slabinfo"),
        help="print the free lists or the caches at the end as this file of /proc does, nothing else",
    )  # fmt: skip
    verb.add_argument("--slabinfo", action="store_true", help="print the caches at the end as slabtop does, nothing else")
    verb.add_argument(
        "--sort", choices=tuple("abclvnopsu"), metavar="KEY",
        help="of --slabinfo, slabtop's keys: a active objects, b objects per slab, c cache size, l slabs, v active slabs, "
        "n name, o objects (default), p pages per slab, s object size, u use",
    )  # fmt: skip
    _machine(verb)
    _format(verb)

    verb = _verb(
        verbs, "compare", "several allocators on traces, or on a command", _compare,
        "slabyard compare a.parquet b.parquet --report report.html\n"
        "  slabyard compare a.parquet --allocators slub,slub:max_order=0\n"
        "  slabyard compare -- make -j2",
        "Replays each trace under each allocator, times them interleaved, ranks them.",
    )  # fmt: skip
    verb.add_argument("traces", type=Path, nargs="*", metavar="T.parquet")
    verb.add_argument(
        "--allocators", metavar="A,B,...", help="specs, separated by commas (default: every allocator, SLOB with each of its fits)"
    )
    verb.add_argument(
        "--runs", type=_count(1000), default=6, metavar="N", help="timed repetitions (default: 6, the fewest for an interval)"
    )
    verb.add_argument("--warmup", type=_count(1000, 0), default=0, metavar="N", help="untimed repetitions first (default: 0)")
    verb.add_argument(
        "--jobs", type=_count(256), default=1, metavar="N", help="exact passes side by side; timed passes never are (default: 1)"
    )
    verb.add_argument("--report", type=Path, metavar="FILE.html", help="write a report, one self-contained page")
    verb.add_argument("--export-json", type=Path, metavar="FILE", help="write the result records")
    _machine(verb)
    _format(verb)
    verb.usage = "slabyard compare [options] T.parquet...\n       slabyard compare [options] -- CMD..."

    verb = _verb(
        verbs, "threads", "real threads on one heap, or on a malloc", _threads,
        "slabyard threads --allocator slub --workload larson --threads 1..4\n"
        "  slabyard threads --allocators slub,malloc:system --workload pipe --threads 2\n"
        "  slabyard threads t.parquet --allocators slub,slab\n"
        "  slabyard threads --list",
        "Runs each workload under each allocator, interleaved. A trace is replayed by a thread for each recorded CPU.",
    )  # fmt: skip
    verb.add_argument("trace", type=Path, nargs="?", metavar="T.parquet", help="replay this trace (workload trace)")
    verb.add_argument(
        "--allocator", "--allocators", dest="allocators", metavar="A,B,...", help="policy[:tunable=value,...], malloc:system, malloc:LIB.so"
    )
    verb.add_argument("--workload", metavar="W,...", help="of --list (default with a trace: trace)")
    verb.add_argument("--threads", type=_thread_counts, default=[], metavar="N", help="2, 1..4 or 1,2,8 (default: 1, or a trace's CPUs)")
    verb.add_argument("--runs", type=_count(1000), default=6, metavar="N", help="timed runs (default: 6, the fewest for an interval)")
    verb.add_argument("--warmup", type=_count(1000, 0), default=0, metavar="N", help="untimed runs first (default: 0)")
    verb.add_argument("--operations", type=_count(10**9 - 1), metavar="N", help="objects that each thread takes (default: the workload's)")
    verb.add_argument("--size", metavar="BYTES", help="of objects, as in 64 or 16-256 (default: the workload's)")
    verb.add_argument("--batch", type=_count(1 << 24), metavar="N", help="objects held at once (default: the workload's)")
    verb.add_argument("--caches", action="store_true", help="objects of one size come from a cache of their own")
    verb.add_argument("--list", action="store_true", help="the workloads")
    verb.add_argument("--export-json", type=Path, metavar="FILE", help="write the result records")
    _format(verb)
    verb.usage = "slabyard threads [options] --allocators A,B --workload W [T.parquet]"

    verb = _verb(
        verbs, "run", "a command on slabyard's malloc", _run_command,
        "slabyard run -- sqlite3 test.db .dump\n  slabyard run --allocator slub:cpu_partial=8 --stats -- python3 program.py",
        "Its exit status and signals are passed through. Statistics go to standard error.",
    )  # fmt: skip
    verb.add_argument("--allocator", default="slub", metavar="SPEC", help="policy[:tunable=value,...] (default: slub)")
    verb.add_argument("--stats", action="store_true", help="tell at the end what each of the command's processes asked malloc for")
    verb.add_argument("--export-json", type=Path, metavar="FILE", help="write the statistics (implies --stats)")
    verb.usage = "slabyard run [options] -- CMD..."

    verb = _verb(
        verbs, "geometry", "slab geometry by object size", _geometry,
        "slabyard geometry --allocator slub --cpus 2 64 192 2048",
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC")
    verb.add_argument("--cpus", type=_count(512), default=os.cpu_count() or 1, metavar="N", help="present CPUs (default: this machine's)")
    verb.add_argument("sizes", type=_count(1 << 22), nargs="+", metavar="SIZE", help="final object sizes in bytes, as slabinfo's objsize")
    _format(verb)

    verb = _verb(
        verbs, "layout", "draws memory after a script of allocations", _layout,
        "slabyard layout --allocator slub script.txt\n\na script:\n" + textwrap.indent(SCRIPT, "  "),
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...]")
    verb.add_argument("script", type=Path, metavar="SCRIPT", help="commands, one a line; - for standard input")
    verb.add_argument("--format", choices=("text", "json"), default="text", help="of the output (default: text)")
    verb.add_argument("--svg", type=Path, metavar="FILE.svg", help="also draw a picture")

    verb = _verb(
        verbs, "kernel", "Linux itself, built on an allocator and booted", _no_kernel_verb,
        "slabyard kernel run --allocator slub --workload hackbench\n  slabyard kernel compare",
    )  # fmt: skip
    commands.add(verb.add_subparsers(dest="kernel_verb", metavar="VERB", parser_class=Parser), _verb, _count, _bytes, FORMATS)
    return parser


def _no_kernel_verb(_options: argparse.Namespace) -> int:
    raise UserError("kernel needs a verb: build, run, compare, flame, list or clean; see slabyard kernel --help")


def _verb(
    verbs: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int], example: str, more: str = ""
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=summary, description=textwrap.fill(summary[0].upper() + summary[1:] + "." + (f" {more}" if more else ""), 80),
        epilog=f"example:\n  {example}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the output (default: text)")


def _machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cpus", type=_count(512), metavar="N", help="CPU slots (default: as recorded)")
    parser.add_argument("--nodes", type=_count(16), metavar="N", help="memory nodes (default: as recorded)")
    parser.add_argument("--memory", type=_bytes, metavar="SIZE", help="of the simulated machine, as in 512M or 64G (default: as recorded)")
    parser.add_argument(
        "--allow-failures", action="store_true", help="count requests that find no memory, rather than refuse the trace (status 2)"
    )
    parser.add_argument(
        "--start", choices=("recorded", "empty"), help="what is there before the trace (default: as recorded, where a snapshot tells)"
    )


def _count(most: int, least: int = 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
        return int(text)

    return parse


def _thread_counts(text: str) -> list[int]:
    """`2`, `1..4`, `1,2,8`: numbers of threads."""
    from .threads import MOST_THREADS

    counts: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:\.\.(\d{1,4}))?", item)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= MOST_THREADS:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of threads from 1 to {MOST_THREADS}, as in 2, 1..4 or 1,2,8")
        counts += [count for count in range(low, high + 1) if count not in counts]
    return counts


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)(i?B)?", text, re.IGNORECASE)
    size = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()] if match else 0
    if not 1 << 20 <= size <= 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no size from 1M to 1T (as in 512M or 64G)")
    return size


def _specs(text: str) -> list[str]:
    """Specs out of a list separated by commas, which also separate a spec's tunables: `slub,slob:fit=best,log_every=9`."""
    specs: list[str] = []
    for item in text.split(","):
        if specs and "=" in item and ":" not in item:
            specs[-1] += f",{item}"
        elif item:
            specs.append(item)
    if not specs:
        raise UserError("--allocators names no allocator; slabyard list shows them")
    repeated = [spec for at, spec in enumerate(specs) if spec in specs[:at]]
    if repeated:
        raise UserError(f"--allocators names {repeated[0]} twice")
    return specs


# ---- Verbs -------------------------------------------------------------------------------------------------------


def _print(text: str) -> None:
    sys.stdout.write(text)


def _list(options: argparse.Namespace) -> int:
    from .replay import policies

    found = policies()
    if options.format == "json":
        _print(to_json(found))
        return DONE
    tables = [Table("", ["allocator", "what it is", "paper"], [[one["name"], one["summary"], one["paper"]] for one in found])]
    if options.format == "text":
        _print(_list_text(found))
        return DONE
    for one in found:
        if one["tunables"]:
            rows = [[item["name"], str(item["default"]), _range(item), item["meaning"]] for item in one["tunables"]]
            tables.append(Table(one["name"], ["tunable", "default", "range", "meaning"], rows))
    _print(render(tables, options.format))
    return DONE


def _list_text(found: list[dict[str, Any]]) -> str:
    lines = []
    for one in found:
        lines += [one["name"], f"  {one['summary']}"]
        for paper in one["paper"].split("; "):
            lines += textwrap.wrap(paper, 80, initial_indent="  ", subsequent_indent="    ")
        lines += _tunables_text(one["tunables"]) or ["  no tunables"]
        lines.append("")
    lines += ["malloc:system, malloc:/path/lib.so", "  the object events through a malloc library", ""]
    return "\n".join(lines)


def _tunables_text(tunables: list[dict[str, Any]]) -> list[str]:
    """A line for each, `name=default`, range and meaning in columns; the meaning goes on below itself."""
    heads = [(f"{item['name']}={item['default']}", _range(item)) for item in tunables]
    widths = [max((len(head[column]) for head in heads), default=0) for column in (0, 1)]
    lines = []
    for item, (name, range_) in zip(tunables, heads, strict=True):
        start = f"    {name:<{widths[0]}}  {range_:<{widths[1]}}  "
        lines += textwrap.wrap(item["meaning"], 80, initial_indent=start, subsequent_indent=" " * len(start))
    return lines


def _range(item: dict[str, Any]) -> str:
    range_ = ", ".join(item["choices"]) if item.get("choices") else f"{item['min']} to {item['max']}"
    return f"auto, {range_}" if item["default"] == "auto" else range_


def _record(options: argparse.Namespace) -> int:
    from .record import check

    _writable(options.output)
    check(options.command or [])
    return _record_to(options.command or [], options.output, None)


def _record_to(command: list[str], output: Path, stdout: int | None) -> int:
    """Records a command into a trace; the exit status of the verb."""
    from .importer import import_recording
    from .record import record

    with whole_file(output) as part, record(command, part, stdout) as recording:
        metadata = import_recording(recording, command, part)
    if recording.status:
        note(f"{command[0]} exited with status {recording.status}")
    return _told(output, metadata)


def _told(output: Path, metadata: Metadata) -> int:
    """Says what a new trace holds; the exit status of the verb."""
    note(f"{output}: {sum(metadata.events.values()):,} events of {metadata.span_seconds:,.2f} s")
    return _completeness({str(output): metadata.incomplete})


def _import(options: argparse.Namespace) -> int:
    from .importer import import_trace, read_snapshot

    source = str(options.capture)
    output = options.output
    if source == "-" and sys.stdin is None:
        raise UserError("standard input is closed, so there is no capture in it; send one there, or name a file")
    if output is None:
        if source == "-":
            raise UserError("a capture from standard input needs -o T.parquet")
        output = Path(re.sub(r"(\.(txt|data|gz|xz|bz2))+$", "", options.capture.name) + ".parquet")
    _writable(output)
    snapshots = [read_snapshot(text) for text in options.snapshot]
    return _told(output, import_trace(source, output, snapshots, options.cpus, page_size=options.page_size))


def _writable(path: Path) -> None:
    """Refuses an output before the work for it is done."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file in it")
    folder = Path(os.path.realpath(path)).parent
    if not is_special(path) and not folder.is_dir():
        raise UserError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(path if is_special(path) else folder, os.W_OK):
        raise UserError(f"{path}: permission denied")


def _info(options: argparse.Namespace) -> int:
    from . import info

    about = info.describe(options.trace)
    _print(to_json(about) if options.format == "json" else render(info.tables(about, options.caches), options.format))
    if about["incomplete"]:
        note(f"{options.trace} is incomplete: {about['incomplete']}")
        return INCOMPLETE
    return DONE


def _options(options: argparse.Namespace) -> Any:
    from .replay import Options

    return Options(options.cpus, options.nodes, options.memory, options.start, options.allow_failures)


def _replay(options: argparse.Namespace) -> int:
    from . import compare, records
    from .replay import Workload
    from .snapshots import parse_slabinfo

    if options.log and options.log != "-":
        _writable(Path(options.log))
    if options.proc and options.slabinfo:
        raise UserError("--proc and --slabinfo each print one thing; give one of them (--proc slabinfo is the file itself)")
    if options.log and (options.proc or options.slabinfo):
        raise UserError("--log goes with a replay that prints its measures; leave out --proc and --slabinfo")
    if options.sort and not options.slabinfo:
        raise UserError("--sort goes with --slabinfo")
    if options.slabinfo:
        return _slabinfo(options)
    if options.proc:
        with Workload(options.trace, _options(options)) as workload:
            text = workload.proc(options.allocator, options.proc)
            _print(text + "\n")
            if options.proc == "slabinfo":
                _note_shared_pages(options.allocator, parse_slabinfo(text))
            return _completeness({str(options.trace): workload.metadata.incomplete})
    with Workload(options.trace, _options(options)) as workload, Progress(2 + options.runs) as progress:
        exact = _exact(workload, options.allocator, options.log)
        samples = []
        for turn in range(options.runs):
            progress.step(f"{workload.name}: timed run {turn + 1} of {options.runs}")
            samples.append(workload.timed(options.allocator))
        latency = workload.latency(options.allocator)
        record = workload.record(options.allocator, exact, records.summarise(samples, latency))
        incomplete = workload.metadata.incomplete
    if options.format == "json":
        _print(to_json(record))
    elif options.format == "csv":
        _print(render([compare.flat([record])], "csv"))
    else:
        _print(render(compare.details(record, options.caches), options.format))
    return _completeness({str(options.trace): incomplete})


def _slabinfo(options: argparse.Namespace) -> int:
    from . import slabtop
    from .replay import Workload
    from .snapshots import parse_slabinfo

    with Workload(options.trace, _options(options)) as workload:
        lines = parse_slabinfo(workload.proc(options.allocator, "slabinfo"))
        incomplete = workload.metadata.incomplete
    letter = options.sort or "o"
    if options.format == "json":
        _print(to_json(slabtop.as_json(lines, letter)))
    elif options.format == "text":
        _print(slabtop.text(lines, letter))
    else:
        _print(render([slabtop.table(lines, letter)], options.format))
    _note_shared_pages(options.allocator, lines)
    return _completeness({str(options.trace): incomplete})


def _note_shared_pages(spec: str, lines: Sequence[SlabLine]) -> None:
    from . import slabtop

    if slabtop.shares_pages(lines):
        note(f"the caches of {spec} share their pages: slabs of one cache cannot be told, and kmallocs are in none")


def _exact(workload: Workload, spec: str, log: str | None) -> dict[str, Any]:
    """The exact figures of a replay; what the policy logs goes to the file `log`, `-` being standard error."""
    if log is None:
        return workload.exact(spec)
    with whole_file(Path(log)) if log != "-" else workload.spare_file() as path:
        exact = workload.exact(spec, path)
        if not path.stat().st_size:
            note(f"{spec} logs nothing here; slob does, with log_every=N")
        if log == "-":
            with path.open(errors="replace") as file:
                shutil.copyfileobj(file, sys.stderr)
    return exact


def _completeness(incomplete: dict[str, str | None]) -> int:
    status = DONE
    for name, reason in incomplete.items():
        if reason:
            note(f"{name} is incomplete: {reason}")
            status = INCOMPLETE
    return status


def _compare(options: argparse.Namespace) -> int:
    import tempfile

    if options.command is not None and options.traces:
        raise UserError("compare takes traces, or a command after --, not both")
    if options.command is None and not options.traces:
        raise UserError("compare needs a trace, or a command after --; see slabyard compare --help")
    for path in (options.report, options.export_json):
        if path is not None:
            _writable(path)
    plan = _plan(options)
    if options.command is None:
        return _compare_traces(options, plan, options.traces)
    from .record import check

    check(options.command)
    folder = Path(tempfile.mkdtemp(prefix="slabyard-"))
    trace = folder / (re.sub(r"[^\w.+-]+", "-", Path(options.command[0]).name) + ".parquet")
    try:
        # The command's own output must not mix with the comparison.
        _record_to(options.command, trace, sys.stderr.fileno())
        status = _compare_traces(options, plan, [trace])
    except BaseException:
        if trace.exists():
            note(f"what was recorded is kept: {trace}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return status


def _plan(options: argparse.Namespace) -> Plan:
    """How to compare. UserError for allocators that there are not and a machine that cannot be, before anything is done for them."""
    from . import compare
    from .replay import check_spec

    specs = _specs(options.allocators) if options.allocators is not None else compare.ALLOCATORS
    for spec in specs:
        check_spec(spec)
    plan = compare.Plan(specs, options.runs, options.warmup, options.jobs, _options(options))
    plan.options.check()
    return plan


def _compare_traces(options: argparse.Namespace, plan: Plan, traces: list[Path]) -> int:
    from . import compare
    from .trace import Trace

    incomplete = {}
    for path in traces:
        with Trace(path) as trace:
            incomplete[str(path)] = trace.metadata.incomplete
    with Progress(compare.steps(len(traces), plan)) as progress:
        found = compare.compare(traces, plan, progress)
    if options.export_json:
        with whole_file(options.export_json) as part:
            part.write_text(to_json(found))
    if options.report:
        from .report import write_report

        write_report(found, options.report)
    if options.format == "json":
        _print(to_json(found))
    elif options.format == "csv":
        _print(render([compare.flat(found)], "csv"))
    else:
        _print(render(compare.tables(found), options.format))
    if options.report:
        note(f"wrote {options.report}")
    return _completeness(incomplete)


def _threads(options: argparse.Namespace) -> int:
    from . import threads

    known = threads.workloads()
    if options.list:
        return _list_workloads(known, options.format)
    plan = _thread_plan(options, [one["name"] for one in known])
    with Progress(threads.steps(plan)) as progress:
        found = threads.run(plan, progress)
    if options.export_json:
        with whole_file(options.export_json) as part:
            part.write_text(to_json(found))
    if options.format == "json":
        _print(to_json(found))
    elif options.format == "csv":
        _print(render([threads.flat(found)], "csv"))
    else:
        _print(render(threads.tables(found), options.format))
    return DONE


def _list_workloads(known: list[dict[str, Any]], form: str) -> int:
    if form == "json":
        _print(to_json(known))
    else:
        _print(render([Table("", ["workload", "what it does"], [[one["name"], one["what"]] for one in known])], form))
    return DONE


def _thread_plan(options: argparse.Namespace, known: list[str]) -> threads.Plan:
    """What to run. UserError for what cannot be, before anything is run."""
    from . import threads

    if options.allocators is None:
        raise UserError("threads needs --allocator SPEC, or --allocators A,B; slabyard list shows them")
    if options.workload is None and options.trace is None:
        raise UserError(f"threads needs --workload, of {', '.join(known)}; or a trace")
    wanted = [threads.TRACE] if options.workload is None else [name for name in options.workload.split(",") if name]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise UserError(f"no workload is called {unknown[0] if unknown else options.workload!r}; there are {', '.join(known)}")
    if options.trace is not None and threads.TRACE not in wanted:
        raise UserError(f"{options.trace}: only the workload trace replays a trace")
    if options.export_json is not None:
        _writable(options.export_json)
    plan = threads.Plan(
        _specs(options.allocators), wanted, options.threads, options.runs, options.warmup, options.operations, options.size, options.batch,
        options.caches, options.trace,
    )  # fmt: skip
    threads.check(plan)
    return plan


def _run_command(options: argparse.Namespace) -> int:
    from . import run

    if not options.command:
        raise UserError("run needs a command after --: slabyard run -- CMD...")
    if not options.stats and options.export_json is None:
        run.replace(options.command, options.allocator)
    if options.export_json is not None:
        _writable(options.export_json)
    return run.end_as(run.measure(options.command, options.allocator, options.export_json))


def _geometry(options: argparse.Namespace) -> int:
    from .replay import geometry

    found = geometry(options.allocator, options.cpus, options.sizes)
    if options.format == "json":
        _print(to_json(found))
        return DONE
    columns = ["size", "objects_per_slab", "pages_per_slab", "wasted_bytes"]
    _print(render([Table("", columns, [[one[name] for name in columns] for one in found])], options.format))
    return DONE


def _layout(options: argparse.Namespace) -> int:
    from . import layout

    if options.svg is not None:
        _writable(options.svg)
    found = layout.run(options.allocator, options.script)
    if options.svg is not None:
        from .layout_svg import picture

        with whole_file(options.svg) as part:
            part.write_text(picture(found))
    _print(to_json(found) if options.format == "json" else layout.draw(found))
    return DONE
