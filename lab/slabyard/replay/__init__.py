"""From a trace to the figures of an allocator that is given its requests."""
