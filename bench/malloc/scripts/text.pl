# Perl on text: hashes of arrays, splitting and joining, substitutions, sorting.
use strict;
use warnings;
srand(4);
my @letters = split //, "etaoinshrdlu";
my @words = map { join "", map { $letters[int rand @letters] } 1 .. 2 + int rand 10 } 1 .. 8000;
my ($sum, %index) = (0);
for my $round (1 .. 4) {
	my @lines = map { join " ", map { $words[int rand @words] } 1 .. 12 } 1 .. 12000;
	for my $line (@lines) {
		my @fields = split / /, $line;
		push @{ $index{ $fields[0] }{ $fields[1] } }, scalar reverse $line;
		(my $copy = $line) =~ s/([aeiou])/<$1>/g;
		$sum += length $copy;
	}
	%index = map { $_ => $index{$_} } grep { length($_) % 3 } keys %index;
	my @sorted = sort { lc $a cmp lc $b } map { "$_-" . scalar keys %{ $index{$_} } } keys %index;
	$sum += length join ",", @sorted;
}
print "$sum\n";
