#!/bin/busybox sh
# typing USERS LINES: users who type at once, each into a shell of his own that answers every line.
workers=
for number in $(seq "$1"); do
	seq "$2" | while read -r line; do
		echo "a line that a user has typed, number $line"
		echo "$line" | cat
	done >/dev/null &
	workers="$workers $!"
done
for worker in $workers; do wait "$worker" || exit 1; done
