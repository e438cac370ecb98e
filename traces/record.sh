#!/bin/sh
# Records the five bundled traces again on this machine: traces/record.sh [TRACE...]; with TRACES=DIR into another folder.
# Needs root, perf, a mounted tracefs, hackbench (rt-tests), sysbench, file and a C compiler; see traces/README.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
slabyard=${SLABYARD:-$top/.venv/bin/slabyard}
traces=$(cd "${TRACES:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# The caches are dropped first, so that what was there before the trace is small; then one unrecorded run loads the programs again.
record() {
	name=$1
	shift
	echo "recording $name: $*"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	"$@" >/dev/null
	"$slabyard" record -o "$work/$name.parquet" -- "$@"
	mv "$work/$name.parquet" "$traces/$name.parquet"
}

# What else the machine does is in the traces as well, and takes their room.
load=$(cut -d ' ' -f 1 /proc/loadavg)
case $load in
0.*) ;;
*) echo "record.sh: the machine is busy (load $load); what others do will be in the traces" >&2 ;;
esac

fileio="sysbench fileio --file-num=128 --file-total-size=32M --file-block-size=16K --file-test-mode=rndwr"

for trace in ${*:-hackbench find spike fileio build}; do
	case $trace in
	hackbench) record hackbench hackbench -g 1 -l 20 ;;
	find) record find find /usr/include/linux -maxdepth 1 -name '[ab]*.h' -exec file {} \; ;;
	spike)
		cc -O2 -o "$work/spike" "$top/lab/slabyard/kernels/guest_files/spike.c"
		record spike "$work/spike" 1
		;;
	fileio)
		cd "$work"
		record fileio sh -c "$fileio prepare && $fileio --threads=16 --events=1000 --time=0 run && $fileio cleanup"
		;;
	build)
		cd "$top"
		record build sh -c 'for file in core/*.c; do cc -O2 -std=c11 -Iinclude -o "$0" -c "$file"; done' "$work/object.o"
		;;
	*)
		echo "record.sh: no trace is called $trace; there are hackbench, find, spike, fileio and build" >&2
		exit 2
		;;
	esac
done
