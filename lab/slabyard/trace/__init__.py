"""The file that a trace is, and the texts of the kernel in it."""
