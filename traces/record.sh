#!/bin/sh
# Records the five bundled traces again on this machine: traces/record.sh [TRACE...]
# Needs root, perf, a mounted tracefs, hackbench (rt-tests), sysbench, file and a C compiler; see traces/README.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
slabyard=${SLABYARD:-$top/.venv/bin/slabyard}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

record() {
	name=$1
	shift
	echo "recording $name: $*"
	"$slabyard" record -o "$work/$name.parquet" -- "$@"
	mv "$work/$name.parquet" "$here/$name.parquet"
}

in_work() {
	(cd "$work" && "$@" >/dev/null)
}

fileio="sysbench fileio --file-num=128 --file-total-size=32M --file-block-size=16K --file-test-mode=rndwr"

for trace in ${*:-hackbench find spike fileio build}; do
	case $trace in
	hackbench) record hackbench hackbench -g 1 -l 100 ;;
	find) record find find /usr/include/linux -maxdepth 1 -name '[a-d]*.h' -exec file {} \; ;;
	spike)
		cc -O2 -o "$work/spike" "$here/spike.c"
		record spike "$work/spike" 1
		;;
	fileio)
		in_work $fileio prepare
		(cd "$work" && record fileio $fileio --threads=16 --events=1000 --time=0 run)
		in_work $fileio cleanup
		;;
	build) record build cc -O2 -std=c11 -I"$top/core" -c -o "$work/slub.o" "$top/core/policies/slub.c" ;;
	*)
		echo "record.sh: no trace is called $trace; there are hackbench, find, spike, fileio and build" >&2
		exit 2
		;;
	esac
done
