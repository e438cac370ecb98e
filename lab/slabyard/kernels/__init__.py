"""Real kernels: Linux built on each allocator, booted, loaded, measured; what `slabyard kernel` does.

    commands            the verbs: build, run, compare, bench, fidelity, flame, list, clean
    run, compare        boots as result records; several kernels in turn
    bench               the benchmark that every kernel has built in, over several kernels in turn
    fidelity            compares replays with the kernels that they replay
    flame, icicle       where a kernel's time goes, and its picture
    machine             boots a kernel, as a user-mode process or under QEMU, and brings out what it leaves
    guest, workloads    the first file system of a guest, and what a guest does
    foreign             programs of another processor for a guest, out of packages
    sysbench            what sysbench says of its run
    build               from source tree and configuration to a kernel, once
    source, edits       a private copy of a kernel's source, and the changes made to it
    ports               sources of ours that go into it
    kinds, config       the allocators that a kernel can have, and its configuration
    tools, cache        programs of this machine that are needed; the cache folder, its locks, and processes that end with us

Modules know those below them alone. Of Linux itself nothing lies in this package: the source is the user's, and is changed in a
private copy.
"""
