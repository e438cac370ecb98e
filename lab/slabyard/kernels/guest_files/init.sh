#!/bin/busybox sh
# The guest's first program: makes the system usable, runs the job between two snapshots, hands out what was found, switches off.
#
# /slabyard/job defines OUT (a folder of the host, a disk, a serial line, or the console), TRACE (what is handed out besides: none,
# all, the trace; calls, the log of a kernel on slabyard), PERIOD, and the functions prepare, load and after. What is handed out is
# one stream: a line `@@slabyard NAME`, and that file's content. A disk gets the same bytes as a file, from its start; text has no
# zero byte, so the host knows where it ends: those that a workload prints are left out. Where the job cannot be prepared there is no
# load, and what was said about it is handed out instead of figures.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/ TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing
. /slabyard/job

snapshot() {
	mkdir "/run/$1"
	for file in slabinfo buddyinfo pagetypeinfo meminfo vmstat zoneinfo; do
		[ -r "/proc/$file" ] && cat "/proc/$file" >"/run/$1/$file"
	done
	return 0
}

# Its last line has what the heap held then. The whole log comes out later, and is longer.
end_of_calls() {
	[ "$TRACE" = calls ] && tail -n 1 /proc/slabyard_log >/run/calls
}

# By one process, as each that starts takes an emulated processor a while. What a workload prints may have zero bytes or no end of a line.
hand_out() {
	set --
	for file in /run/before/* /run/after/* /run/measured /run/output /run/unprepared /run/samples /run/calls /run/attributes /run/log /run/extfrag; do
		[ -f "$file" ] || continue
		echo "@@slabyard ${file#/run/}" >"$file.mark"
		text=$file
		case "$file" in /run/output | /run/unprepared | /run/samples)
			text=$file.text
			tr -d '\0' <"$file" >"$text"
			[ -z "$(tail -c 1 "$text")" ] || echo >>"$text"
			;;
		esac
		set -- "$@" "$file.mark" "$text"
	done
	echo "@@slabyard end" >/run/end.mark
	cat "$@" /run/end.mark
}

cd /tmp
prepare >/run/prepared 2>&1 || mv /run/prepared /run/unprepared
snapshot before
echo before >/sys/kernel/tracing/trace_marker
echo "slabyard: begins"
[ -f /run/unprepared ] || load >/run/measured 2>/run/output
echo "slabyard: ends"
sleep 1
end_of_calls
echo 0 >/sys/kernel/tracing/tracing_on
snapshot after
after >/dev/null 2>&1
[ "$OUT" != disk ] && [ "$OUT" != hostfs ] || grep "" /sys/kernel/slab/*/align /sys/kernel/slab/*/cache_dma /sys/kernel/slab/*/ctor /sys/kernel/slab/*/destroy_by_rcu \
	/sys/kernel/slab/*/hwcache_align /sys/kernel/slab/*/object_size /sys/kernel/slab/*/objs_per_slab /sys/kernel/slab/*/order \
	/sys/kernel/slab/*/reclaim_account /sys/kernel/slab/*/slab_size /sys/kernel/slab/*/usersize >/run/attributes 2>/dev/null
dmesg >/run/log
if [ "$TRACE" != all ]; then
	grep -n -e mm_page_alloc_extfrag -e tracing_mark_write /sys/kernel/tracing/trace >/run/extfrag
fi
hand_out_trace() {
	case "$TRACE" in
	all) cat /sys/kernel/tracing/trace >"$1" ;;
	calls) cat /proc/slabyard_log >"$1" ;;
	esac || echo "slabyard: no room"
}

if [ "$OUT" = hostfs ]; then
	mkdir /run/host
	mount -t hostfs -o "$HOST" host /run/host
	hand_out >/run/host/results || echo "slabyard: no room"
	hand_out_trace /run/host/trace.txt
elif [ "$OUT" = serial ]; then
	hand_out >/dev/ttyS1
elif [ "$OUT" = console ]; then
	hand_out
else
	hand_out >/dev/vda
	hand_out_trace /dev/vdb
	sync /dev/vda /dev/vdb || echo "slabyard: no room"
fi
echo "slabyard: done"
# A user-mode kernel that is told to reboot does; one without ACPI cannot switch off, and QEMU ends where it would reboot.
if [ "$OUT" = hostfs ]; then
	poweroff -f
else
	reboot -f
fi
