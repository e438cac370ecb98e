/*
 * The allocator under test.
 *
 * A heap is opened from its spec and called through the public functions without a slot, as by any program.
 *
 * A malloc serves the whole program. The program starts itself anew with the library preloaded. The dynamic linker ignores what
 * it cannot preload and would go on with the C library's malloc, so the program then checks that malloc is the library's own.
 * malloc:system is whatever malloc the process has, also one that the user preloaded.
 */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "target.h"

#include "programs/spec.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MALLOC_ALIGN 16u
#define PRELOADED "SLABYARD_THREADS_PRELOADED" /* set in the environment that preloads a library */

/* ---- Malloc --------------------------------------------------------------------------------------------------- */

static bool start_anew(const char *spec, const char *library, char *const *words, struct fault *fault)
{
	const char *others = getenv("LD_PRELOAD");
	char value[2 * PATH_MAX];

	snprintf(value, sizeof value, "%s%s%s", library, others && *others ? ":" : "", others ? others : "");
	if (setenv("LD_PRELOAD", value, 1) == 0 && setenv(PRELOADED, library, 1) == 0)
		execv("/proc/self/exe", words);
	return refuse(fault, "%s: cannot start anew with that library: %s", spec, strerror(errno));
}

/* Whether malloc and free both lie in the library. */
static bool serves(const char *library)
{
	static const char *const names[] = { "malloc", "free" };
	char found[PATH_MAX];
	Dl_info info;

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		void *symbol = dlsym(RTLD_DEFAULT, names[i]);

		if (!symbol || !dladdr(symbol, &info) || !realpath(info.dli_fname, found) || strcmp(found, library) != 0)
			return false;
	}
	return true;
}

/* path: of its library; NULL: the system's own. */
static bool open_malloc(struct target *target, const char *spec, const char *path, char *const *words, struct fault *fault)
{
	const char *preloaded = getenv(PRELOADED);
	char library[PATH_MAX];

	target->alloc = malloc;
	target->free = free;
	if (!path)
		return true;
	if (!realpath(path, library))
		return refuse(fault, "%s: %s", spec, strerror(errno));
	if (!preloaded || strcmp(preloaded, library) != 0)
		return start_anew(spec, library, words, fault);
	return serves(library) ||
	       refuse(fault, "%s: the dynamic linker cannot preload this library, or it has no malloc and free of its own", spec);
}

/* ---- Both ----------------------------------------------------------------------------------------------------- */

bool target_open(struct target *target, const char *spec, char *const *words, struct fault *fault)
{
	const char *error = "no memory";
	struct spec parsed;

	*target = (struct target){ 0 };
	if (!spec_parse(&parsed, spec, fault))
		return false;
	if (!parsed.policy)
		return open_malloc(target, spec, parsed.library, words, fault);
	target->heap = sy_heap_open(spec, NULL, &error);
	return target->heap || refuse(fault, "%s", error);
}

static size_t malloc_alignment(const struct sy_cache_config *config)
{
	size_t align = config->align;

	if (config->flags & SY_CACHE_HWCACHE_ALIGN && align < SY_CACHE_LINE)
		align = SY_CACHE_LINE;
	return align > MALLOC_ALIGN ? align : 0;
}

bool target_kind(const struct target *target, struct kind *kind, const struct sy_cache_config *config, struct fault *fault)
{
	size_t align = malloc_alignment(config);

	*kind = (struct kind){ .size = config->size, .room = config->size, .constructor = config->constructor };
	if (!target->heap) {
		kind->align = align;
		if (align)
			kind->room = (config->size + align - 1) & ~(align - 1);
		return true;
	}
	kind->cache = sy_cache_create(target->heap, config);
	return kind->cache || refuse(fault, "no memory for a cache of %zu bytes", config->size);
}

void target_close(struct target *target)
{
	if (target->heap)
		sy_heap_close(target->heap);
	*target = (struct target){ 0 };
}

void target_trim(const struct target *target)
{
	int (*trim)(size_t) = NULL;
	void *symbol;

	if (target->heap) {
		sy_heap_trim(target->heap);
		return;
	}
	symbol = dlsym(RTLD_DEFAULT, "malloc_trim");
	memcpy(&trim, &symbol, sizeof trim);
	if (trim)
		trim(0);
}
