#!/bin/busybox sh
# kenbus USERS ROUNDS: a timesharing load after the benchmark of that name, which was SPEC's SDET at one time: users who work at once, each
# of whom runs every script ROUNDS times, in an order of his own. Its last line says how many scripts were done in a minute.
#
# A script is a shell of its own that runs a few tools: what people did all day on a machine that they shared.
here=/tmp/kenbus
scripts="edit compile mail sort search archive format list"

# A draft is written, changed line by line, and written again.
edit() {
	seq 200 | sed 's/.*/line & of a draft that is not done/' >draft
	printf '1,50s/draft/text/\n60,80d\n$a\nThe end\n.\nw\nq\n' | ed draft >/dev/null
	[ -f draft.old ] && diff draft draft.old >changes
	mv draft draft.old
}

compile() {
	[ -d project ] || sh /slabyard/project project 3
	make -s -C project clean && make -s -C project
}

# To everybody: a message, behind a lock. Then what came is read and sorted away.
mail() {
	for to in "$here"/user*; do
		until mkdir "$to/lock" 2>/dev/null; do sleep 0.01; done
		printf 'From %s\nSubject: number %s\n\n%s\n' "$(id -u)" "$$" "$(head -n 20 draft.old 2>/dev/null)" >>"$to/inbox"
		rmdir "$to/lock"
	done
	grep -c '^From' inbox >count
	sed -n 's/^Subject: //p' inbox | sort -n | tail -n 5 >latest
	: >inbox
}

sort_words() {
	tr -cs 'a-z' '\n' <"$here/words" | sort | uniq -c | sort -rn | head -n 20 >frequent
	awk '{ sum += $1 } END { print sum }' frequent >sum
}

search() {
	find "$here" -name '*.in' -exec grep -l 'f1_7' {} ';' >found
	grep -n '_7' project/part1.in 2>/dev/null | cut -d : -f 1 | paste -s -d , >lines
	wc -l found lines >counted
}

archive() {
	mkdir -p papers && cp "$here/words" papers/1 && cp draft.old papers/2 2>/dev/null
	tar c papers | gzip >papers.tar.gz
	rm -r papers
	gunzip <papers.tar.gz | tar x
	rm -r papers papers.tar.gz
}

format() {
	fold -s -w 60 "$here/words" | sed 's/  */ /g' | nl | tail -n 40 >page
	awk 'NR % 2 { print toupper($0) }' page | rev >other
}

list() {
	ls -lR "$here" >listing
	ps >processes 2>/dev/null
	df >disks 2>/dev/null
	date >>log
	cat listing processes log | md5sum >sum
}

# All scripts, beginning at another one for each user.
user() {
	mkdir -p "$here/user$1" && cd "$here/user$1" || exit 1
	for round in $(seq "$2"); do
		order=$(echo $scripts $scripts | cut -d ' ' -f $(($1 % 8 + 1))-$(($1 % 8 + 8)))
		for script in $order; do
			sh "$0" script "$script" || exit 1
		done
	done
}

case $1 in
script)
	[ "$2" = sort ] && set -- script sort_words
	"$2"
	;;
user)
	user "$2" "$3"
	;;
*)
	rm -rf "$here" && mkdir -p "$here"
	for line in $(seq 150); do echo "the quick brown fox of line $line jumps over lazy dogs number $((line * line))"; done >"$here/words"
	read -r began _ </proc/uptime
	workers=
	for number in $(seq "$1"); do
		sh "$0" user "$number" "$2" &
		workers="$workers $!"
	done
	for worker in $workers; do wait "$worker" || exit 1; done
	read -r ended _ </proc/uptime
	rm -rf "$here"
	awk "BEGIN { n = $1 * $2 * 8; s = $ended - $began; printf \"kenbus: %d scripts in %.2f s, %.0f a minute\n\", n, s, n * 60 / s }"
	;;
esac
