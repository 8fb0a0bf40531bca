# SPDX-License-Identifier: GPL-2.0-or-later
#
# Work for `make demo` and `make picture` to profile: counts the words of python3's library until
# SECONDS of CPU time are used.
#
#   perl tools/demo.pl SECONDS

use strict;
use warnings;

my ($seconds) = @ARGV;
my @files = glob '/usr/lib/python3*/*.py';
my (%count, %long);

@files or die "demo.pl: no /usr/lib/python3*/*.py: install Debian's package python3\n";

# Returns the words of a line in lower case.
sub words {
	my ($line) = @_;

	return map { lc } $line =~ /(\w+)/g;
}

# Counts the words of a file. Returns true when the time is used up.
sub read_file {
	my ($path) = @_;

	open my $in, '<', $path or die "demo.pl: $path: $!\n";
	read $in, my $text, -s $in;
	for my $line (split /\n/, $text) {
		$count{$_}++ for words($line);
	}
	return (times)[0] > $seconds;
}

# Writes the words to a text and splits it again.
sub report {
	my $text = join ',', map { sprintf '%s=%d', $_, $count{$_} } keys %count;

	for my $entry (split /,/, $text) {
		my ($word, $n) = split /=/, $entry;
		$long{length $word} += $n;
	}
}

while (1) {
	for my $path (@files) {
		exit if read_file($path);
	}
	report();
}
