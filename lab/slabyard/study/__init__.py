"""The papers' experiments, made again: each table and figure by one command, its figures beside ours."""
