"""A sham kernel source: a Makefile with the targets that the lab asks for, and a `linux` that does what a guest would.

So everything but Linux itself is tested in seconds: finding, copying and changing a source, building with its cache, its locks and its
interruptions, booting, and what comes out.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from slabyard.kernels import edits

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7

tinyconfig:
\t@echo 'CONFIG_TINY=y' >$(O)/.config
\t@echo tinyconfig >>configured
\t@echo '$(KCFLAGS)' >flags
olddefconfig:
\t@test ! -e refuse || sed -i '/CONFIG_HOSTFS/d' $(O)/.config
linux: $(O)/one.o $(O)/two.o $(O)/three.o
\t@test ! -e fail || { echo "  LD      linux"; echo "mm/slub.c:7: error: no such thing"; exit 1; }
\t@cp fake-linux $(O)/linux && echo symbols >$(O)/System.map
$(O)/%.o:
\t@echo "  CC      $*.o"
\t@echo $* >>built
\t@test ! -e slow || sleep 30
\t@cp Makefile $@
"""

FAKE_LINUX = """\
#!/bin/sh
for word; do case $word in uml_dir=*) host=${word#uml_dir=} ;; esac; done
case "$*" in *panic=now*) echo "Kernel panic - not syncing: asked for"; sleep 30 ;; esac
case "$*" in *full=now*) echo "Kernel panic - not syncing: Kernel mode signal 7"; sleep 30 ;; esac
case "$*" in *noroom=now*) echo "slabyard: no room"; exit ;; esac
case "$*" in *hang=now*) echo "starting"; sleep 30 ;; esac
case "$*" in *die=now*) echo "[    0.1] init: not found"; exit 1 ;; esac
case "$*" in *unprepared=now*)
	printf '@@slabyard unprepared\nmke2fs: out of space\n@@slabyard end\n' >"$host/results"
	exit ;;
esac
echo "slabyard: begins"
echo "slabyard: ends"
cat >"$host/results" <<'END'
@@slabyard before/meminfo
MemTotal:  500000 kB
Slab:        4000 kB
@@slabyard after/meminfo
MemTotal:  500000 kB
Slab:        4400 kB
@@slabyard after/slabinfo
slabinfo - version: 2.1
kmalloc-64   100 128 64 64 1 : tunables 0 0 0 : slabdata 2 2 0
@@slabyard measured
up_ns 500000000
elapsed_ns 250000000
user_us 1000
system_us 200000
switches 7
status 0
slab_peak_kb 8000
looks 12
@@slabyard output
hello
@@slabyard log
[    0.100000] WARNING: CPU: 0 PID: 1 at mm/slub.c:1
[    0.200000] nothing
END
case "$*" in *cpus=two*) printf '@@slabyard before/zoneinfo\\n    cpu: 0\\n    cpu: 1\\n' | cat - "$host/results" >"$host/two"
	mv "$host/two" "$host/results" ;; esac
case "$*" in *late=now*) sed -i 's/4400 kB/9000 kB/' "$host/results" ;; esac
case "$*" in *slabyard.bench=1*)
	for interface in cache kmalloc; do for pattern in pair order reverse shuffled; do for size in 8 4096; do
		echo "[    0.200000] slabyard.bench: $interface $pattern $size ${size}1 300 900 205 201" >>"$host/results"
	done; done; done
	case "$*" in *short*) ;; *) echo "[    0.200000] slabyard.bench: done" >>"$host/results" ;; esac
esac
case "$*" in *kmem:kmalloc,*)
	event="           cat-27      [000] ....."
	{
		echo "$event 0.100000: kmalloc: call_site=a ptr=0000000085283000 bytes_req=64 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1"
		echo "$event 0.200000: tracing_mark_write: before"
		case "$*" in *lossy*) echo "CPU:0 [LOST 7 EVENTS]" ;; esac
		echo "$event 0.300000: kmalloc: call_site=a ptr=0000000085283040 bytes_req=64 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1"
		echo "$event 0.400000: tracing_mark_write: end"
	} >"$host/trace.txt"
esac
case "$*" in *slabyard.log=1*)
	lost=0
	case "$*" in *lossy*) lost=7 ;; esac
	printf '@@slabyard calls\nend 2 %s 1 0 4\n' $lost >>"$host/results"
	printf '1 0 create c0 64 8 0 0 x\n2 0 alloc c0 1000 cc0 -1\n3 0 tick\nend 3 0 1 0 4\n' >"$host/trace.txt"
esac
cat >>"$host/results" <<'END'
@@slabyard extfrag
x [000] 0.1: mm_page_alloc_extfrag: a
x [000] 0.2: tracing_mark_write: before
x [000] 0.3: mm_page_alloc_extfrag: b
x [000] 0.4: mm_page_alloc_extfrag: c
@@slabyard end
END
echo "slabyard: done"
case "$*" in *stay=now*) sleep 30 ;; esac
"""

REGISTERS = "int have_xstate_support;\nvoid init(void)\n{\n\tif (have_xstate_support)\n\t\treturn;\n\thave_xstate_support = 1;\n}\n"


def make_tree(folder: Path, linux: str = "6.1") -> Path:
    """A source tree in `folder`."""
    (folder / "mm").mkdir(parents=True)
    if linux == "6.1":
        registers = folder / "arch/x86/um/os-Linux/registers.c"
        registers.parent.mkdir(parents=True)
        registers.write_text(REGISTERS)
        header = folder / "include/linux/slab.h"
        header.parent.mkdir(parents=True)
        header.write_text("#define KMALLOC_SHIFT_HIGH\tPAGE_SHIFT\n" + "#ifndef CONFIG_SLOB\n#endif\n" * 4)
        (folder / "mm/slob.c").touch()
        for arch in ("x86", "arm64"):
            kconfig = folder / f"arch/{arch}/Kconfig"
            kconfig.parent.mkdir(parents=True, exist_ok=True)
            kconfig.write_text("\tselect HAVE_ALIGNED_STRUCT_PAGE\t\tif SLUB\n")
    timer = folder / edits.KNOWN_TIMER.path
    timer.parent.mkdir(parents=True)
    timer.write_text("unsigned int lapic_timer_period = 0;\n")
    (folder / "drivers").mkdir()
    (folder / "drivers/Makefile").write_text("obj-y\t+= soc/\nobj-y += iommu/\nobj-y += gpu/\nobj-y += i2c/ i3c/ media/\n")
    allocator = "obj-$(CONFIG_SLOB) += slob.o" if linux == "6.1" else "obj-y += slub.o"
    (folder / "mm/Makefile").write_text(f"obj-y := filemap.o\n{allocator}\n")
    (folder / "Makefile").write_text(MAKEFILE.replace("PATCHLEVEL = 1\n", f"PATCHLEVEL = {linux.split('.')[1]}\n"))
    (folder / "fake-linux").write_text(FAKE_LINUX)
    (folder / "fake-linux").chmod(0o755)
    return folder


def make_tarball(folder: Path, linux: str = "6.1") -> Path:
    """The same as a tarball, with one folder at its top."""
    name = f"linux-{linux}.7"
    make_tree(folder / name, linux)
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder / name, name)
    return path
