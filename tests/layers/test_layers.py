"""The rules of layers, sizes and names, read off what was compiled and what was written. Run by ctest.

Layers: the objects of each layer link with those of the layers below it alone. No symbol that an object leaves undefined may be
defined in a layer above its own, or in one beside it. A symbol that no object defines is the C library's or the compiler's.

Size: the headers for programs, and what stands above the core for them, stay small.

Names: C code outside core/policies/ names no policy, neither in an identifier nor in a string, and includes no header from there but
the one by which malloc has the default policy's fast path inline.

    test_layers.py --nm nm --source FOLDER OBJECT...
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Bottom up: a layer, the paths of its sources, and the layers that it links with. Those of one row are beside each other.
CORE = ["platform", "pages", "bugs", "backend", "heaps"]
LIBRARY = [*CORE, "policies", "table", "library"]
PROGRAMS = [*LIBRARY, "lab", "programs"]
LAYERS: dict[str, tuple[str, list[str]]] = {
    "platform": (r"core/platform/", []),
    "pages": (r"core/pages/", CORE[:1]),
    "bugs": (r"core/bug\.c", CORE[:2]),
    "backend": (r"core/backend/", CORE[:3]),
    "heaps": (r"core/(debug/)?\w+\.c", CORE[:4]),
    "policies": (r"core/policies/(?!table\.c)", CORE),  # each by itself, see family()
    "table": (r"core/policies/table\.c", [*CORE, "policies"]),
    "library": (r"library/(debug/\w+|open|spec|wait)\.c", LIBRARY[:-1]),
    "slab API": (r"library/(?!lab/|debug/)", LIBRARY),
    "malloc": (r"malloc/", LIBRARY),
    "lab": (r"library/lab/", LIBRARY),
    "programs": (r"programs/", PROGRAMS[:-1]),
    "replay": (r"replay/", PROGRAMS),
    "threads": (r"threads/", PROGRAMS),
    "import": (r"import/", PROGRAMS),
    "pairs": (r"pairs/", PROGRAMS),
    "inspect": (r"inspect/", PROGRAMS),
}
SHARED = ("general", "node", "node_hardened", "node_trim")  # what several policies have in common
POLICIES = "yard|slub|slqb|slob|bonwick|bsd44|svr4|sunos4"
NAME = re.compile(rf'(?<![a-z])({POLICIES})(?![a-z])|sy__?slab_policy|"slab[":]', re.IGNORECASE)
KERNELS_OWN = re.compile(r"CONFIG_SL[AOU]B(_DEBUG|_TINY)?\b|CPUHP_SLUB_DEAD")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]*policies/[^">]+)[">]', re.MULTILINE)
WITHOUT_POLICIES = [
    "core", "library", "malloc", "replay", "threads", "programs", "import", "pairs", "inspect", "launch", "ports", "include",
]  # fmt: skip
# How many lines these files may have together. Of library/, only what the slab API needs.
SLAB_API = [f"library/{name}.c" for name in ("open", "spec", "kmem", "kmem_log", "mempool", "shrinker", "forks", "rcu")]
MOST_LINES: list[tuple[list[str], int]] = [
    (["include/**/*.h"], 2500),
    (SLAB_API, 2000),
    (["core/policies/slub/*.[ch]"], 2400),
    (["core/policies/yard/*.[ch]"], 2200),
]
INLINED = ("malloc", "core/policies/default.h")


def layer_of(source: str) -> str | None:
    return next((name for name, (pattern, _) in LAYERS.items() if re.match(pattern, source)), None)


def family(source: str) -> str:
    """The policy that a source is of; other sources have none."""
    match = re.match(r"core/policies/(\w+)", source)
    return match.group(1) if match else ""


def source_of(path: str) -> str:
    return re.sub(r".*\.dir/(?:\./)?(.*)\.o$", r"\1", path)


def read_objects(nm: str, paths: list[str]) -> list[tuple[str, set[str], set[str]]]:
    """The source of each object, the symbols it defines for others, and those it wants."""
    text = subprocess.run([nm, "-g", "-o", *paths], check=True, capture_output=True, text=True).stdout
    objects: dict[str, tuple[set[str], set[str]]] = {path: (set(), set()) for path in paths}
    for path, kind, name in re.findall(r"^(.*?\.o):\s*[0-9a-f]*\s+(\w) (\S+)$", text, re.MULTILINE):
        if kind not in "wv":  # what is weak may be absent
            objects[path][kind == "U"].add(name)
    return [(source_of(path), *found) for path, found in objects.items()]


def upward(objects: list[tuple[str, set[str], set[str]]]) -> Iterator[str]:
    """Sources that want symbols of a layer above them, from each one's defined and wanted symbols."""
    definers: dict[str, list[str]] = {}
    for source, defined, _ in objects:
        for name in defined:
            if name.startswith("sy_") or not source.startswith("malloc/"):  # to all others malloc itself is the C library's
                definers.setdefault(name, []).append(source)
    for source, _, wanted in objects:
        for name in sorted(wanted & definers.keys()):
            if not any(may_call(source, definer) for definer in definers[name]):
                yield f"{source} wants {name} of {definers[name][0]}, which is not below it"


def may_call(source: str, definer: str) -> bool:
    layer, other = layer_of(source), layer_of(definer)
    if layer is None or other is None:
        raise SystemExit(f"{source if layer is None else definer} is in no layer that this test knows")
    if layer == other:
        return layer != "policies" or family(definer) in (family(source), *SHARED)
    return other in LAYERS[layer][1]


def code_of(text: str) -> str:
    """Without comments; lines stay where they are."""
    return COMMENT_OR_STRING.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)


def named(path: str, text: str) -> Iterator[str]:
    """Policies that a file names, and headers of policies that it includes."""
    code = code_of(text)
    for header in INCLUDE.findall(code):
        if (path.split("/")[0], header) != INLINED:
            yield f"{path} includes {header}"
    for number, line in enumerate(code.splitlines(), 1):
        if not re.match(r"\s*#\s*include", line) and (match := NAME.search(KERNELS_OWN.sub("", line))):
            yield f"{path}:{number} names the policy {match[0]}"


def all_named(source: Path) -> Iterator[str]:
    for folder in WITHOUT_POLICIES:
        files = [path for path in sorted((source / folder).rglob("*.[ch]*")) if path.suffix in (".c", ".h", ".hpp")]
        if not files:
            yield f"{folder} has no C code"
        for path in files:
            name = str(path.relative_to(source))
            if not name.startswith("core/policies/"):
                yield from named(name, path.read_text())


def too_large(source: Path) -> Iterator[str]:
    for patterns, most in MOST_LINES:
        for pattern in patterns:
            if not any(source.glob(pattern)):
                yield f"{pattern} matches no file"
        lines = sum(path.read_text().count("\n") for pattern in patterns for path in source.glob(pattern))
        if lines > most:
            yield f"{', '.join(patterns)} have {lines} lines, of at most {most}"


def rules_can_fail() -> None:
    """The rules find what they are for."""
    objects: list[tuple[str, set[str], set[str]]] = [
        ("core/pages/a.c", {"low"}, {"high"}),
        ("core/heap.c", {"high"}, {"low"}),
        ("core/policies/slub/a.c", {"one"}, {"other", "low"}),
        ("core/policies/slob/a.c", {"other"}, {"common"}),
        ("core/policies/general.c", {"common"}, set()),
    ]
    assert [line.split()[0] for line in upward(objects)] == ["core/pages/a.c", "core/policies/slub/a.c"]
    code = '/* slub */ int slabyard; // slob\nint sy__slub_x;\nchar *a = "slab", *b = "of a slab /*";\n'
    text = code + '#include "core/policies/slub/slub.h"\n'
    assert [line.split()[-1] for line in named("malloc/a.c", text)] == ["core/policies/slub/slub.h", "slub", '"slab"']
    assert not list(named("malloc/a.c", '#include "core/policies/default.h"\n#ifdef CONFIG_SLUB\n'))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nm", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    rules_can_fail()
    objects = read_objects(options.nm, options.objects)
    missing = LAYERS.keys() - {layer_of(source) for source, _, _ in objects}
    if missing - {"malloc"}:  # builds with sanitizers have no malloc
        print(f"no objects of {', '.join(sorted(missing))}")
        return 1
    wrong = [*upward(objects), *all_named(options.source), *too_large(options.source)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
