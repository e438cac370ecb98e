"""The package, as its users get it.

`make install-library` puts the library into a folder of its own. Programs are then built against that folder alone, as their
authors would do it (pkg-config, CMake; shared and static; C and C++), and run. The README's examples run as they stand there,
except for the place of installation. Run by ctest, which says where compilers and tools are. Ends at the first failure, with the
command's own output.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALLOCATING = ["slab", "gfp", "mm", "mempool", "overflow", "vmalloc"]  # of the kernel's headers
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
SERVED = "served\n"


class Failure(Exception):
    """What did not work, for the reader of the test's output."""


class PackageTest:
    """One installation and what is tried with it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.source: Path = options.source
        self.work: Path = options.work
        self.cmake, self.make, self.pkg_config = options.cmake, options.make, options.pkg_config
        self.cc, self.cxx = options.cc, options.cxx
        self.prefix = self.work / "prefix"
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.work.mkdir(parents=True, exist_ok=True)
        # What a make above us has set is not for the makes that we start.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "LD_", "SLABYARD"))}
        self.environment["PKG_CONFIG_PATH"] = str(self.prefix / "lib/pkgconfig")

    def run(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
        """Standard output. Failure when the status is not 0."""
        variables = {**self.environment, **(environment or {})}
        done = subprocess.run(argv, cwd=self.work, env=variables, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(map(str, argv))}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def expect_served(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        out = self.run(argv, environment)
        if out != SERVED:
            raise Failure(f"{' '.join(map(str, argv))}\nprinted {out!r} in place of {SERVED!r}")

    def flags(self, *options: str) -> list[str]:
        return self.run([self.pkg_config, *options]).split()

    @property
    def libraries(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(self.prefix / "lib")}

    # ---- Installation

    def install(self) -> None:
        """Installs into a stage, as packagers do, and moves that to the prefix: nothing in it may depend on where it was
        made."""
        stage = self.work / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        self.run(
            [
                self.make,
                "-C",
                str(self.source),
                "install-library",
                "PREFIX=/opt/slabyard",
                f"DESTDIR={stage}",
                f"INSTALL_BUILD={self.work}/build",
            ],
            {"CC": self.cc},
        )
        (stage / "opt/slabyard").rename(self.prefix)
        left = [path for path in stage.rglob("*") if not path.is_dir()]
        if left:
            raise Failure(f"installed outside of the prefix: {left}")

    def refuse_spaces(self) -> None:
        argv = [self.make, "-C", str(self.source), "install-library", f"PREFIX={self.work}/a b", f"INSTALL_BUILD={self.work}/build"]
        done = subprocess.run(argv, cwd=self.work, env={**self.environment, "CC": self.cc}, capture_output=True, text=True)
        if not done.returncode or "cannot have spaces" not in done.stderr or (self.work / "a").exists():
            raise Failure(f"{' '.join(argv)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")

    def complete(self) -> None:
        lib, include, man = self.prefix / "lib", self.prefix / "include/slabyard", self.prefix / "share/man"
        headers = self.source / "include/slabyard"
        wanted = [lib / f"libslabyard{kind}{end}" for kind in ("", "-malloc") for end in (".a", ".so")]
        wanted += [lib / "pkgconfig/slabyard.pc", lib / "cmake/slabyard/slabyard-config.cmake"]
        wanted += [include / path.relative_to(headers) for path in headers.rglob("*.h*")]
        wanted += [man / "man7/slabyard.7", man / "man3/sy_alloc.3", man / "man3/sy_free.3", man / "man1/slabyard.1"]
        missing = [str(path) for path in wanted if not path.is_file()]
        if private := [path for path in include.rglob("*.h*") if not (headers / path.relative_to(include)).is_file()]:
            raise Failure(f"installed, and not public: {private}")
        if missing:
            raise Failure(f"not installed: {missing}")
        if (self.prefix / "bin").exists():
            raise Failure("make install-library has installed programs")

    # ---- Programs

    def headers_alone(self) -> None:
        """Each public header can be included on its own, from C and C++, by every compiler that is here, without a warning."""
        include = self.prefix / "include"
        cflags = self.flags("--cflags", "slabyard")
        both = [*WARNINGS, "-fno-exceptions", "-fno-rtti"]  # C++ as embedded programs have it
        ways = [("c", cc, ["-std=c11", *WARNINGS]) for cc in (self.cc, "gcc", "clang")]
        ways += [("c", self.cc, ["-std=gnu89", "-Wall", "-Wextra", "-Werror"])]  # what old kernel code is compiled as
        ways += [("c++", cxx, ["-std=c++17", *more]) for cxx in (self.cxx, "g++", "clang++") for more in (WARNINGS, both)]
        for header in sorted(include.rglob("*.h*")):
            for language, compiler, options in ways:
                if shutil.which(compiler or "") and (language == "c++" or header.suffix == ".h"):
                    program = self.work / f"alone.{language}"
                    program.write_text(f"#include <{header.relative_to(include)}>\nint main(void);\nint main(void) {{ return 0; }}\n")
                    self.run([compiler, "-x", language, *options, *cflags, "-fsyntax-only", str(program)])

    def with_pkg_config(self) -> None:
        source = str(HERE / "user.c")
        cflags = [*WARNINGS, "-std=c11", *self.flags("--cflags", "slabyard")]
        self.run([self.cc, *cflags, source, *self.flags("--libs", "slabyard"), "-o", "user"])
        self.expect_served(["./user"], self.libraries)
        self.run([self.cc, *cflags, "-static", source, *self.flags("--static", "--libs", "slabyard"), "-o", "user-static"])
        self.expect_served(["./user-static"])
        kernel = "-I" + self.run([self.pkg_config, "--variable=kernelincludedir", "slabyard"]).strip()
        self.run([self.cc, kernel, *cflags, str(HERE / "kmem.c"), *self.flags("--libs", "slabyard"), "-o", "kmem"])
        self.expect_served(["./kmem"], {**self.libraries, "SLABYARD": "slab:batchcount=4"})
        self.run([self.cc, str(HERE / "malloc.c"), *self.flags("--libs", "slabyard-malloc"), "-o", "malloc"])
        self.expect_served_by_us(["./malloc"], self.libraries)
        self.run([self.cc, "-static", str(HERE / "malloc.c"), *self.flags("--static", "--libs", "slabyard-malloc"), "-o", "malloc-static"])
        self.expect_served_by_us(["./malloc-static"], {})
        if self.cxx:
            self.run(
                [self.cxx, *WARNINGS, "-std=c++17", *self.flags("--cflags", "slabyard"), str(HERE / "user.cc"),
                 *self.flags("--libs", "slabyard"), "-o", "user-cxx"]
            )  # fmt: skip
            self.expect_served(["./user-cxx"], self.libraries)

    def with_cmake(self) -> None:
        project, build = self.work / "project", self.work / "project-build"
        shutil.rmtree(project, ignore_errors=True)
        shutil.rmtree(build, ignore_errors=True)
        project.mkdir()
        for path in (HERE / "cmake/CMakeLists.txt", HERE / "user.c", HERE / "user.cc", HERE / "malloc.c"):
            shutil.copy(path, project)
        compilers = [f"-DCMAKE_C_COMPILER={self.cc}", *([f"-DCMAKE_CXX_COMPILER={self.cxx}", "-DCXX=ON"] if self.cxx else [])]
        self.run([self.cmake, "-S", str(project), "-B", str(build), f"-DCMAKE_PREFIX_PATH={self.prefix}", *compilers])
        self.run([self.cmake, "--build", str(build)])
        for name in ("user", "user_static", *(["user_cxx"] if self.cxx else [])):
            self.expect_served([str(build / name)])
        for name in ("user_malloc", "user_malloc_static"):
            self.expect_served_by_us([str(build / name)], {})
        # If the names in it were not those of targets, this would fail: nothing need be built.
        folder = self.work / "folder-build"
        shutil.rmtree(folder, ignore_errors=True)
        self.run([self.cmake, "-S", str(project), "-B", str(folder), f"-DIN_FOLDER={self.source}", "-DBUILD_TESTING=OFF", *compilers])

    def expect_served_by_us(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """A program that prints SERVED, by slabyard's malloc under the policy that it is told."""
        report = self.work / "report.json"
        report.unlink(missing_ok=True)
        self.expect_served(argv, {**environment, "SLABYARD": "slob:fit=best", "SLABYARD_STATS": str(report)})
        if not report.is_file():
            raise Failure(f"{' '.join(argv)}\nran without slabyard's malloc")
        told = json.loads(report.read_text().splitlines()[-1])
        if "slob:fit=best" not in json.dumps(told):
            raise Failure(f"{' '.join(argv)}\nran under another policy than it was told: {told}")

    # ---- Manual pages

    def manuals(self) -> None:
        """Every public function has a page and every page's names are public; the pages are as the formatters want them."""
        man = self.prefix / "share/man"
        pages = {path.stem for path in (man / "man3").iterdir()}
        public = self.public_names()
        if public - pages:
            raise Failure(f"without a manual page: {sorted(public - pages)}")
        if pages - public - {path.name for path in (self.prefix / "include/slabyard").iterdir()}:
            raise Failure(f"manual pages of what there is not: {sorted(pages - public)}")
        sources = sorted((self.source / "docs/man").iterdir())
        for page in sources:
            self.complete_page(page)
        for formatter in (["mandoc", "-Tlint", "-W", "warning"], ["groff", "-mandoc", "-ww", "-z", "-Tutf8"]):
            if shutil.which(formatter[0]) is None:
                print(f"the manual pages were not checked by {formatter[0]}, which is not here")
                continue
            done = subprocess.run([*formatter, *map(str, sources)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode or done.stdout:
                raise Failure(f"{' '.join(formatter)}:\n{done.stdout}")

    def archive_names(self) -> None:
        """Symbols of an archive that its shared library does not export could clash with names of the program."""
        for name in ("slabyard", "slabyard-malloc"):
            shared = self.run(["nm", "-D", "--defined-only", "--format=posix", str(self.prefix / f"lib/lib{name}.so")])
            archive = self.run(["nm", "-g", "--defined-only", "--format=posix", str(self.prefix / f"lib/lib{name}.a")])
            public = {line.split()[0] for line in shared.splitlines()} | self.public_names()
            own = {line.split()[0] for line in archive.splitlines() if " " in line} - public
            if wrong := sorted(symbol for symbol in own if not symbol.startswith("sy_")):
                raise Failure(f"lib{name}.a defines names that a program may have: {', '.join(wrong)}")

    def public_names(self) -> set[str]:
        """What the shared library exports and the installed headers define, without what is between files (sy__...) and what kernel
        code has beside its allocator, which kmem(7) tells of as a whole."""
        exported = self.run(["nm", "-D", "--defined-only", "--format=posix", str(self.prefix / "lib/libslabyard.so")])
        names = {line.split()[0] for line in exported.splitlines() if not line.startswith("_")}
        for header in (self.prefix / "include/slabyard").rglob("*.h"):
            if header.parent.name != "linux" or header.stem in ALLOCATING:
                names |= set(re.findall(r"^(?:static inline [^;{]*?|SY__ON_NODE\([^,]*, )(\w+)[(,]", header.read_text(), re.MULTILINE))
        return {name for name in names if not name.startswith("sy__")}

    def complete_page(self, page: Path) -> None:
        """The sections that each page of a call has; pages that it names are there."""
        text = page.read_text()
        wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", *(["THREAD SAFETY", "COST"] if page.suffix == ".3" else []), "SEE ALSO"]
        if page.suffix == ".3" and not re.search(r"^\.Sh (RETURN VALUES|ERRORS)$", text, re.MULTILINE):
            raise Failure(f"{page} does not tell what can go wrong")
        missing = [section for section in wanted if f"\n.Sh {section}\n" not in text]
        if missing:
            raise Failure(f"{page} has no {', '.join(missing)}")
        for name, section in re.findall(r"^\.Xr ((?:sy_|kmem_|slabyard|libslabyard)\S*) (\d)", text, re.MULTILINE):
            if not (self.prefix / f"share/man/man{section}/{name}.{section}").is_file():
                raise Failure(f"{page} names {name}({section}), which there is not")

    # ---- The README

    def readme(self) -> None:
        section = re.search(r"^## As a library$(.*?)^## ", (self.source / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        if not section:
            raise Failure("README.md has no section 'As a library'")
        blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n(?:^\n(?=    ))?)+", section.group(1), re.MULTILINE)]
        command = re.match(r"/\* (cc session\.c .*) \*/", blocks[0])
        if len(blocks) != 2 or not command or len(blocks[0].splitlines()) > 12:
            raise Failure("the examples of README.md are not what this test knows: ten lines of C below their command, then a preload")
        (self.work / "session.c").write_text(blocks[0])
        self.run(["sh", "-ec", command.group(1)])
        self.run(["./session"], self.libraries)
        self.expect_served(["sh", "-ec", blocks[1].replace("/usr/local", str(self.prefix))])
        self.expect_served_by_us(["sh", "-ec", re.sub("SLABYARD=\\S+", "", blocks[1]).replace("/usr/local", str(self.prefix))], {})


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("source", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("cmake", "make", "pkg-config", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    test = PackageTest(parser.parse_args())
    try:
        test.install()
        test.refuse_spaces()
        test.complete()
        test.headers_alone()
        test.with_pkg_config()
        test.with_cmake()
        test.manuals()
        test.archive_names()
        test.readme()
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
