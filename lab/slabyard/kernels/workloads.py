"""What a guest does between its two snapshots.

A workload is a shell function for the guest, what it needs beside busybox, and what prepares it. Each has a name and follows a
paper or the recorded traces (traces/record.sh); any other text is a command of the user's, whose program is taken from this machine
with its libraries. What is measured is one program; a workload of several steps is a shell that runs them, and so are several
workloads in one boot (`hackbench+spike`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import UserError
from . import foreign, tools

HEADERS = "/usr/include/linux"
APPLETS = (  # what a guest's busybox is called by
    "sh", "awk", "cat", "cp", "cut", "date", "dd", "df", "diff", "dmesg", "echo", "ed", "false", "find", "fold", "grep", "gunzip", "gzip",
    "head", "id", "ls", "md5sum", "mkdir", "mke2fs", "mount", "mv", "nl", "paste", "poweroff", "printf", "ps", "reboot", "rev", "rm",
    "rmdir", "sed", "seq", "sleep", "sort", "sync", "tail", "tar", "tee", "tr", "true", "umount", "uniq", "wc",
)  # fmt: skip
_FILEIO = "sysbench fileio --file-num=128 --file-total-size=32M --file-block-size=16K --file-test-mode=rndwr"


@dataclass(frozen=True)
class Workload:
    """A workload by its name. `command` is what is measured, in the guest's shell words; `files` are copied to the guest (globs)."""

    name: str
    title: str
    command: str
    programs: tuple[tools.Tool, ...] = ()
    prepare: str = "true"
    after: str = "true"
    files: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # of guest_files, as /slabyard/NAME
    spike: bool = False
    expected: str = "^$"  # lines of the kernel's log that are no trouble here


_MAKE = (tools.MAKE, tools.ASSEMBLER, tools.LINKER)
_ON_EXT4 = "{ grep -q ' /mnt ' /proc/mounts || { mke2fs -q /dev/ram0 && mount -t ext4 /dev/ram0 /mnt; }; }"
_SINGLE = (
    Workload(
        "hackbench", "40 processes that send each other 40,000 messages over sockets (Yoo's flame graphs)",
        "hackbench -g 1 -l 100", (tools.HACKBENCH,),
    ),
    Workload("pipes", "the same over pipes", "hackbench -g 1 -l 100 -p", (tools.HACKBENCH,)),
    Workload(
        "threads", "the same by threads, over sockets and over pipes",
        "sh -c 'hackbench -g 1 -l 50 -T && hackbench -g 1 -l 50 -T -p'", (tools.HACKBENCH,),
    ),
    Workload(
        "spike", "256 processes at once, with a socket each (Bonwick 1994, section 5.2)",
        "/slabyard/spike 1", spike=True,
    ),
    Workload(
        "find", "a process for every file of a folder (Bonwick 1994, section 5.2)",
        f"find {HEADERS} -maxdepth 1 -name '[ab]*.h' -exec file {{}} ;", (tools.FILE,),
        files=(f"{HEADERS}/[ab]*.h", "/usr/lib/file/magic.mgc", "/usr/share/misc/magic.mgc", "/etc/magic"),
    ),
    Workload(
        "fileio", "128 files of 32 MiB in all, 1,000 random writes by 16 threads (Ferreira et al. 2015, section 2.1)",
        f"sh -c '{_FILEIO} prepare && {_FILEIO} --threads=16 --events=1000 --time=0 run && {_FILEIO} cleanup'", (tools.SYSBENCH,),
    ),
    Workload(
        "memory", "sysbench's memory test: 1 GiB written in blocks of 1 KiB by 16 threads",
        "sysbench memory --threads=16 --memory-block-size=1K --memory-total-size=1G run", (tools.SYSBENCH,),
    ),
    Workload(
        "tar", "a tree packed, unpacked and removed three times on ext4 on a ram disk",
        "sh -c 'for turn in 1 2 3; do tar c -C /usr/include linux | tar x -C /mnt && rm -r /mnt/linux || exit 1; done'",
        prepare=_ON_EXT4, after="umount /mnt", files=(f"{HEADERS}/**/*.h",),
    ),
    Workload(
        "oom", "a program that takes memory until it is killed for it, then hackbench",
        "sh -c 'tail /dev/zero; hackbench -g 1 -l 20'", (tools.HACKBENCH,), expected="Out of memory: Kill|tail: page allocation failure",
    ),
    Workload("boot", "nothing: the kernel starts and is done", "true"),
)  # fmt: skip
_OF_BONWICK = (
    Workload(
        "kenbus", "6 users who edit, compile, mail, sort, search, archive, format and list (Bonwick 1994, sections 5.2 and 5.3)",
        "sh /slabyard/kenbus 6 1", _MAKE, scripts=("kenbus", "project"),
    ),
    Workload("desk", "one of these users, alone", "sh /slabyard/kenbus 1 1", _MAKE, scripts=("kenbus", "project")),
    Workload(
        "make", "24 files assembled and linked, four at a time (Bonwick 1994, section 5.3)",
        "make -s -j4 -C /tmp/project", _MAKE, prepare="sh /slabyard/project /tmp/project 24", scripts=("project",),
    ),
    Workload(
        "database", "300 transactions of accounts, tellers and branches, on ext4 on a ram disk (Bonwick 1994, section 5.3)",
        "sqlite3 -init /dev/null -bail /mnt/bank '.read /tmp/transactions'", (tools.SQLITE,), scripts=("database",),
        prepare=f"{_ON_EXT4} && sh /slabyard/database >/tmp/tables && sqlite3 -bail /mnt/bank '.read /tmp/tables' && "
        "sh /slabyard/database 300 >/tmp/transactions", after="umount /mnt",
    ),
    Workload(
        "files", "4 clients who look up, read, write, rename and remove 400 files on ext4 on a ram disk (Bonwick 1994, section 5.3)",
        "sh /slabyard/files 4 /mnt", prepare=_ON_EXT4, after="umount /mnt", scripts=("files",),
    ),
    Workload(
        "typing", "32 users who type 10 lines each into shells that answer (Bonwick 1994, section 5.3)",
        "sh /slabyard/typing 32 10", scripts=("typing",),
    ),
)  # fmt: skip


def together(parts: Sequence[Workload], name: str, title: str) -> Workload:
    """Several workloads in one boot, one after the other, up to the first that fails; a trace has a mark after each, by its name."""
    steps = [f"{shlex.join(shlex.split(one.command))} && sh /slabyard/mark {one.name}" for one in parts]
    return Workload(
        name,
        title,
        f"sh -c {shlex.quote(' && '.join(steps))}",
        tuple(dict.fromkeys(tool for one in parts for tool in one.programs)),
        prepare=" && ".join(one.prepare for one in parts),
        after="; ".join(one.after for one in parts),
        files=tuple(dict.fromkeys(pattern for one in parts for pattern in one.files)),
        scripts=tuple(dict.fromkeys(script for one in parts for script in one.scripts)),
        spike=any(one.spike for one in parts),
        expected="|".join(one.expected for one in parts),
    )


_EVERYTHING = together([one for one in _SINGLE if one.name != "boot"], "all", "all of the above, in one boot")
WORKLOADS: Mapping[str, Workload] = {one.name: one for one in (*_SINGLE, _EVERYTHING, *_OF_BONWICK)}


@dataclass(frozen=True)
class Job:
    """A workload in a guest's words, and everything that it takes from this machine; `foreign`: from packages for that architecture."""

    name: str
    command: list[str]
    workload: Workload
    programs: list[Path] = field(default_factory=list)
    foreign: str = ""


def parse(text: str, arch: str = "um") -> Job:
    """A workload by name, several by their names with `+` between, or a command of the user's. UserError when its program is missing."""
    names = text.split("+")
    if all(name in WORKLOADS for name in names):
        parts = [WORKLOADS[name] for name in names]
        workload = parts[0] if len(parts) == 1 else together(parts, text, "")
        return of(workload, arch)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--workload {text}: {str(error).lower()}") from error
    if not words:
        raise UserError(f"--workload names nothing; there are {', '.join(WORKLOADS)}, or give a command")
    name = Path(words[0]).name
    if arch in foreign.MACHINES:
        return Job(name, words, Workload(name, text, text), _foreign_program(words[0], arch), arch)
    program = tools.which(words[0])
    if program is None:
        raise UserError(f"--workload {text}: there is neither a workload nor a program {words[0]}; there are {', '.join(WORKLOADS)}")
    return Job(name, words, Workload(name, text, text), [Path(program)])


def of(workload: Workload, arch: str = "um") -> Job:
    """A workload with its programs. UserError when one is missing."""
    purpose, words = f"the workload {workload.name}", shlex.split(workload.command)
    if arch in foreign.MACHINES:
        return Job(workload.name, words, workload, foreign.programs(workload.programs, arch, purpose), arch)
    tools.require(workload.programs, purpose)
    return Job(workload.name, words, workload, [Path(path) for tool in workload.programs if (path := tools.which(tool.name))])


def _foreign_program(name: str, arch: str) -> list[Path]:
    """A command's program; none where it is busybox's."""
    if name in APPLETS:
        return []
    known = {tool.name: tool for one in WORKLOADS.values() for tool in one.programs}
    if name in known:
        return foreign.programs([known[name]], arch, f"--workload {name}")
    found = foreign.find(name, arch)
    if found is None:
        top = foreign.root(arch)
        raise UserError(f"--workload {name}: there is no such program for {arch}; unpack one, with its libraries, into {top}")
    return [found]
