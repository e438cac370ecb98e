"""The papers' experiments, reproduced: each table and figure by one command, its figures beside ours."""
