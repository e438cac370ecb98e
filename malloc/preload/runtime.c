/*
 * The C++ runtime of a program that has opened it by dlopen: in the library for LD_PRELOAD only.
 *
 * A C program may open a C++ library, and its runtime with it. The weak references of malloc/cxx.c were resolved when the program
 * began, and found nothing. So the symbols are looked up when they are needed: among the global symbols, and then in the runtimes
 * by name, because plugins mostly open theirs locally. Only libraries that are loaded already are considered. A program that needs a
 * runtime keeps it loaded.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT, RTLD_NOLOAD */
#include "../parts.h"

#include <dlfcn.h>

static void *symbol_of(const char *library, const char *name)
{
	void *opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *symbol;

	if (!opened)
		return NULL;
	symbol = dlsym(opened, name);
	dlclose(opened);
	return symbol;
}

SY__COLD void *sy__runtime_symbol(const char *name)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++.so.1", "libc++abi.so.1" };
	void *symbol = dlsym(RTLD_DEFAULT, name);

	for (unsigned i = 0; !symbol && i < sizeof(libraries) / sizeof(*libraries); i++)
		symbol = symbol_of(libraries[i], name);
	return symbol;
}
