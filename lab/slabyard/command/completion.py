"""Completion of the command line by the shell, on argcomplete.

    slabyard completion bash|zsh|fish     prints what the shell is to read

The shell then starts slabyard at each TAB, with the words so far in its environment, and argcomplete answers from the parsers: verbs,
options, choices, file names. What it cannot know is said here: allocators with their tunables, and workloads of threads. The replay
program tells these, so that they are those of this very version.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..base import programs
from ..base.errors import DONE, UserError
from ..kernels import workloads
from .words import add_verb

SHELLS = ("bash", "zsh", "fish")


def add(parent: Any) -> None:
    verb = add_verb(
        parent, "completion", "print a shell's completion script for slabyard", _print_code,
        "slabyard completion bash > ~/.local/share/bash-completion/completions/slabyard\n"
        "  slabyard completion zsh > ~/.zfunc/_slabyard\n"
        "  slabyard completion fish > ~/.config/fish/completions/slabyard.fish",
    )  # fmt: skip
    verb.add_argument("shell", choices=SHELLS)


def _print_code(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["slabyard"], shell=options.shell), end="")
    return DONE


def asked() -> bool:
    """Whether a shell asks for completions."""
    return "_ARGCOMPLETE" in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell and ends the process."""
    import argcomplete

    for one in _parsers(parser):
        one.error = _give_up  # type: ignore[assignment]
        for action in one._actions:
            if action.dest in ("allocator", "allocators") and not action.choices:
                action.completer = _specs  # type: ignore[attr-defined]
            elif action.dest in ("workload", "workloads"):
                action.completer = _thread_workloads if one.prog == "slabyard threads" else _kernel_workloads  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _parsers(one)


def _give_up(message: str) -> None:
    """The words so far are wrong or not all there; argcomplete goes on with what it has read."""
    raise SystemExit(message)


def _specs(prefix: str, **_: object) -> list[str]:
    """Of `policy:tunable=value,tunable=value,policy`: what may stand after the last colon or comma, with all before it."""
    known = {one["name"]: one for one in _listed(programs.REPLAY)}
    cut = max(prefix.rfind(","), prefix.rfind(":")) + 1
    before, (name, equals, _value) = prefix[:cut], prefix[cut:].partition("=")
    policies = re.findall(r"(?:^|,)(\w+):", before)
    policy = known.get(policies[-1]) if policies else None
    tunables = {item["name"]: item for item in policy["tunables"]} if policy else {}
    if equals:
        item = tunables.get(name, {})
        found = [f"{name}={value}" for value in item.get("choices") or [item.get("default", "")]]
    else:
        found = [one["name"] for one in policy["presets"]] if policy and before.endswith(":") else []
        found += [f"{tunable}=" for tunable in tunables]
        found += [] if before.endswith(":") else [*known, "malloc:"]
    return [before + one for one in ([*found, "system"] if before.endswith("malloc:") else found)]


def _thread_workloads(prefix: str, **_: object) -> list[str]:
    return _after_comma(prefix, [one["name"] for one in _listed(programs.THREADS)])


def _kernel_workloads(prefix: str, **_: object) -> list[str]:
    return _after_comma(prefix, workloads.WORKLOADS)


def _after_comma(prefix: str, names: Iterable[str]) -> list[str]:
    return [prefix[: prefix.rfind(",") + 1] + name for name in names]


def _listed(program: str) -> list[dict[str, Any]]:
    try:
        return programs.run_json(program, "--list")
    except UserError:  # no completion is no error
        return []
