"""The exact results of every allocator on every bundled trace, to the byte.

An exact result follows from the trace and the allocator alone, so it changes only with what an allocator does.
tests/data/exact.json has a digest of each. If you change one on purpose, `make exact` writes the file anew, and your commit says
what changed and why.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from slabyard.replay.allocators import policies
from slabyard.replay.workload import Options, Workload
from slabyard.results.compare import ALLOCATORS

ROOT = Path(__file__).parents[2]
DIGESTS = ROOT / "tests/data/exact.json"
TRACES = sorted(path.stem for path in (ROOT / "traces").glob("*.parquet"))


def allocators() -> list[str]:
    """Every policy, and each variant that is compared by default (SLOB's fits)."""
    return sorted({policy["name"] for policy in policies()} | set(ALLOCATORS))


def digests(trace: str) -> dict[str, str]:
    """By allocator, a digest of all that a replay of the trace finds."""
    with Workload(ROOT / f"traces/{trace}.parquet", Options()) as workload:
        found = {spec: json.dumps(workload.exact(spec), sort_keys=True) for spec in allocators()}
    return {spec: hashlib.sha256(text.encode()).hexdigest()[:32] for spec, text in found.items()}


@pytest.mark.parametrize("trace", TRACES)
def test_exact_results_are_those_that_are_recorded(trace: str) -> None:
    recorded = json.loads(DIGESTS.read_text())[trace]
    found = digests(trace)
    changed = sorted(spec for spec in recorded.keys() | found.keys() if recorded.get(spec) != found.get(spec))
    assert not changed, f"other results on {trace} than before: {', '.join(changed)}; if that is meant, run: make exact"


def test_each_bundled_trace_is_recorded() -> None:
    assert sorted(json.loads(DIGESTS.read_text())) == TRACES


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps({trace: digests(trace) for trace in TRACES}, indent=1) + "\n")
    print(f"wrote {DIGESTS.relative_to(ROOT)}")
