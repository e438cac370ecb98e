/*
 * dlopen, without RTLD_DEEPBIND: in the library for LD_PRELOAD only.
 *
 * A library that is opened with that flag looks up names in itself and its dependencies before it looks in the program. So it
 * finds malloc in the C library, whatever is preloaded. As soon as the library frees an object of the program, or the other way
 * round, the object is another allocator's and the program ends. PHP opens all its extensions so. A user who preloads a malloc
 * wants it everywhere, hence the flag is dropped. Lost is what else it is for: two versions of a library in one program.
 *
 * The C library looks at its return address to find the caller's search path (RUNPATH). So its dlopen must be jumped to, with the
 * caller's return address on top of the stack; compilers do so with a last call when they optimise. Without optimisation the
 * caller's search path is not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#ifdef RTLD_DEEPBIND /* C libraries without it need nothing */

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

#endif
