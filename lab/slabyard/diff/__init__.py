"""What changed between two of the same kind: result records, traces, dumps of a kernel's caches; and whether it is a regression."""
