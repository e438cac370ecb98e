"""The tunables of one allocator on one trace: what each does to memory, cost and fragmentation, and which settings to use."""
