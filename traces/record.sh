#!/bin/sh
# Records the five bundled traces again on this machine: traces/record.sh [TRACE...]; with TRACES=DIR into another folder. With that also
# the long workloads of traces/long.sh, by name, or all of them: TRACES=DIR traces/record.sh long.
# Needs root, perf, a mounted tracefs, hackbench (rt-tests), sysbench, file and a C compiler; see traces/README.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
slabyard=${SLABYARD:-$top/.venv/bin/slabyard}
mkdir -p "${TRACES:-$here}"
traces=$(cd "${TRACES:-$here}" && pwd)
work=$(mktemp -d) && chmod 755 "$work" # a database is run by another user
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

# A long workload; one whose programs are missing is told and left out. Such traces are too large for the repository.
record_long() {
	if [ "$traces" = "$here" ]; then
		echo "record.sh: $1 is a long recording; name a folder for it: TRACES=DIR" >&2
		exit 2
	fi
	mkdir "$work/$1" && cd "$work/$1"
	"$here/long.sh" prepare "$1" || { status=$? && [ $status = 3 ] && return 0 || exit $status; }
	echo "recording $1"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	"$slabyard" record -o "$work/$1.parquet" -- "$here/long.sh" "$1" || { status=$? && [ $status = 3 ] || exit $status; } # 3: incomplete
	mv "$work/$1.parquet" "$traces/$1.parquet"
	cd "$work" && rm -rf "${work:?}/$1"
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
	long) for name in $("$here/long.sh" names); do record_long "$name"; done ;;
	*) record_long "$trace" ;;
	esac
done
