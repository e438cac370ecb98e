/*
 * The malloc family under other names, for builds with sanitizers, which bring a malloc of their own. The tests' own code then
 * runs on this library; the sanitizer and the C library run on the sanitizer's malloc. Include it before everything else.
 */
#ifndef SLABYARD_MALLOC_RENAMED_H
#define SLABYARD_MALLOC_RENAMED_H

#define malloc slabyard_malloc
#define free slabyard_free
#define calloc slabyard_calloc
#define realloc slabyard_realloc
#define reallocarray slabyard_reallocarray
#define aligned_alloc slabyard_aligned_alloc
#define memalign slabyard_memalign
#define posix_memalign slabyard_posix_memalign
#define valloc slabyard_valloc
#define pvalloc slabyard_pvalloc
#define cfree slabyard_cfree
#define free_sized slabyard_free_sized
#define free_aligned_sized slabyard_free_aligned_sized
#define malloc_usable_size slabyard_malloc_usable_size
#define mallinfo slabyard_mallinfo
#define mallinfo2 slabyard_mallinfo2
#define mallopt slabyard_mallopt
#define malloc_trim slabyard_malloc_trim
#define malloc_stats slabyard_malloc_stats
#define malloc_info slabyard_malloc_info
#define __libc_malloc slabyard_libc_malloc
#define __libc_free slabyard_libc_free
#define __libc_cfree slabyard_libc_cfree
#define __libc_calloc slabyard_libc_calloc
#define __libc_realloc slabyard_libc_realloc
#define __libc_memalign slabyard_libc_memalign
#define __libc_valloc slabyard_libc_valloc
#define __libc_pvalloc slabyard_libc_pvalloc
#define __posix_memalign slabyard_internal_posix_memalign

/* Sanitizers set limits before the program's own code can run. */
#define setrlimit slabyard_setrlimit
#define setrlimit64 slabyard_setrlimit64
#define prlimit slabyard_prlimit
#define prlimit64 slabyard_prlimit64

#endif
