# Counts words, pairs of words and their endings in associative arrays.
{
	for (i = 1; i <= NF; i++) {
		seen[$i]++
		ends[substr($i, length($i) - 1)] = ends[substr($i, length($i) - 1)] + 1
		if (i > 1)
			pairs[$(i - 1) "-" $i]++
	}
	if (NR % 2000 == 0)
		delete pairs
}
END {
	for (word in seen)
		total += seen[word] * length(word)
	print total, length(seen), length(ends), length(pairs)
}
