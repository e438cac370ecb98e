"""gdb commands for programs that use slabyard: sy caches, sy whatis, sy slab, sy log.

gdb loads this file with libslabyard-malloc.so where it may (add-auto-load-safe-path), or by `source`. The commands ask the command
`slabyard inspect` about the process that gdb has stopped, or about the core file that it looks at; gdb reads nothing itself. A process
that only gdb may look into, or that runs elsewhere, is written to a temporary core file first.
"""

import re
import subprocess
import tempfile

import gdb

MISSING = 4  # exit status: the right to look into the process is missing


def _core_file():
    """The core file that gdb looks at; None: it has a process."""
    found = re.search(r"Local core dump file:\s+`(.*)', file type", gdb.execute("info files", to_string=True))
    return found.group(1) if found else None


def _is_here():
    """Whether the process runs on this machine, and not behind gdbserver."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return connection is None or connection.type == "native"


def _ask(target, words):
    try:
        done = subprocess.run(["slabyard", "inspect", target, *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise gdb.GdbError("the command slabyard is not in PATH; these commands ask it") from None
    return done.returncode, done.stdout, done.stderr


def _ask_copy(words):
    with tempfile.TemporaryDirectory(prefix="slabyard-") as folder:
        core = f"{folder}/core"
        gdb.execute(f"generate-core-file {core}", to_string=True)
        return _ask(core, words)


def _tell(*words):
    core, process = _core_file(), gdb.selected_inferior().pid
    if core is None and process == 0:
        raise gdb.GdbError("there is no process and no core file: run the program, or load a core file")
    if core or _is_here():
        status, out, err = _ask(core or str(process), words)
    else:
        status, out, err = MISSING, "", ""
    if status == MISSING and core is None:
        status, out, err = _ask_copy(words)
    gdb.write(out)
    if not out:
        raise gdb.GdbError(err.strip() or f"slabyard ended with status {status}")


def _address(text):
    """The value of an expression, as an address."""
    if not text:
        raise gdb.GdbError("give an address, as an expression of the program's")
    try:
        value = gdb.parse_and_eval(text)
        return hex(int(value.cast(gdb.lookup_type("unsigned long"))) & ((1 << 64) - 1))
    except gdb.error as error:
        raise gdb.GdbError(f"{text}: {error}") from error


class Sy(gdb.Command):
    """What is in slabyard's heaps: sy caches, sy whatis ADDRESS, sy slab ADDRESS, sy log [ADDRESS]."""

    def __init__(self):
        super().__init__("sy", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Caches(gdb.Command):
    """The heaps and their caches: objects, slabs, memory, fragmentation."""

    def __init__(self):
        super().__init__("sy caches", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        _tell()


class Whatis(gdb.Command):
    """Whose an address is: heap, slab, object, neighbours, who allocated and freed it. sy whatis EXPRESSION."""

    def __init__(self):
        super().__init__("sy whatis", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        _tell("--address", _address(argument))


class Slab(gdb.Command):
    """All that is in the slab of an address. sy slab EXPRESSION."""

    def __init__(self):
        super().__init__("sy slab", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        _tell("--slab", _address(argument), "--lines", "100000")


class Log(gdb.Command):
    """The last allocations and frees, or those of objects at an address. sy log [EXPRESSION]."""

    def __init__(self):
        super().__init__("sy log", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        _tell("--log", *(["--address", _address(argument)] if argument else []))


for command in (Sy, Caches, Whatis, Slab, Log):
    command()
