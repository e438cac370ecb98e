/*
 * The C++ runtime of a program that has opened it itself (dlopen): in the library for LD_PRELOAD only.
 *
 * A program in C may open a library in C++, and its runtime with it. What malloc/cxx.c refers to weakly was sought when the
 * program began, and not found, so it is asked for when it is needed: in what everybody sees, and then, as plugins are mostly
 * opened for themselves, in the runtimes that there are, by name. Nothing is loaded that is not there already, and who needs a
 * runtime holds it: it stays.
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
