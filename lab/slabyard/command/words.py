"""What the words of a command line may be: each function makes a value of an option's text, or tells what the text should have been.

Also how a verb gets its parser, and the options that several verbs have.

A word that cannot be is refused here, before a verb does anything. How many CPUs and memory nodes there can be is the
library's to say (programs.limits). Nothing heavy is loaded: this module is part of every command line.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.table import FORMATS

MOST_BUFFERS = 2 << 30  # bytes for each CPU, of perf's


def file(text: str) -> Path:
    """A file's or folder's name. An empty one, as of a variable that is not set, would be the folder that we are in."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; name a file")
    return Path(text)


def new_file(text: str) -> Path:
    """The name of a file to be written. One that ends in a slash is a folder's, which Path would forget."""
    if text.endswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} names a folder; name a file in it")
    return file(text)


def count(most: int, least: int = 1) -> Callable[[str], int]:
    """A type of words: numbers within these bounds."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
        return int(text)

    return parse


def cpus(text: str) -> int:
    return count(programs.limits().cpus)(text)


def nodes(text: str) -> int:
    return count(programs.limits().nodes)(text)


def thread_counts(text: str) -> list[int]:
    """`2`, `1..4`, `1,2,8`: numbers of threads."""
    counts: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:\.\.(\d{1,4}))?", item)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of threads, as in 2, 1..4 or 1,2,8")
        counts += [count for count in range(low, high + 1) if count not in counts]
    return counts


def size(text: str) -> int:
    """A size of memory in bytes: `512M`, `64G`."""
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)(i?B)?", text, re.IGNORECASE)
    found = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()] if match else 0
    if not 1 << 20 <= found <= 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no size from 1M to 1T (as in 512M or 64G)")
    return found


def buffers(text: str) -> int:
    """A size of perf's buffer for each CPU, in bytes. Of more than MOST_BUFFERS perf records nothing, and says nothing of it."""
    found = size(text)
    if found > MOST_BUFFERS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than perf takes for each CPU, which is 2G")
    return found


def duration(text: str) -> float:
    """A time in seconds, with a unit if need be: `30`, `1.5`, `500ms`, `10m`, `1h`."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
    digits = text.rstrip("msh")
    try:
        seconds = float(digits) * units[text[len(digits) :]]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 < seconds <= 366 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds, as in 30, 500ms or 10m")
    return seconds


def specs(text: str) -> list[str]:
    """Specs out of a list separated by commas, which also separate a spec's tunables: `slub,slob:fit=best,log_every=9`."""
    found: list[str] = []
    for item in text.split(","):
        if found and "=" in item and ":" not in item:
            found[-1] += f",{item}"
        elif item.strip():
            found.append(item.strip())
    if not found:
        raise UserError("--allocators names no allocator; slabyard list shows them")
    repeated = [spec for at, spec in enumerate(found) if spec in found[:at]]
    if repeated:
        raise UserError(f"--allocators names {repeated[0]} twice")
    return found


def add_verb(
    parent: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int], example: str, more: str = ""
) -> argparse.ArgumentParser:
    """The parser of a new verb; `run` does what it is for."""
    verb: argparse.ArgumentParser = parent.add_parser(
        name, help=summary, description=textwrap.fill(summary[0].upper() + summary[1:] + "." + (f" {more}" if more else ""), 80),
        epilog=f"example:\n  {example}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.set_defaults(run=run)
    return verb


def add_format(verb: argparse.ArgumentParser) -> None:
    """The option that most verbs have."""
    verb.add_argument("--format", choices=FORMATS, default="text", help="output format (default: text)")


def add_machine(verb: argparse.ArgumentParser) -> None:
    """The options of the simulated machine."""
    verb.add_argument("--cpus", type=cpus, metavar="N", help="CPU slots (default: as recorded)")
    verb.add_argument("--nodes", type=nodes, metavar="N", help="memory nodes (default: as recorded)")
    verb.add_argument(
        "--memory", type=size, metavar="SIZE", help="memory of the simulated machine, as in 512M or 64G (default: as recorded)"
    )
    verb.add_argument(
        "--allow-failures", action="store_true", help="count requests that find no memory, rather than refuse the trace (status 2)"
    )
    verb.add_argument(
        "--start",
        choices=("recorded", "empty"),
        help="memory at the start of the trace (default: as recorded, if the trace has a snapshot)",
    )


def check_caches(asked: bool, form: str) -> None:
    """UserError where caches are asked for in the form that has a row for each run alone."""
    if asked and form == "csv":
        raise UserError("--caches goes with text and md; csv has one row, of the measures, and json has the caches always")
