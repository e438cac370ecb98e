#!/bin/busybox sh
# files CLIENTS FOLDER: what clients ask of a file server: names looked up most of all, files read and written, made, renamed and removed.
client() {
	mkdir "$2/$1" && cd "$2/$1" || exit 1
	for folder in $(seq 4); do
		mkdir "$folder"
		for file in $(seq 25); do
			seq $((file * 20)) >"$folder/$file"
		done
		ls -lR . >/dev/null
		find . -name "1*" >found
		cat "$folder"/* >/dev/null
		for file in $(seq 5); do mv "$folder/$file" "$folder/renamed$file"; done
		[ -e "$folder/none" ] || ls -l "$folder"/2* >/dev/null
		sync found
	done
	rm -r 1 3
}

if [ "$1" = client ]; then
	client "$2" "$3"
	exit
fi
workers=
for number in $(seq "$1"); do
	sh "$0" client "$number" "$2" &
	workers="$workers $!"
done
for worker in $workers; do wait "$worker" || exit 1; done
