"""The parsers: one for each verb, with an example.

What a word may be is words.py's to say. Nothing heavy is loaded: this module is part of every command line.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from typing import Any, NoReturn

from .. import __version__
from ..base.errors import UserError
from . import completion, diff_verb, inspect_verb, live_verbs, recording, sample_verb, study_verb, sweep_verb, tune_verb, verbs, who_verbs
from . import kernel_verbs as commands
from .words import add_format, add_machine, add_verb, buffers, count, cpus, duration, file, new_file, specs, thread_counts

STATUSES = """\
exit status:
  0  done
  1  a regression was found, where asked to look for one
  2  wrong usage or input
  3  done, but the trace or core file is incomplete, a booted kernel's log
     tells of trouble, or runs of a sweep failed
  4  a privilege or a tool is missing; the message says which, and how to get it
  130  interrupted: Ctrl-C, SIGTERM, SIGHUP
"""

MOST_RECORDED_CPUS = 1 << 16  # a trace has 16 bits for one
PAGE_SIZES = tuple(4096 << shift for shift in range(5))

SCRIPT = """\
cpus 2                    the machine; also: nodes N
cache inode 400           also: align=N ctor hwcache rcu nomerge
alloc a..h inode cpu=1    objects a to h of a cache; also: node=N
kmalloc x1..x3 100        three of 100 bytes
free b d x2               also: cpu=N
show some title           draws memory here, and goes on
shrink                    also: drain CPU; tick SECONDS
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and that doesn't pass over a full disk."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self._negative_number_matcher = re.compile(r"-\d")  # `--memory -1G` is a wrong size, not a missing one

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """Of the whole command line."""
    top = Parser(
        prog="slabyard",
        description="Which kernel allocator suits this workload, what it costs in time, memory and\nfragmentation, and why.",
        epilog=STATUSES + "\nslabyard VERB --help tells more, with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"slabyard {__version__}")
    parent = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    example = "slabyard list\n  slabyard list --format json"
    add_format(add_verb(parent, "list", "the allocators and their tunables", verbs.list_allocators, example))
    for add in (
        _record, _top, inspect_verb.add, _import, _info, who_verbs.add_export, _replay, _compare, diff_verb.add, tune_verb.add,
        sweep_verb.add, study_verb.add, _threads, _run, sample_verb.add, _geometry, _layout, _kernel, completion.add,
    ):  # fmt: skip
        add(parent)
    return top


def _record(parent: Any) -> None:
    verb = add_verb(
        parent, "record", "record every kernel allocation while a command runs, or for a while", recording.record_command,
        "slabyard record -o make.parquet -- make -j2\n  slabyard record -o machine.parquet --duration 30\n"
        "  slabyard record -g -o t.parquet --cgroup system.slice/nginx.service -- ls",
        "Needs perf, tracefs and the right to trace (root). Records the whole machine. Ctrl-C ends the command and keeps what "
        "was recorded. Ends with the command's status.",
    )  # fmt: skip
    verb.add_argument("-o", "--output", type=new_file, required=True, metavar="T.parquet", help="the trace to write")
    verb.add_argument(
        "--duration", type=duration, metavar="TIME", help="stop after this time, as in 30, 500ms or 10m, and end the command, if any"
    )
    verb.add_argument("-g", dest="stacks", action="store_true", help="also record the kernel's stack of each event (a larger trace)")
    verb.add_argument(
        "--cgroup", metavar="NAME", help="record only this control group's tasks, and start the command in it; the trace is then incomplete"
    )
    verb.add_argument("--buffers", type=buffers, metavar="SIZE", help="trace buffer of each CPU (default: by the free memory)")
    verb.usage = "slabyard record [options] -o T.parquet -- CMD...\n       slabyard record [options] -o T.parquet --duration TIME"


def _top(parent: Any) -> None:
    verb = add_verb(
        parent, "top", "the caches of the running kernel or of a process, by how much they grow", live_verbs.show_top,
        "slabyard top\n  slabyard top --call-sites\n  slabyard top -p 4711\n  slabyard top --interval 1m --count 1 --format json",
        "Needs the right to read /proc/slabinfo (root), or to trace the process. Ctrl-C ends it.",
    )  # fmt: skip
    verb.add_argument("-p", dest="process", type=count(2**31 - 1), metavar="PID", help="the heaps of this process, which uses slabyard")
    verb.add_argument("--interval", type=duration, default=2.0, metavar="TIME", help="time between readings (default: 2 s)")
    verb.add_argument("--count", type=count(10**9 - 1), metavar="N", help="readings (default: until Ctrl-C)")
    verb.add_argument(
        "--sort", choices=("growth", "rate", "size", "objects", "name"), default="growth",
        help="growth since the start, rate of the last interval, size in KiB, objects or name (default: growth)",
    )  # fmt: skip
    verb.add_argument("--lines", type=count(10**6), metavar="N", help="rows of a table (default: as many as fit the screen, else 20)")
    verb.add_argument(
        "--call-sites", action="store_true",
        help="also show which functions allocate: traced for 50 ms of each interval (tracefs); live bytes by /proc/allocinfo, if any",
    )  # fmt: skip
    verb.add_argument("--format", choices=("text", "json"), default="text", help="output format; json: one object per line (default: text)")


def _import(parent: Any) -> None:
    verb = add_verb(
        parent, "import", "make a trace of a capture by perf, tracefs, trace-cmd, Perfetto, LTTng or heaptrack", verbs.import_capture,
        "slabyard import perf.data -o t.parquet\n  slabyard import perf.data.2026* -o t.parquet\n"
        "  slabyard import trace.txt -o t.parquet --snapshot end=DIR:after",
    )  # fmt: skip
    verb.add_argument(
        "captures", type=file, nargs="+", metavar="CAPTURE",
        help="perf.data (also a folder of perf record, and its stream), trace.dat, heaptrack's file, or text of perf script, tracefs, "
        "trace-cmd, Perfetto or babeltrace, compressed or not; - for standard input; several are parts of one capture",
    )  # fmt: skip
    verb.add_argument("-o", "--output", type=new_file, metavar="T.parquet", help="the trace to write (default: the capture's name, here)")
    verb.add_argument("--force", action="store_true", help="overwrite a file that is no earlier import of the same capture")
    verb.add_argument(
        "--snapshot", action="append", default=[], metavar="NAME=DIR:SUFFIX",
        help="the kernel's figures at the mark NAME (or `end`): DIR/slabinfo.SUFFIX and its siblings",
    )  # fmt: skip
    verb.add_argument(
        "--cpus", type=count(MOST_RECORDED_CPUS), metavar="N", help="CPUs of the recorded machine, if the capture does not tell"
    )
    verb.add_argument(
        "--page-size", type=int, choices=PAGE_SIZES, metavar="BYTES", help="page size of the recorded machine, if the capture does not tell"
    )


def _info(parent: Any) -> None:
    example = (
        "slabyard info t.parquet\n  slabyard info t.parquet --caches --call-sites --sort growth\n"
        "  slabyard info t.parquet --pinned --to peak\n  slabyard info /proc/slabinfo"
    )
    verb = add_verb(
        parent, "info", "what a trace holds and who holds it, or a dump of slabinfo, slabtop, allocinfo", verbs.describe_trace, example,
        "Of several dumps in a file the last one is shown, with its growth since the first.",
    )  # fmt: skip
    verb.add_argument("trace", type=file, metavar="FILE")
    who_verbs.add_views(verb)
    add_format(verb)


def _replay(parent: Any) -> None:
    verb = add_verb(
        parent, "replay", "one trace under one allocator", verbs.replay_trace,
        "slabyard replay t.parquet --allocator slub\n  slabyard replay t.parquet --allocator slob:fit=best --format json\n"
        "  slabyard replay t.parquet --allocator slob:fit=best,log_every=1000 --log -\n"
        "  slabyard replay t.parquet --allocator slub --cost-functions 10\n"
        "  slabyard replay t.parquet --allocator slub --proc buddyinfo\n"
        "  slabyard replay t.parquet --allocator slab --slabinfo --sort c",
    )  # fmt: skip
    verb.add_argument("trace", type=file, metavar="T.parquet")
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...], malloc:system or malloc:LIB.so")
    verb.add_argument("--runs", type=count(1000), metavar="N", help="timed repetitions (default: 1; intervals from 3 on, of 95%% from 6)")
    verb.add_argument("--caches", action="store_true", help="also show each cache's slabs")
    verb.add_argument(
        "--log", type=new_file, metavar="FILE", help="write what the policy logs (slob: searches, with log_every=N); - for standard error"
    )
    verb.add_argument(
        "--proc", choices=("buddyinfo", "pagetypeinfo", "slabinfo"),
        help="print only the free lists or the caches at the end, in the form of this file of /proc",
    )  # fmt: skip
    verb.add_argument("--slabinfo", action="store_true", help="print only the caches at the end, as slabtop does")
    verb.add_argument(
        "--sort", choices=tuple("abclvnopsu"), metavar="KEY",
        help="order of --slabinfo, by slabtop's keys: a active objects, b objects per slab, c cache size, l slabs, v active slabs, "
        "n name, o objects (default), p pages per slab, s object size, u use",
    )  # fmt: skip
    _costs(verb)
    add_machine(verb)
    add_format(verb)


def _compare(parent: Any) -> None:
    verb = add_verb(
        parent, "compare", "several allocators on traces, or on a command", verbs.compare_allocators,
        "slabyard compare a.parquet b.parquet --report report.html\n"
        "  slabyard compare a.parquet --allocators slub,slub:max_order=0\n"
        "  slabyard compare -- make -j2",
        "Replays each trace under each allocator, times them interleaved, ranks them.",
    )  # fmt: skip
    verb.add_argument("traces", type=file, nargs="*", metavar="T.parquet")
    verb.add_argument(
        "--allocators", type=specs, metavar="A,B,...",
        help="specs, separated by commas (default: every allocator, SLOB with each of its fits)",
    )  # fmt: skip
    verb.add_argument(
        "--runs", type=count(1000), default=6, metavar="N", help="timed repetitions (default: 6, the fewest for a 95%% interval)"
    )
    verb.add_argument("--warmup", type=count(1000, 0), default=0, metavar="N", help="untimed repetitions first (default: 0)")
    verb.add_argument(
        "--jobs", type=count(256), default=1, metavar="N", help="exact passes at once; timed passes run one by one (default: 1)"
    )
    verb.add_argument("--report", type=new_file, metavar="FILE.html", help="write a report, one self-contained page")
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="write the result records")
    _costs(verb)
    diff_verb.add_baseline(verb)
    add_machine(verb)
    add_format(verb)
    verb.usage = "slabyard compare [options] T.parquet...\n       slabyard compare [options] -- CMD..."


def _threads(parent: Any) -> None:
    verb = add_verb(
        parent, "threads", "real threads on one heap, or on a malloc", verbs.run_threads,
        "slabyard threads --allocator slub --workload larson --threads 1..4\n"
        "  slabyard threads --allocators slub,malloc:system --workload pipe --threads 2\n"
        "  slabyard threads t.parquet --allocators slub,slab\n"
        "  slabyard threads --list",
        "Runs each workload under each allocator, interleaved. A trace is replayed by a thread for each recorded CPU.",
    )  # fmt: skip
    verb.add_argument("trace", type=file, nargs="?", metavar="T.parquet", help="replay this trace (workload trace)")
    verb.add_argument(
        "--allocator", "--allocators", dest="allocators", type=specs, metavar="A,B,...",
        help="policy[:tunable=value,...], malloc:system, malloc:LIB.so",
    )  # fmt: skip
    verb.add_argument("--workload", metavar="W,...", help="workloads of --list (default with a trace: trace)")
    verb.add_argument("--threads", type=thread_counts, default=[], metavar="N", help="2, 1..4 or 1,2,8 (default: 1, or a trace's CPUs)")
    verb.add_argument("--runs", type=count(1000), default=6, metavar="N", help="timed runs (default: 6, the fewest for a 95%% interval)")
    verb.add_argument("--warmup", type=count(1000, 0), default=0, metavar="N", help="untimed runs first (default: 0)")
    verb.add_argument(
        "--operations", type=count(10**9 - 1), metavar="N",
        help="objects that each thread takes (default: the workload's); a trace is run 10,000 times at most",
    )  # fmt: skip
    verb.add_argument("--size", metavar="BYTES", help="object size, as in 64 or 16-256 (default: the workload's)")
    verb.add_argument("--batch", type=count(1 << 24), metavar="N", help="objects held at once (default: the workload's)")
    verb.add_argument("--caches", action="store_true", help="objects of one size come from a cache of their own")
    verb.add_argument("--pin", action="store_true", help="each thread stays on one processor, in turn")
    verb.add_argument("--list", action="store_true", help="list the workloads")
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="write the result records")
    add_format(verb)
    verb.usage = "slabyard threads [options] --allocators A,B --workload W [T.parquet]"


def _run(parent: Any) -> None:
    verb = add_verb(
        parent, "run", "a command on slabyard's malloc", verbs.run_command,
        "slabyard run -- sqlite3 test.db .dump\n  slabyard run --allocator slub:cpu_partial=8 --stats -- python3 program.py",
        "Its exit status and signals are passed through; SIGINT and SIGQUIT go to the command from the terminal alone. "
        "Statistics go to standard error.",
    )  # fmt: skip
    verb.add_argument("--allocator", default="yard", metavar="SPEC", help="policy[:tunable=value,...] (default: yard)")
    verb.add_argument("--stats", action="store_true", help="show at the end what each process of the command asked malloc for")
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="write the statistics (implies --stats)")
    verb.add_argument(
        "--check", nargs="?", const="all", metavar="LETTERS",
        help="name bugs: writes outside of objects and after a free, wrong frees, leaks (all of them, or by LETTERS: docs/debugging.md)",
    )  # fmt: skip
    verb.add_argument(
        "--sample", nargs="?", const="on", metavar="N", help="put one allocation in N on guard pages, to name bugs (default: 100,000)"
    )
    verb.usage = "slabyard run [options] -- CMD..."


def _geometry(parent: Any) -> None:
    verb = add_verb(
        parent, "geometry", "slab geometry by object size", verbs.show_geometry,
        "slabyard geometry --allocator slub --cpus 2 64 192 2048\n  sudo slabyard geometry --allocator slub --running",
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC")
    verb.add_argument("--cpus", type=cpus, metavar="N", help="present CPUs (default: this machine's)")
    verb.add_argument("sizes", type=count(1 << 22), nargs="*", metavar="SIZE", help="final object sizes in bytes, as slabinfo's objsize")
    verb.add_argument(
        "--running", action="store_true",
        help="in place of sizes: show where figures differ from the running kernel's caches (/sys/kernel/slab, which needs root); "
        "status 1 if any does",
    )  # fmt: skip
    add_format(verb)


def _layout(parent: Any) -> None:
    verb = add_verb(
        parent, "layout", "draws memory after a script of allocations", verbs.draw_layout,
        "slabyard layout --allocator slub script.txt\n\na script:\n" + textwrap.indent(SCRIPT, "  "),
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...]")
    verb.add_argument("script", type=file, metavar="SCRIPT", help="commands, one a line; - for standard input")
    verb.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    verb.add_argument("--svg", type=new_file, metavar="FILE.svg", help="also draw a picture")


def _kernel(parent: Any) -> None:
    verb = add_verb(
        parent, "kernel", "Linux itself, built on an allocator and booted", verbs.no_kernel_verb,
        "slabyard kernel run --allocator slub --workload hackbench\n  slabyard kernel compare",
    )  # fmt: skip
    commands.add(verb.add_subparsers(dest="kernel_verb", metavar="VERB", parser_class=Parser))


# ---- What several have -------------------------------------------------------------------------------------------


def _costs(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--cost", action="store_true", help="also count instructions and cache misses of an operation; needs valgrind")
    verb.add_argument("--cost-functions", type=count(10_000), metavar="N", help="the same, and record the N functions that cost most")
