"""What the running kernel's caches do now: top."""
