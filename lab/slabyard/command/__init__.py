"""The command line, which is all that a user meets."""
