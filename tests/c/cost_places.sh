#!/bin/sh
# The places that count-instructions writes add up to what it prints: $1 count-instructions, $2 the malloc library, $3 a file to write.
set -u
printed=$("$1" --preload "$2" --places "$3" malloc) || exit $?
awk -v printed="$printed" '
	{ sum[$1] += $3 }
	END {
		split(printed, word, " ")
		if (sum["alloc"] - word[2] > .01 || word[2] - sum["alloc"] > .01 || sum["free"] - word[4] > .01 || word[4] - sum["free"] > .01 || !word[2]) {
			print "printed: " printed "; of places: alloc " sum["alloc"] ", free " sum["free"]
			exit 1
		}
	}' "$3"
