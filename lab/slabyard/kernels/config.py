"""A kernel's configuration: fragments of ours over the kernel's own tinyconfig, and the check that all of it was granted.

The fragments are the `.config` files beside this module. Kconfig drops without a word what a tree doesn't know or what depends on
something missing, and a kernel without tracing or without the allocator that was asked for would be found out late, or
never; so every line is looked up in the result.
"""

from __future__ import annotations

import importlib.resources
import re

from ..base.errors import UserError
from .kinds import Kind
from .versions import DEFAULT, KNOWN, VERSIONS

ARCHITECTURES = ("um", "x86_64", "arm64")
DEBUG = {"um": ("debug.config",), **dict.fromkeys(ARCHITECTURES[1:], ("debug.config", "debug-qemu.config"))}


SMALL = {"x86_64": ("small.config",)}  # of a study's kernels, for the architectures that have one


def fragment(arch: str, kind: Kind, debug: bool, linux: str = DEFAULT, small: bool = False) -> str:
    """The lines that a kernel's configuration shall have, the last of several for one name counting."""
    names = ("common.config", f"{arch}.config", *(DEBUG[arch] if debug else ()), *(SMALL[arch] if small else ()))
    texts = [importlib.resources.files("slabyard.kernels").joinpath(name).read_text("utf-8") for name in names]
    version = VERSIONS[linux]
    lines = [line for text in texts for line in wanted(text)]
    lines += [*version.config, *(version.debug if debug else ()), *kind.config[linux]]
    return "".join(f"{line}\n" for line in {_name(line): line for line in lines}.values())


def _name(line: str) -> str:
    """The option that a line sets or unsets."""
    return line.removeprefix("# ").partition(" ")[0].partition("=")[0]


def wanted(text: str) -> list[str]:
    """The lines of a fragment that set or unset something."""
    return [line for line in text.splitlines() if re.match(r"(# )?CONFIG_\w+(=| is not set)", line)]


def check(wanted_text: str, result: str) -> None:
    """UserError for the first lines that the kernel's configuration has not granted."""
    lines = set(result.splitlines())
    # What depends on something absent is not mentioned at all, which is as good as unset.
    absent = {line for line in wanted(wanted_text) if line.startswith("#") and f"{line.split()[1]}=" not in result}
    refused = [line for line in wanted(wanted_text) if line not in lines | absent]
    if refused:
        more = f" and {len(refused) - 3} more options" if len(refused) > 3 else ""
        raise UserError(f"the kernel source refuses {', '.join(refused[:3])}{more}; the lab's kernels are Linux {KNOWN}")
