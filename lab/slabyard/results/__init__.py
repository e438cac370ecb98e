"""Runs, repeated and interleaved, as records, and what these say."""
