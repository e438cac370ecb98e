"""slabyard-inspect finds the heaps and caches of a program that is linked with the library. Run by ctest.

test_heaps.py INSPECT PROGRAM SPEC
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OBJECTS, USED = 400, 300
WITHOUT_CACHES = ("bsd44", "svr4", "sunos4", "slob")  # policies whose slabs hold objects of any cache


def ask(tool: str, *words: str) -> dict[str, Any]:
    done = subprocess.run([tool, *words], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> int:
    tool, program, spec = sys.argv[1:]
    with subprocess.Popen([program, spec], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        addresses = [process.stdout.readline().split() for _ in range(2)]
        pid = ["--pid", str(process.pid)]
        heaps = ask(tool, *pid)["heaps"]
        assert len(heaps) == 2, heaps
        for number, name in enumerate(("inode", "dentry")):
            heap, (used, free) = heaps[number], addresses[number]
            settings = ",".join(f"{name}={value}" for name, value in heap["tunables"].items())
            assert f"{heap['policy']}:{settings}" == (spec if ":" in spec else f"{spec}:"), heap
            cache = next(one for one in heap["caches"] if one["name"] == name)
            if heap["policy"] not in WITHOUT_CACHES:
                assert cache["used"] == USED and cache["objects"] >= OBJECTS, cache
            found, gone = (ask(tool, *pid, "--address", address)["address"] for address in (used, free))
            assert found["heap"] == gone["heap"] == heap["address"]
            assert found["part"]["state"] == "in use" and gone["part"]["state"].startswith("free"), (found, gone)
        process.communicate("")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
