#!/bin/sh
# The long workloads: traces/long.sh NAME runs one in the folder that it is called in, which `traces/long.sh prepare NAME` has made ready;
# traces/long.sh names lists them. Each has a kernel's slab allocator serve a million events and more, in some seconds and without a
# network; traces/record.sh records them. A workload whose program is missing is told in one line, and ends with status 3.
# `use` lasts for USE_SECONDS (an hour), at the pace of somebody who works.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PORT=18181

need() {
	for program; do
		command -v "$program" >/dev/null || { echo "long.sh: $name needs $program, which is not installed; it is left out" >&2 && exit 3; }
	done
}

# A server in the background until the command behind -- has ended; wait_for: a port that answers.
wait_for() {
	for _ in $(seq 100); do
		python3 -c "import socket; socket.create_connection(('127.0.0.1', $1)).close()" 2>/dev/null && return
		sleep 0.1
	done
	echo "long.sh: nothing answers on port $1" >&2 && exit 1
}

unknown() {
	echo "long.sh: no workload is called $name; there are $NAMES" >&2
	exit 2
}

postgres_command() {
	if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; else "$@"; fi
}

# postgres, initdb and pg_ctl: Debian keeps them out of PATH.
for folder in /usr/lib/postgresql/*/bin; do PATH=$PATH:$folder:/usr/sbin:/sbin; done

prepare() {
	case $name in
	web | web_close)
		need nginx wrk ab python3
		mkdir -p www && head -c 8192 /dev/urandom >www/page.html
		cat >nginx.conf <<END
worker_processes 2; daemon off; pid $PWD/nginx.pid; error_log $PWD/error.log;
events { worker_connections 1024; }
http { access_log $PWD/access.log; sendfile on; server { listen 127.0.0.1:$PORT; root $PWD/www; } }
END
		;;
	web_python) need ab python3 ;;
	redis) need redis-server redis-benchmark python3 ;;
	sqlite) need sqlite3 ;;
	postgres)
		need postgres initdb pgbench setpriv python3
		rm -rf pg && mkdir pg && chmod 755 . && if [ "$(id -u)" = 0 ]; then chown nobody pg; fi
		postgres_command initdb -D pg/data >/dev/null
		;;
	compile) need cc xargs ;;
	git | tree | archive | search)
		need git tar find
		[ -d files ] || { mkdir files && cp -r /usr/include /usr/share/perl files; }
		;;
	package)
		need dpkg dpkg-deb
		[ -f made.deb ] || {
			mkdir -p made/DEBIAN made/opt && cp -r /usr/include /usr/share/perl made/opt
			printf 'Package: made\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: made\n' >made/DEBIAN/control
			dpkg-deb -Znone --build made made.deb >/dev/null
		}
		;;
	venv) need python3 ;;
	container) need unshare mount ip ;;
	runc)
		need runc python3
		mkdir -p rootfs/bin rootfs/proc rootfs/dev rootfs/sys
		ldd /bin/sh /bin/true | grep -o '/[^ ]*' | sed 's/:$//' | sort -u | while read -r file; do cp --parents -L "$file" rootfs; done
		rm -f config.json && runc spec
		python3 - <<'END'
import json
spec = json.load(open("config.json"))
spec["process"].update(terminal=False, args=["/bin/true"])
spec["root"]["readonly"] = False
json.dump(spec, open("config.json", "w"))
END
		;;
	fork | threads | vmas | files | pipes | timers | poll) need stress-ng ;;
	open) # two threads that open and close a file: six events for each pair of calls, and little else
		need cc
		cat >open.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *calls(void *nothing)
{
	for (long i = 0; i < 600000; i++)
		close(open("/", O_PATH));
	return nothing;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, NULL, calls, NULL);
	calls(NULL);
	return pthread_join(other, NULL);
}
END
		cc -O2 -o open open.c -lpthread
		;;
	exec) need true ;;
	sockets) need hackbench ;;
	tcp | udp) need iperf3 ;;
	disk) need fio ;;
	mixed) for name in sqlite compile tree web_close container; do prepare; done && name=mixed ;;
	use) for name in sqlite compile git venv; do prepare; done && need dpkg find && name=use ;;
	*) unknown ;;
	esac
}

NAMES="web web_close web_python redis sqlite postgres compile git tree archive search package venv container runc fork exec open threads vmas files pipes timers poll sockets tcp udp disk mixed use"

# One thing after the other, each followed by a pause: version control, compiling one file, queries of packages, looking for files, a
# database, a script.
use() {
	end=$(($(date +%s) + ${USE_SECONDS:-3600})) turn=0
	[ -d own ] || { git init -q own && cp -r files/perl own && git -C own add -A && git -C own -c user.name=a -c user.email=a@b commit -qm a; }
	set -- "$here"/../core/*.c
	while [ "$(date +%s)" -lt $end ]; do
		turn=$((turn + 1))
		case $((turn % 8)) in
		0) git -C own status && git -C own log -p -1 ;;
		1) cc -O1 -std=c11 -I"$here/../include" -o /dev/null -S "$1" 2>/dev/null || true; shift; [ $# -gt 0 ] || set -- "$here"/../core/*.c ;;
		2) dpkg -l && dpkg -L dpkg && dpkg -S /bin/sh || true ;;
		3) find files -name '*.h' -newer own | wc -l ;;
		4) for n in 1 2 3 4 5; do echo "create table if not exists u (v text); insert into u values (hex(randomblob(64)));"; done | sqlite3 use.db ;;
		5) python3 -c 'import json, email, http.client; json.dumps(list(range(100000)))' ;;
		6) git -C own diff HEAD && date >>own/perl/notes && git -C own -c user.name=a -c user.email=a@b commit -qam "$turn" || true ;;
		7) tar cf - files/perl | gzip -1 | wc -c ;;
		esac
		sleep 1
	done
}

# A server, then what asks it; the server is told to end.
served() {
	"$@" >server.log 2>&1 &
	server=$!
	trap 'kill $server 2>/dev/null || true' EXIT
}

run() {
	part=${1:-1} # mixed runs a part of it
	case $name in
	web | web_close)
		served nginx -p "$PWD" -c "$PWD/nginx.conf"
		wait_for $PORT
		if [ "$name" = web ]; then
			wrk -t 2 -c 64 -d $((3 / part)) "http://127.0.0.1:$PORT/page.html"
		else
			ab -q -n $((12000 / part)) -c 32 "http://127.0.0.1:$PORT/page.html"
		fi
		kill -QUIT $server
		;;
	web_python)
		served python3 -m http.server --bind 127.0.0.1 $PORT
		wait_for $PORT
		ab -q -n 6000 -c 16 "http://127.0.0.1:$PORT/server.log" || true
		kill $server
		;;
	redis)
		rm -rf appendonlydir && served redis-server --port $PORT --save '' --appendonly yes --appendfsync everysec
		wait_for $PORT
		redis-benchmark -q -p $PORT -n 25000 -c 50 -t set,get,lpush
		kill $server
		;;
	sqlite)
		rm -f base.db
		(
			echo 'create table t (k integer primary key, v text);'
			seq $((9000 / part)) | sed 's/.*/insert into t (v) values (hex(randomblob(64)));/'
		) | sqlite3 base.db
		;;
	postgres)
		served postgres_command postgres -D pg/data -p $PORT -k /tmp -h 127.0.0.1
		wait_for $PORT
		postgres_command pgbench -q -i -s 5 -p $PORT -h 127.0.0.1 postgres
		postgres_command pgbench -c 16 -j 2 -T 6 -C -p $PORT -h 127.0.0.1 postgres
		postgres_command pg_ctl -D pg/data -m fast stop
		;;
	compile)
		for round in $(seq $((3 / part))); do
			find "$here/../core" -name '*.c' | xargs -P 2 -I{} cc -O1 -std=c11 -I"$here/../include" -o /dev/null -S {} 2>/dev/null || true
		done
		;;
	git)
		rm -rf own clone && git init -q own
		for part in include perl; do
			cp -r "files/$part" own 2>/dev/null || true
			git -C own add -A && git -C own -c user.name=a -c user.email=a@b commit -qm "$part"
		done
		git clone -q --no-hardlinks own clone && git -C clone log -p >/dev/null && git -C clone gc -q && git -C clone status >/dev/null
		;;
	tree)
		for round in 1 2; do rm -rf copy && cp -r files copy && find copy -newer files -size +4k >/dev/null && rm -rf copy; done
		;;
	archive)
		for round in 1 2; do
			rm -rf out && mkdir out && tar cf all.tar files && tar xf all.tar -C out && gzip -1 -c all.tar
			rm -rf out all.tar
		done
		;;
	search) for round in $(seq 8); do find files -type f -exec grep -l socket {} + >/dev/null && ls -lR files >/dev/null; done ;;
	package)
		rm -rf root && mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates && : >root/var/lib/dpkg/status
		dpkg --root="$PWD/root" --force-not-root --install made.deb
		dpkg --root="$PWD/root" --purge made
		;;
	venv) for round in 1 2 3 4; do rm -rf venv && python3 -m venv venv; done ;;
	container)
		for round in $(seq $((280 / part))); do
			unshare --mount --pid --fork --net --ipc --uts sh -c '
				mount -t tmpfs none /mnt && mount -t proc none /proc && ip link set lo up && mkdir /mnt/a && true >/mnt/a/b'
		done
		;;
	runc) for round in $(seq 150); do runc run "slabyard-$round" || break; done ;;
	fork) stress-ng -q --fork 2 --fork-ops 2400 ;;
	exec) for round in $(seq 2000); do env true; done ;;
	open) ./open ;;
	threads) stress-ng -q --pthread 2 --pthread-ops 14000 ;;
	vmas) stress-ng -q --mmapmany 2 --mmapmany-ops 45000 ;;
	files) stress-ng -q --dentry 2 --dentry-ops 30000 ;;
	pipes) stress-ng -q --vm-splice 1 --pipe 1 --sigq 1 --fifo 1 -t 5 ;;
	timers) stress-ng -q --timerfd 1 --inotify 1 --eventfd 1 --mq 1 -t 5 ;;
	poll) stress-ng -q --epoll 2 -t 1 ;;
	sockets) hackbench -g 4 -l 350 ;;
	tcp | udp)
		served iperf3 -s -p $PORT
		sleep 1 # it would take a look at its port for a client
		if [ "$name" = tcp ]; then iperf3 -c 127.0.0.1 -p $PORT -P 16 -t 6; else iperf3 -c 127.0.0.1 -p $PORT -u -b 0 -l 1400 -t 12; fi
		kill $server
		;;
	disk) fio --name=a --size=64m --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 --numjobs=2 --fsync=32 --runtime=5 --time_based ;;
	mixed)
		for name in sqlite compile tree web_close container; do
			(mkdir -p "part-$name" && run 2) &
		done
		wait
		;;
	use) use ;;
	*) unknown ;;
	esac >/dev/null
	wait
}

if [ "${1:-}" = names ]; then
	echo "$NAMES"
elif [ "${1:-}" = prepare ]; then
	name=${2:-(none)}
	prepare
else
	name=${1:-(none)}
	run
fi
