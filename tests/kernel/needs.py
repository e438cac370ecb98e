"""What the kernel tests need of this machine, looked for before anything is built: `make test-kernel` begins with it.

One line names all programs and headers that are missing, and how to get them; the exit status is then 4. With `smoke`, only what
the tests of that name need. SLABYARD_KERNEL_ARCHES and SLABYARD_KERNEL_LINUX narrow it as they narrow the tests (boots.py).
"""

from __future__ import annotations

import os
import sys

from slabyard.base.errors import UserError
from slabyard.kernels import foreign, source, tools, versions, workloads
from slabyard.base.terminal import note

ALL = ",".join(versions.VERSIONS)


def check(smoke: bool, arches: list[str], linuxes: list[str]) -> None:
    """UserError where this machine lacks something."""
    command = f"make test-kernel{'-smoke' if smoke else ''}"
    asked = ["um"] if smoke else arches
    wanted = [*tools.BUILD, tools.XZ]
    for arch in asked:
        wanted += [*tools.ARCHITECTURES[arch], *tools.guests(arch)]
    if {*asked} - {*foreign.MACHINES}:
        wanted += [tools.HACKBENCH] if smoke else workloads.WORKLOADS["all"].programs
    wanted += [tools.PERF] if "um" in asked and not smoke else []
    tools.require(dict.fromkeys(wanted), command)
    for arch in asked:
        tools.boot(arch)
        if arch in foreign.MACHINES:
            foreign.programs(workloads.WORKLOADS["all"].programs, arch, command)
    for linux in linuxes:
        source.find(None, linux)


if __name__ == "__main__":
    try:
        asked = {name: os.environ.get(f"SLABYARD_KERNEL_{name}", usual) for name, usual in (("ARCHES", "um,x86_64"), ("LINUX", ALL))}
        check("smoke" in sys.argv[1:], asked["ARCHES"].split(","), asked["LINUX"].split(","))
    except UserError as error:
        note(error.message)
        sys.exit(error.status)
