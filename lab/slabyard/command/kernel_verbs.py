"""`slabyard kernel VERB`: build, run, compare, bench, fidelity, flame, list, clean.

One function for each verb, one parser for each, with an example; what is common to them (which source, which architecture, which
machine) stands once. A kernel that is not there yet is built on the way, so `run` and `compare` are one command on a machine that
has never seen one. What takes long to load is loaded by the verb that needs it: this module is part of every command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import stacks
from ..base.errors import DONE, INCOMPLETE, REGRESSION, UserError
from ..base.files import check_folder, check_outputs, write_text
from ..base.table import Cell, Table, counted, results
from ..base.terminal import Progress, note
from ..kernels import config, kinds, versions, workloads
from .verbs import deliver
from .words import add_format, add_verb, check_caches, count, file, new_file, size, specs

if TYPE_CHECKING:
    from ..kernels import build, machine, run
    from ..results.records import Record

TRACE_BUFFER = 64 << 20

SPEC = "as in slub, slub:max_order=0 with kernel parameters, or slabyard:slqb"
ALLOCATORS = "specs, separated by commas (default: Linux's own, and every policy of slabyard)"


def add(verbs: Any) -> None:
    """Adds the verbs."""
    verb = add_verb(
        verbs, "build", "build a kernel on an allocator, once", _build,
        "slabyard kernel build --allocator slub\n  slabyard kernel build --allocator slabyard --linux 6.12\n"
        "  slabyard kernel build --allocator slab --arch x86_64 --source linux-6.1.tar.xz",
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC", help=f"one of {', '.join(kinds.KINDS)}")
    _source(verb)

    verb = add_verb(
        verbs, "run", "boot a kernel, run a workload on it, measure it", _run,
        "slabyard kernel run --allocator slub --workload hackbench\n"
        "  slabyard kernel run --allocator slab --workload boot --trace boot.parquet\n"
        "  slabyard kernel run --allocator slabyard:slob --workload 'ls -R /usr' --runs 6",
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC", help=SPEC)
    verb.add_argument("--workload", required=True, metavar="W", help=f"{', '.join(workloads.WORKLOADS)}, or a command of this machine")
    verb.add_argument("--runs", type=count(1000), default=1, metavar="N", help="boots (default: 1; intervals from 3 on, of 95%% from 6)")
    verb.add_argument("--trace", type=new_file, metavar="T.parquet", help="also record every allocation since the start (in one more boot)")
    verb.add_argument(
        "--trace-buffer", type=size, default=TRACE_BUFFER, metavar="SIZE", help="part of the guest's memory, for --trace (default: 64M)"
    )
    verb.add_argument("--caches", action="store_true", help="show all caches and functions, not only the largest")
    _counted(verb)
    verb.add_argument(
        "-o", "--output", type=file, metavar="DIR", help="write the guest's files (meminfo, slabinfo, its log, ...) to a folder"
    )
    _booted(verb)

    verb = add_verb(
        verbs, "compare", "several kernels under several workloads", _compare,
        "slabyard kernel compare\n  slabyard kernel compare --allocators slub,slabyard:slqb --workloads spike,find",
        "Boots them in turn, interleaved, and ranks them.",
    )  # fmt: skip
    verb.add_argument("--allocators", type=specs, metavar="A,B,...", help=ALLOCATORS)
    verb.add_argument("--workloads", default="hackbench", metavar="W,...", help="names, separated by commas (default: hackbench)")
    verb.add_argument("--workload", metavar="CMD", help="in place of --workloads: one workload, which may be a command")
    verb.add_argument("--runs", type=count(1000), default=6, metavar="N", help="boots of each (default: 6, the fewest for a 95%% interval)")
    verb.add_argument("--warmup", type=count(1000, 0), default=0, metavar="N", help="first boots that do not count (default: 0)")
    _counted(verb)
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="write the result records")
    verb.add_argument("--report", type=new_file, metavar="FILE.html", help="write a report, one self-contained page")
    _booted(verb)

    verb = add_verb(
        verbs, "bench", "cycles of allocations and frees inside kernels", _bench,
        "slabyard kernel bench\n  slabyard kernel bench --allocators slub,slabyard:slub --export-json b.json",
        "Boots kernels in turn, each of which measures its own allocator before any program runs.",
    )  # fmt: skip
    verb.add_argument("--allocators", type=specs, metavar="A,B,...", help=ALLOCATORS)
    verb.add_argument("--runs", type=count(1000), default=6, metavar="N", help="boots of each (default: 6, the fewest for a 95%% interval)")
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="write the result records")
    _booted(verb)

    verb = add_verb(
        verbs, "fidelity", "compare replays with the kernels that they replay", _fidelity,
        "slabyard kernel fidelity\n  slabyard kernel fidelity --allocators slub,slabyard:slqb --workloads find",
        "Boots each kernel with a trace, replays it, and compares memory at the end. A kernel on slabyard also logs its calls, and its "
        "replay must hold the same pages (exit status 1: it does not).",
    )  # fmt: skip
    verb.add_argument("--allocators", type=specs, metavar="A,B,...", help=ALLOCATORS)
    verb.add_argument("--workloads", default="hackbench", metavar="W,...", help="names, separated by commas (default: hackbench)")
    verb.add_argument(
        "--trace-buffer", type=size, default=TRACE_BUFFER, metavar="SIZE", help="part of the guest's memory for the trace (default: 64M)"
    )
    _booted(verb)

    verb = add_verb(
        verbs, "flame", "where a kernel's time goes", _flame,
        "slabyard kernel flame --allocator slub --workload hackbench --report slub.html\n"
        "  slabyard kernel flame --allocator slob --workload hackbench --folded a.folded\n"
        "  slabyard kernel flame --allocator slub --workload spike --speedscope slub.json",
        "Samples the kernel's stacks: of a user-mode kernel with this machine's perf, under QEMU in the guest.",
    )  # fmt: skip
    verb.add_argument("--allocator", required=True, metavar="SPEC", help=SPEC)
    verb.add_argument("--workload", required=True, metavar="W", help="as for run")
    verb.add_argument("--runs", type=count(1000), default=1, metavar="N", help="boots (default: 1; intervals from 3 on, of 95%% from 6)")
    verb.add_argument("--folded", type=new_file, metavar="FILE", help="write the stacks, one a line with its count")
    verb.add_argument("--speedscope", type=new_file, metavar="FILE.json", help="write the stacks for speedscope")
    verb.add_argument("--report", type=new_file, metavar="FILE.html", help="draw them as an icicle, one self-contained page")
    _booted(verb)

    verb = add_verb(verbs, "list", "the kernels that are built", _list, "slabyard kernel list")
    add_format(verb)

    verb = add_verb(
        verbs, "clean", "remove build files, but keep the kernels", _clean, "slabyard kernel clean\n  slabyard kernel clean --all"
    )
    verb.add_argument("--all", action="store_true", help="also remove the kernels")


def _source(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--arch", choices=config.ARCHITECTURES, default="um", help="um: user-mode Linux (default); x86_64, arm64: under QEMU")
    verb.add_argument(
        "--linux", choices=tuple(versions.VERSIONS), help=f"version (default: that of a --source TREE, else {versions.DEFAULT})"
    )
    verb.add_argument("--source", type=file, metavar="PATH", help="Linux, a tree or a tarball (default: Debian's linux-source-VERSION)")
    verb.add_argument("--jobs", type=count(256), metavar="N", help="compilers at once (default: one for each CPU)")
    verb.add_argument("--debug", action="store_true", help="with the kernel's own checks: lists, sleeping in atomic, locks")


def _counted(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--cost", action="store_true",
        help="also count the kernel's instructions and cache misses, in one more boot, of one CPU without --cpus (not for um)",
    )  # fmt: skip


def _booted(verb: argparse.ArgumentParser) -> None:
    """The options of all verbs that boot kernels: of the machine, of the kernel, of the output."""
    verb.add_argument("--cpus", type=count(16), metavar="N", help="CPUs of the guest (default: 1 for um, else 4)")
    verb.add_argument("--nodes", type=count(8), metavar="N", help="memory nodes of the guest (default: 1)")
    verb.add_argument("--memory", type=size, metavar="SIZE", help="memory of the guest (default: 512M for um, else 1G)")
    verb.add_argument(
        "--accelerator",
        choices=("kvm", "tcg"),
        default="",
        help="accelerator of QEMU (default: kvm if the processor has it, else tcg, in software)",
    )
    verb.add_argument("--timeout", type=count(86400), default=600, metavar="S", help="seconds that a boot may take (default: 600)")
    _source(verb)
    add_format(verb)


# ---- What they share -------------------------------------------------------------------------------------------------------------


def _kernel(options: argparse.Namespace, spec: kinds.Spec, progress: Progress | None, outlined: bool = False) -> build.Kernel:
    """The kernel for a spec, built on the way where it is not there."""
    from ..kernels import build, source

    found = source.find(options.source, options.linux)
    return build.build(build.Request(found, options.arch, spec.kind, options.debug, outlined), progress, options.jobs)


def _machine(options: argparse.Namespace) -> machine.Hardware:
    """The machine to boot on. UserError where there can be none like it, or this one lacks what boots it."""
    from ..kernels import machine, tools

    default = machine.default_hardware(options.arch)
    nodes = options.nodes or default.nodes
    cpus = options.cpus or (default.cpus if options.arch == "um" else max(default.cpus, nodes))
    hardware = machine.Hardware(options.memory or default.memory, cpus, nodes, options.accelerator)
    hardware.check(options.arch)
    tools.boot(options.arch)
    return hardware


def _counting_machine(options: argparse.Namespace) -> machine.Hardware | None:
    """The machine to count on, of one CPU where none is asked for; None: nothing is to be counted. UserError where it cannot be."""
    from ..kernels import cost, machine

    if not options.cost:
        return None
    if options.arch == "um":
        raise UserError("--cost counts what a kernel executes under QEMU; give --arch x86_64 or arm64 too")
    cost.check(options.arch)
    nodes = options.nodes or 1
    return machine.Hardware(options.memory or machine.default_hardware(options.arch).memory, options.cpus or nodes, nodes, "tcg")


def _spec(options: argparse.Namespace) -> kinds.Spec:
    """The one that --allocator names."""
    from ..kernels import source

    return kinds.parse(options.allocator, source.version_of(options.source, options.linux))


def _specs(options: argparse.Namespace) -> list[kinds.Spec]:
    """Those that --allocators names, or all that there are."""
    from ..kernels import source

    linux = source.version_of(options.source, options.linux)
    texts = kinds.everything(linux) if options.allocators is None else options.allocators
    return [kinds.parse(spec, linux) for spec in texts]


def _jobs(names: Sequence[str], arch: str) -> list[workloads.Job]:
    found = [workloads.parse(name, arch) for name in names if name]
    if not found:
        raise UserError("--workloads names no workload")
    repeated = [job.name for at, job in enumerate(found) if job in found[:at]]
    if repeated:
        raise UserError(f"--workloads names {repeated[0]} twice")
    return found


def _check_buffer(size: int, hardware: machine.Hardware) -> None:
    """UserError for a trace's buffer that would leave the guest too little memory."""
    if size >= hardware.memory // 2:
        raise UserError("--trace-buffer must be less than half the guest's memory; give it more with --memory")


def _status_of_log(allocator: str, workload: str, trouble: Sequence[str]) -> int:
    """INCOMPLETE, and a note, where a kernel's log tells of trouble: its figures may be those of a kernel that no longer works."""
    if not trouble:
        return DONE
    lines = list(dict.fromkeys(trouble))
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    note(f"{workload} on {allocator}: the kernel's log tells of trouble: {lines[0]}{more}")
    return INCOMPLETE


def _status_of_trace(trace: str, incomplete: str | None) -> int:
    """INCOMPLETE, and a note, for a trace that lacks events."""
    if not incomplete:
        return DONE
    note(f"{trace} is incomplete: {incomplete} (--trace-buffer makes room for more)")
    return INCOMPLETE


def _worst(found: Sequence[Record]) -> int:
    """The worst status of several records' logs."""
    return max(_status_of_log(one["run"]["allocator"], one["run"]["workload"], one["kernel"]["trouble"]) for one in found)


# ---- Verbs -----------------------------------------------------------------------------------------------------------------------


def _build(options: argparse.Namespace) -> int:
    with Progress(0) as progress:
        kernel = _kernel(options, _spec(options), progress)
    print(kernel.image)
    return DONE


def _run(options: argparse.Namespace) -> int:
    from ..kernels import compare, machine, run

    check_outputs((options.trace,))
    check_caches(options.caches, options.format)
    counted_on = _counting_machine(options)
    if options.output is not None:
        check_folder(options.output)
    spec, job, hardware = _spec(options), workloads.parse(options.workload, options.arch), _machine(options)
    if options.trace is not None:
        _check_buffer(options.trace_buffer, hardware)
    found: list[run.Run] = []
    trouble: list[str] = []
    incomplete = None
    with Progress(options.runs + (options.trace is not None) + options.cost) as progress:
        kernel = _kernel(options, spec, progress)
        plan = machine.Plan(spec, kernel, job, hardware, options.timeout)
        progress.stage(f"{job.name} on {spec.text}")
        for turn in range(options.runs):
            found.append(run.once(plan))
            progress.step(f"{job.name} on {spec.text}: boot {turn + 1} of {options.runs}")
        if options.trace is not None:
            traced = run.once(machine.Plan(spec, kernel, job, hardware, options.timeout, options.trace_buffer), options.trace)
            assert traced.metadata is not None
            incomplete = traced.metadata.incomplete
            trouble += traced.trouble
            note(f"{options.trace}: {traced.metadata.extent}")
        costs = None
        if counted_on is not None:
            costs = run.count(plan, counted_on)
            progress.step(f"{job.name} on {spec.text}: counted")
    record = run.record(plan, found, costs)
    if options.output is not None:
        _write(found[-1], options.output)
    details = results(record, options.format, lambda one: compare.details(one, options.caches), lambda one: compare.flat([one]))
    print(details, end="")
    trouble = [*record["kernel"]["trouble"], *trouble]
    return max(_status_of_log(spec.text, job.name, trouble), _status_of_trace(str(options.trace), incomplete))


def _write(done: run.Run, folder: Path) -> None:
    """What the guest left, as files: meminfo.before and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in done.texts.items():
        when, _, file = name.rpartition("/")
        if name != "end":
            write_text(folder / (f"{file}.{when}" if when else name), text)
    note(f"wrote {folder}")


def _compare(options: argparse.Namespace) -> int:
    from ..kernels import compare, machine

    check_outputs((options.report, options.export_json))
    counted_on = _counting_machine(options)
    specs, hardware = _specs(options), _machine(options)
    names = [options.workload] if options.workload else options.workloads.split(",")
    jobs = _jobs(names, options.arch)
    with Progress(len(specs) * len(jobs) * (options.warmup + options.runs + options.cost)) as progress:
        kernels = [_kernel(options, spec, progress) for spec in specs]
        plans = [
            machine.Plan(spec, kernel, job, hardware, options.timeout) for job in jobs for spec, kernel in zip(specs, kernels, strict=True)
        ]
        found = compare.compare(plans, options.runs, options.warmup, progress, counted_on)
    deliver(options, found, compare.tables, compare.flat, options.report)
    return _worst(found)


def _bench(options: argparse.Namespace) -> int:
    from ..kernels import bench

    check_outputs((options.export_json,))
    specs, hardware = _specs(options), _machine(options)
    with Progress(len(specs) * options.runs) as progress:
        plans = [bench.plan(spec, _kernel(options, spec, progress), hardware, options.timeout) for spec in specs]
        found = bench.bench(plans, options.runs, progress)
    deliver(options, found, bench.tables, bench.flat)
    return _worst(found)


def _fidelity(options: argparse.Namespace) -> int:
    import tempfile

    from ..kernels import fidelity, machine

    specs, hardware = _specs(options), _machine(options)
    jobs = _jobs(options.workloads.split(","), options.arch)
    _check_buffer(options.trace_buffer, hardware)
    agreements: list[fidelity.Agreement] = []
    replayed: list[fidelity.LogReplay] = []
    ours = sum(bool(spec.kind.chooser) for spec in specs)
    with Progress(len(jobs) * (len(specs) + ours)) as progress, tempfile.TemporaryDirectory(prefix="slabyard-fidelity-") as folder:
        progress.stage(f"traces of {counted(len(specs), 'kernel')}")
        for spec in specs:
            kernel = _kernel(options, spec, progress)
            for job in jobs:
                plan = machine.Plan(spec, kernel, job, hardware, options.timeout)
                agreements.append(fidelity.measure(plan, options.trace_buffer, Path(folder) / "t.parquet"))
                progress.step(f"{job.name} on {spec.text}: traced and replayed")
                if spec.kind.chooser:
                    replayed.append(fidelity.replay_log(plan))
                    progress.step(f"{job.name} on {spec.text}: its log is replayed")
    whole = {"traces": [asdict(one) for one in agreements], "calls": [asdict(one) for one in replayed]}
    print(results(whole, options.format, lambda _: [*fidelity.tables(agreements), *fidelity.log_tables(replayed)]), end="")
    both: list[fidelity.Agreement | fidelity.LogReplay] = [*agreements, *replayed]
    statuses = [_status_of_log(one.allocator, one.workload, one.trouble) for one in both]
    statuses += [_status_of_trace(f"the trace of {one.workload} on {one.allocator}", one.incomplete) for one in agreements]
    return max(*statuses, DONE if all(one.agrees for one in replayed) else REGRESSION)


def _flame(options: argparse.Namespace) -> int:
    from ..kernels import flame, icicle, machine, tools

    check_outputs((options.folded, options.speedscope, options.report))
    if options.arch == "um":
        tools.require([tools.PERF], "a flame graph")
    spec, job, hardware = _spec(options), workloads.parse(options.workload, options.arch), _machine(options)
    profile, boots = flame.Profile(), []
    with Progress(options.runs) as progress:
        kernel = _kernel(options, spec, progress, outlined=True)
        plan = machine.Plan(spec, kernel, job, hardware, options.timeout)
        progress.stage(f"{job.name} on {spec.text}")
        for turn in range(options.runs):
            found = flame.sample(plan)
            boots.append(flame.shares(found, spec.kind.slow))
            profile.add(found)
            progress.step(f"{job.name} on {spec.text}: boot {turn + 1} of {options.runs}")
    title = f"{spec.text} under {job.name}: Linux {kernel.about['release']} for {kernel.arch}"
    _write_text(options.folded, stacks.folded(profile.stacks))
    _write_text(options.speedscope, stacks.speedscope(profile.stacks, title))
    _write_text(options.report, icicle.page(profile, spec.kind.slow, title))
    about = {"allocator": spec.text, "workload": job.name, "samples": profile.samples}
    about |= {"samples_of_programs": profile.of_programs, "samples_lost": profile.lost, "trouble": profile.trouble}
    about |= {"shares": flame.shares(profile, spec.kind.slow), "boots": boots}
    print(results(about, options.format, lambda _: flame.tables(profile, spec.kind.slow, title, boots)), end="")
    return max(_status_of_log(spec.text, job.name, profile.trouble), INCOMPLETE if profile.lost else DONE)


def _write_text(path: Path | None, text: str) -> None:
    if path is not None:
        write_text(path, text)
        note(f"wrote {path}")


def _list(options: argparse.Namespace) -> int:
    from ..kernels import build

    names = ["arch", "allocator", "release", "debug", "outlined", "seconds"]
    found = [{"key": kernel.key, "image": str(kernel.image), **kernel.about} for kernel in build.built()]
    rows: list[list[Cell]] = [[one.get(name) for name in [*names, "image"]] for one in found]
    print(results(found, options.format, lambda _: [Table("", [*names, "image"], rows, whole=True)]), end="")
    return DONE


def _clean(options: argparse.Namespace) -> int:
    from ..kernels import cache

    for part in ("builds", "sources", *(("kernels", "guests") if options.all else ())):
        for entry in sorted(cache.folder(part).iterdir()):
            if entry.suffix != ".lock":
                cache.remove(entry)
    return DONE
