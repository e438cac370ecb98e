/*
 * dlopen, without RTLD_DEEPBIND: in the library for LD_PRELOAD only.
 *
 * What is opened with that flag looks for each name in itself and in what it depends on before it looks in the program, and so finds
 * malloc in the C library, whatever is preloaded. As soon as it frees what the program allocated, or the program what it did,
 * an object is another allocator's, and the program ends. PHP opens all its extensions so. Who preloads a malloc wants it
 * everywhere; hence the flag is left out. What else it is for, to have two versions of a library in one program, is lost:
 * names are found as they are without the flag, as most programs on most systems have them.
 *
 * The C library looks at where dlopen was called from, for the search path (RUNPATH) of the caller. So its function is jumped to,
 * with the caller's return address on top of the stack, as compilers do with a call that is the last thing done. Built without
 * optimization it is called, and the caller's search path is not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef void *opener(const char *file, int mode);

static opener *next;

static __attribute__((cold, noinline)) opener *find_next(void)
{
	opener *found;

	*(void **)&found = dlsym(RTLD_NEXT, "dlopen"); /* as POSIX has functions from dlsym */
	__atomic_store_n(&next, found, __ATOMIC_RELAXED);
	return found;
}

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
	opener *open = __atomic_load_n(&next, __ATOMIC_RELAXED);

	if (!open)
		open = find_next();
	return open(file, mode & ~RTLD_DEEPBIND);
}
