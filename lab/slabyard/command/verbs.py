"""What the verbs do: one function for each, which takes the options of its parser (parsers.py) and returns the exit status.

A verb prints its result on standard output, whole or not at all, and what else the user should know on standard error. Outputs that cannot
be written are refused before the work for them is done. What takes long to load is loaded by the verb that needs it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import programs
from ..base.errors import DONE, REGRESSION, UserError
from ..base.files import check_outputs, export_json, is_special, same_file, to_json, whole_file, write_text
from ..base.table import Cell, Table, render, results
from ..base.terminal import Progress, note, visible
from .diff_verb import Baseline, describe_dump
from .status import completeness
from .who_verbs import show_views, wants_views
from .words import check_caches

if TYPE_CHECKING:
    from ..replay.workload import Options, Workload
    from ..results import threads
    from ..results.compare import Plan
    from ..results.records import Record
    from ..trace.file import Metadata
    from ..trace.snapshots import SlabLine


def _print(text: str) -> None:
    sys.stdout.write(text)


def list_allocators(options: argparse.Namespace) -> int:
    from ..replay.allocators import policies

    found = policies()
    _print(_list_text(found) if options.format == "text" else results(found, options.format, _list_tables))
    return DONE


def _list_tables(found: list[dict[str, Any]]) -> list[Table]:
    tables = [Table("", ["allocator", "what it is", "paper"], [[one["name"], one["summary"], one["paper"]] for one in found])]
    for one in found:
        if one["tunables"]:
            rows: list[list[Cell]] = [[item["name"], str(item["default"]), _range(item), item["meaning"]] for item in one["tunables"]]
            tables.append(Table(one["name"], ["tunable", "default", "range", "meaning"], rows))
    presets: list[list[Cell]] = [
        [f"{one['name']}:{preset['name']}", preset["settings"], preset["meaning"]] for one in found for preset in one["presets"]
    ]
    return [*tables, Table("Presets", ["allocator", "settings", "meaning"], presets)]


def _list_text(found: list[dict[str, Any]]) -> str:
    lines = []
    for one in found:
        lines += [one["name"], f"  {one['summary']}"]
        for paper in one["paper"].split("; "):
            lines += textwrap.wrap(paper, 80, initial_indent="  ", subsequent_indent="    ")
        lines += _tunables_text(one["tunables"]) or ["  no tunables"]
        for preset in one["presets"]:
            head = f"  {one['name']}:{preset['name']} is {one['name']}:{preset['settings']}: {preset['meaning']}"
            lines += textwrap.wrap(head, 80, subsequent_indent="    ", break_on_hyphens=False)
        lines.append("")
    lines += ["malloc:system, malloc:/path/lib.so", "  the object events through a malloc library", ""]
    return "\n".join(lines)


def _tunables_text(tunables: list[dict[str, Any]]) -> list[str]:
    """`name=default` and the range; below them the meaning."""
    lines = []
    for item in tunables:
        lines.append(f"    {item['name']}={item['default']}  ({_range(item)})")
        lines += textwrap.wrap(item["meaning"], 80, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return lines


def _range(item: dict[str, Any]) -> str:
    range_ = ", ".join(item["choices"]) if item.get("choices") else f"{item['min']} to {item['max']}"
    return f"auto, {range_}" if item["default"] == "auto" else range_


def report_trace(output: Path, metadata: Metadata) -> int:
    """Says what a new trace holds; the exit status of the verb."""
    note(f"{output}: {metadata.extent}")
    return completeness({str(output): metadata.incomplete})


def import_capture(options: argparse.Namespace) -> int:
    from ..capture.importer import import_trace, read_snapshot
    from .recording import check_import

    sources = [str(capture) for capture in options.captures]
    output = options.output
    if "-" in sources and sys.stdin is None:
        raise UserError("standard input is closed, so there is no capture in it; send one there, or name a file")
    if output is None:
        if sources[0] == "-":
            raise UserError("a capture from standard input needs -o T.parquet")
        output = Path(re.sub(r"(\.(txt|data|dat|gz|xz|lzma|bz2|zst|lz4))+$", "", options.captures[0].name) + ".parquet")
    check_outputs((output,), [capture for capture in options.captures if str(capture) != "-"])
    check_import(output, options.captures[0], options.force)
    snapshots = [read_snapshot(text) for text in options.snapshot]
    metadata = import_trace(sources, output, snapshots, options.cpus, page_size=options.page_size)
    status = report_trace(output, metadata)
    for one in metadata.notes:
        note(one)
    return status


def describe_trace(options: argparse.Namespace) -> int:
    from ..trace import dumps

    wanted = wants_views(options)
    if options.trace.exists() and not options.trace.is_dir():
        if found := dumps.read(options.trace):
            if options.call_sites or options.tasks or options.pinned:
                raise UserError(f"{options.trace}: a dump tells nothing of --call-sites, --tasks and --pinned; a trace does")
            return describe_dump(options.trace, found, options)
        if is_special(options.trace):  # what was read of it is gone
            raise UserError(f"{options.trace}: no dump; a trace is read in any order, so it must be a file, not a pipe or a device")
    from ..trace import info  # loads Arrow, which a dump does without
    from ..trace.file import Trace

    if wanted:
        with Trace(options.trace) as trace:
            show_views(trace, options)
            return completeness({str(options.trace): trace.metadata.incomplete})
    about = info.describe(options.trace)
    most_caches = None if options.format == "csv" else info.SHOWN_CACHES  # notes on what is not shown are no csv
    _print(results(about, options.format, lambda about: info.tables(about, most_caches)))
    return completeness({str(options.trace): about["incomplete"]})


def machine_options(options: argparse.Namespace) -> Options:
    """What was given of the simulated machine, by the options of words.add_machine."""
    from ..replay.workload import Options

    return Options(options.cpus, options.nodes, options.memory, options.start, allow_failures=options.allow_failures)


def replay_trace(options: argparse.Namespace) -> int:
    from ..replay.workload import Workload
    from ..report import comparison
    from ..results import records
    from ..trace.snapshots import parse_slabinfo

    if options.log is not None and str(options.log) != "-":
        check_outputs((options.log,), (options.trace,))
    if options.proc and options.slabinfo:
        raise UserError("--proc and --slabinfo each print one thing; give one of them (--proc slabinfo is the file itself)")
    for name in ("log", "caches", "runs", "cost", "cost_functions"):
        if getattr(options, name) and (options.proc or options.slabinfo):
            raise UserError(f"--{name.replace('_', '-')} goes with a replay that prints its measures; leave out --proc and --slabinfo")
    check_caches(options.caches, options.format)
    if options.sort and not options.slabinfo:
        raise UserError("--sort goes with --slabinfo")
    if options.proc and options.format != "text":
        raise UserError("--proc prints a file as the kernel does; for --format leave it out, or give --slabinfo in its place")
    if options.slabinfo:
        return _slabinfo(options)
    if options.proc:
        with Workload(options.trace, machine_options(options)) as workload:
            _note_without_effect([options.allocator], workload.metadata)
            text = workload.proc(options.allocator, options.proc)
            _print(visible(text) + "\n")
            if options.proc == "slabinfo":
                _note_shared_pages(options.allocator, parse_slabinfo(text))
            return completeness({str(options.trace): workload.metadata.incomplete})
    counts = _counts_cost(options)
    with Workload(options.trace, machine_options(options)) as workload, Progress(2 + counts + (options.runs or 1)) as progress:
        _note_without_effect([options.allocator], workload.metadata)
        exact = _exact(workload, options.allocator, options.log)
        progress.step(f"{workload.name}: exact figures")
        cost = workload.cost(options.allocator, options.cost_functions or 0) if counts else None
        samples = []
        for turn in range(options.runs or 1):
            progress.step(f"{workload.name}: timed run {turn + 1} of {options.runs or 1}")
            samples.append(workload.timed(options.allocator))
        latency = workload.latency(options.allocator)
        record = records.of_replay(workload, options.allocator, exact, records.summarise(samples, latency), cost)
        incomplete = workload.metadata.incomplete
    _print(results(record, options.format, lambda one: comparison.details(one, options.caches), lambda one: comparison.flat([one])))
    return completeness({str(options.trace): incomplete})


def _counts_cost(options: argparse.Namespace) -> bool:
    """Whether costs are to be counted. UserError where that is not possible, before anything is done."""
    from ..replay import cost

    if not options.cost and not options.cost_functions:
        return False
    cost.check()
    return True


def _slabinfo(options: argparse.Namespace) -> int:
    from ..replay.workload import Workload
    from ..report import slabtop
    from ..trace.snapshots import parse_slabinfo

    with Workload(options.trace, machine_options(options)) as workload:
        _note_without_effect([options.allocator], workload.metadata)
        lines = parse_slabinfo(workload.proc(options.allocator, "slabinfo"))
        incomplete = workload.metadata.incomplete
    letter = options.sort or "o"
    if options.format == "text":
        _print(visible(slabtop.text(lines, letter)))
    else:
        _print(results(slabtop.as_json(lines, letter), options.format, lambda found: [slabtop.table(found)]))
    _note_shared_pages(options.allocator, lines)
    return completeness({str(options.trace): incomplete})


def _note_shared_pages(spec: str, lines: Sequence[SlabLine]) -> None:
    from ..report import slabtop

    if slabtop.shares_pages(lines):
        note(f"the caches of {spec} share their pages: slabs of one cache cannot be told, and kmallocs are in none")


def _note_without_effect(specs: Sequence[str], metadata: Metadata, path: Path | None = None) -> None:
    """Tells of tunables that a spec sets and that change nothing beside the rest of it. `path`: of one trace among others."""
    from ..replay.allocators import set_in, without_effect
    from ..replay.scratch import kernel_version

    for spec in specs:
        given = set_in(spec)
        idle = [name for name in without_effect(spec, kernel_version(metadata)) if name in given] if given else []
        if idle:
            note(f"{f'{path}: ' if path else ''}{spec}: {' and '.join(idle)} {'have' if idle[1:] else 'has'} no effect beside the rest")


def _exact(workload: Workload, spec: str, log: Path | None) -> dict[str, Any]:
    """The exact figures of a replay; what the policy logs goes to the file `log`, `-` being standard error."""
    if log is None:
        return workload.exact(spec)
    shown = str(log) == "-"
    with workload.temporary_file() if shown else whole_file(log) as path:
        exact = workload.exact(spec, path)
        if not path.stat().st_size:
            note(f"{spec} logs nothing here; slob does, with log_every=N")
        if shown:
            with path.open(errors="replace") as file:
                shutil.copyfileobj(file, sys.stderr)
    return exact


def compare_allocators(options: argparse.Namespace) -> int:
    import tempfile

    if options.command is not None and options.traces:
        raise UserError("compare takes traces, or a command after --, not both")
    if not options.command and not options.traces:
        raise UserError("compare needs a trace, or a command after --, as in: slabyard compare -- make")
    repeated = [path for at, path in enumerate(options.traces) if any(same_file(path, other) for other in options.traces[:at])]
    if repeated:
        raise UserError(f"{repeated[0]} is named twice")
    inputs = [*options.traces, *([options.baseline] if options.baseline else [])]
    check_outputs((options.report, options.export_json, options.junit), inputs)
    plan, baseline = _plan(options), Baseline(options)
    if options.command is None:
        return _compare_traces(options, plan, options.traces, baseline)
    from ..capture.record import check
    from .recording import record_for_compare

    check(options.command)
    folder = Path(tempfile.mkdtemp(prefix="slabyard-"))
    trace = folder / (re.sub(r"[^\w.+-]+", "-", Path(options.command[0]).name) + ".parquet")
    try:
        record_for_compare(options.command, trace)
        status = _compare_traces(options, plan, [trace], baseline)
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
    from ..replay.allocators import check_spec
    from ..results import compare

    specs = options.allocators if options.allocators is not None else compare.ALLOCATORS
    for spec in specs:
        check_spec(spec)
    counts = _counts_cost(options)
    plan = compare.Plan(specs, options.runs, options.warmup, options.jobs, machine_options(options), counts, options.cost_functions or 0)
    plan.options.check()
    return plan


def _compare_traces(options: argparse.Namespace, plan: Plan, traces: list[Path], baseline: Baseline) -> int:
    from ..report import comparison
    from ..results import compare
    from ..trace.file import Trace

    incomplete = {}
    for path in traces:
        with Trace(path) as trace:
            incomplete[str(path)] = trace.metadata.incomplete
            _note_without_effect(plan.allocators, trace.metadata, path)
    with Progress(compare.steps(len(traces), plan)) as progress:
        found = compare.compare(traces, plan, progress)
    whole = baseline.records is None or options.format in ("text", "md")  # of json and csv there can be one alone
    deliver(options, found, comparison.tables, comparison.flat, options.report, whole)
    if baseline.records is not None and whole:
        _print("\n")
    status = baseline.told(found)
    return status if status == REGRESSION else completeness(incomplete)


def deliver(
    options: argparse.Namespace, found: list[Record], tables: Callable[[Any], Sequence[Table]], flat: Callable[[Any], Table],
    report: Path | None = None, shown: bool = True,
) -> None:  # fmt: skip
    """Prints result records where they are to be shown, and writes those files of them that were asked for."""
    export_json(options.export_json, found)
    if report:
        from ..report.page import write_report

        write_report(found, report)
    if shown:
        _print(results(found, options.format, tables, flat))
    if report:
        note(f"wrote {report}")


def run_threads(options: argparse.Namespace) -> int:
    from ..report import concurrency
    from ..results import threads

    known = threads.workloads()
    if options.list:
        _print(results(known, options.format, _named_rows(["workload", "what it does"], ["name", "what"])))
        return DONE
    plan = _thread_plan(options, [one["name"] for one in known])
    with Progress(threads.steps(plan)) as progress:
        found = threads.run(plan, progress)
    deliver(options, found, concurrency.tables, concurrency.flat)
    return DONE


def _named_rows(columns: Sequence[str], names: Sequence[str]) -> Callable[[list[dict[str, Any]]], list[Table]]:
    """One table of what was found, with a column for each of these names."""
    return lambda found: [Table("", columns, [[one[name] for name in names] for one in found])]


def _thread_plan(options: argparse.Namespace, known: list[str]) -> threads.Plan:
    """What to run. UserError for what cannot be, before anything is run."""
    from ..results import threads

    if options.allocators is None:
        raise UserError("threads needs --allocator SPEC, or --allocators A,B; slabyard list shows them")
    if options.workload is None and options.trace is None:
        raise UserError(f"threads needs --workload, of {', '.join(known)}; or a trace")
    wanted = [threads.TRACE] if options.workload is None else [name for name in options.workload.split(",") if name]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise UserError(f"no workload is called {unknown[0] if unknown else options.workload!r}; there are {', '.join(known)}")
    if len(set(wanted)) < len(wanted):
        raise UserError(f"--workload names {next(name for name in wanted if wanted.count(name) > 1)} twice")
    if options.trace is not None and threads.TRACE not in wanted:
        raise UserError(f"{options.trace}: only the workload trace replays a trace")
    check_outputs((options.export_json,), () if options.trace is None else (options.trace,))
    plan = threads.Plan(
        options.allocators, wanted, options.threads, options.runs, options.warmup, options.operations, options.size, options.batch,
        options.caches, options.pin, options.trace,
    )  # fmt: skip
    threads.check(plan)
    return plan


def run_command(options: argparse.Namespace) -> int:
    from ..results import run

    if not options.command:
        raise UserError("run needs a command after --: slabyard run -- CMD...")
    programs.check_command(options.command[0])
    wanted = {"SLABYARD_DEBUG": options.check, "SLABYARD_SAMPLE": options.sample}
    settings = {name: value for name, value in wanted.items() if value is not None}
    if not options.stats and options.export_json is None:
        run.replace(options.command, options.allocator, settings)
    check_outputs((options.export_json,))
    return run.end_as(run.measure(options.command, options.allocator, options.export_json, settings))


def show_geometry(options: argparse.Namespace) -> int:
    from ..replay.allocators import geometry

    if options.running == bool(options.sizes):
        raise UserError("geometry is about object sizes in bytes, or --running: give one of them")
    if options.running:
        return _running_geometry(options)
    cpus = options.cpus or min(os.cpu_count() or 1, programs.limits().cpus)
    found = geometry(options.allocator, cpus, options.sizes)
    columns = ["size", "objects_per_slab", "pages_per_slab", "wasted_bytes", "sheaf_capacity"]
    _print(results(found, options.format, _named_rows(columns, columns)))
    return DONE


def _running_geometry(options: argparse.Namespace) -> int:
    """Of every cache of the running kernel."""
    from ..replay import running_geometry as geometry

    if options.cpus:
        raise UserError("--running is about this machine with its CPUs; leave out --cpus")
    found = geometry.measure(options.allocator)
    differing = any(one.differing for one in found)
    if options.format == "text" and not differing:
        _print(f"{geometry.tables(found)[0].title}\n")
    else:
        _print(to_json(geometry.as_json(found)) if options.format == "json" else render(geometry.tables(found), options.format))
    return REGRESSION if differing else DONE


def draw_layout(options: argparse.Namespace) -> int:
    from ..replay import layout

    check_outputs((options.svg,), (options.script,))
    found = layout.run(options.allocator, options.script)
    if options.svg is not None:
        from ..report.layout_svg import picture

        write_text(options.svg, picture(found))
    _print(to_json(found) if options.format == "json" else layout.draw(found))
    return DONE


def no_kernel_verb(_options: argparse.Namespace) -> int:
    """`kernel` alone."""
    raise UserError("kernel needs a verb: build, run, compare, bench, fidelity, flame, list or clean; see slabyard kernel --help")
