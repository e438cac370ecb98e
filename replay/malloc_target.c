/*
 * A malloc in place of a policy, so that programs' allocators can be compared with kernels'.
 *
 * It serves the object events alone: it has no environment, and no pages that could be counted. A kmalloc becomes a malloc of the
 * bytes asked for. An object of a cache becomes a malloc of the object's size, or an aligned allocation if the cache wants more
 * than malloc's 16 bytes (usually cache lines). The constructor runs at each allocation, because a malloc keeps nothing
 * constructed. Memory asked for as zero is cleared afterwards. So a malloc gets the same requests as a policy.
 *
 * A library is loaded with its symbols kept to itself: it serves the trace's requests alone, and the replay's own memory stays with
 * the C library. Its malloc, free, and aligned_alloc or posix_memalign are found by name. The dynamic linker would also search the
 * libraries that it depends on, and so find the C library's malloc for a library that has none. So each symbol must lie in an
 * object that is not the C library's.
 *
 * Mallocs for preloading (jemalloc) need more room for thread variables than glibc reserves for libraries that are loaded later. So
 * the program starts itself anew once, with glibc's tunable for that.
 */
#define _GNU_SOURCE /* dladdr */
#include "malloc_target.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define MALLOC_ALIGN 16u
#define PATTERN 0x5a
#define PATTERN_BYTES 16u

void replay_constructor(void *object, size_t object_size)
{
	memset(object, PATTERN, object_size < PATTERN_BYTES ? object_size : PATTERN_BYTES);
}

/* ---- Room for a library --------------------------------------------------------------------------------------- */

#define TUNABLES "GLIBC_TUNABLES"
#define ROOM "glibc.rtld.optional_static_tls=65536"

void malloc_target_make_room(char *const *words)
{
	const char *given = getenv(TUNABLES);
	char value[4096];

	if (given && strstr(given, "optional_static_tls"))
		return;
	if ((size_t)snprintf(value, sizeof value, "%s%s" ROOM, given ? given : "", given ? ":" : "") >= sizeof value)
		return;
	if (setenv(TUNABLES, value, 1) == 0)
		execv("/proc/self/exe", words); /* where that fails, most libraries load all the same */
}

/* ---- The library ---------------------------------------------------------------------------------------------- */

/* The opened library's. It is global because the function below has no context; one replay has one target. */
static int (*library_posix_memalign)(void **object, size_t align, size_t size);

static void *aligned_by_posix_memalign(size_t align, size_t size)
{
	void *object;

	return library_posix_memalign(&object, align, size) == 0 ? object : NULL;
}

/* Where the object that holds an address is loaded, NULL if unknown. */
static const void *object_base(void *address)
{
	Dl_info info;

	return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The library's own symbol. NULL: it is the C library's (the object that has getpid), or that of a preloaded library. */
static void *own_symbol(void *library, const char *name)
{
	void *symbol = dlsym(library, name), *system = dlsym(RTLD_DEFAULT, name), *c_library = dlsym(RTLD_DEFAULT, "getpid");
	const void *base = object_base(symbol);

	return base && base != object_base(system) && base != object_base(c_library) ? symbol : NULL;
}

/* A function pointer from dlsym's object pointer, which POSIX guarantees to be convertible and ISO C does not. */
static void set_function(void *function, void *symbol)
{
	memcpy(function, &symbol, sizeof symbol);
}

static bool find_symbols(struct malloc_target *target, const char *path, struct fault *fault)
{
	void *alloc = own_symbol(target->library, "malloc"), *release = own_symbol(target->library, "free");
	void *aligned = own_symbol(target->library, "aligned_alloc"), *posix = own_symbol(target->library, "posix_memalign");

	if (!alloc || !release)
		return refuse(fault, "malloc:%s: this library has no %s of its own", path, alloc ? "free" : "malloc");
	if (!aligned && !posix)
		return refuse(fault, "malloc:%s: this library has neither aligned_alloc nor posix_memalign", path);
	set_function(&target->alloc, alloc);
	set_function(&target->free, release);
	if (aligned) {
		set_function(&target->aligned, aligned);
	} else {
		set_function(&library_posix_memalign, posix);
		target->aligned = aligned_by_posix_memalign;
	}
	return true;
}

static bool open_library(struct malloc_target *target, const char *path, struct fault *fault)
{
	char here[4096];
	const char *name = path;

	/* Without a slash dlopen looks in the system's folders alone; a file that lies here is what was meant. */
	if (!strchr(path, '/') && access(path, R_OK) == 0 && (size_t)snprintf(here, sizeof here, "./%s", path) < sizeof here)
		name = here;
	target->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!target->library)
		return refuse(fault, "malloc:%s: %s", path, dlerror());
	return find_symbols(target, path, fault);
}

/* ---- Shapes --------------------------------------------------------------------------------------------------- */

static size_t alignment(const struct scratch_cache *cache)
{
	size_t line = SY_CACHE_LINE, align = cache->align;

	if (!(cache->flags & SY_CACHE_HWCACHE_ALIGN))
		return align;
	while (cache->object_size <= line / 2)
		line /= 2;
	return align > line ? align : line;
}

static struct malloc_shape shape_of(const struct scratch_cache *cache)
{
	struct malloc_shape shape = { .size = cache->object_size, .object_size = cache->object_size };
	size_t align = alignment(cache);

	if (align > MALLOC_ALIGN) {
		shape.align = align;
		shape.size = (shape.size + align - 1) & ~(align - 1);
	}
	if (cache->constructor)
		shape.constructor = replay_constructor;
	return shape;
}

bool malloc_target_open(struct malloc_target *target, const char *library, const struct scratch *scratch,
                        struct fault *fault)
{
	*target = (struct malloc_target){ .alloc = malloc, .free = free, .aligned = aligned_alloc };
	target->shapes = calloc((size_t)scratch->cache_count + 1, sizeof *target->shapes);
	if (!target->shapes)
		return refuse(fault, "no memory for %llu caches", (unsigned long long)scratch->cache_count);
	for (uint64_t i = 0; i < scratch->cache_count; i++)
		target->shapes[i] = shape_of(&scratch->caches[i]);
	if (library && !open_library(target, library, fault)) {
		malloc_target_close(target);
		return false;
	}
	return true;
}

bool malloc_target_check(const char *library, struct fault *fault)
{
	struct malloc_target target = { 0 };

	return open_library(&target, library, fault);
}

void malloc_target_close(struct malloc_target *target)
{
	free(target->shapes); /* the library stays: what it registered with the thread may still be called */
	*target = (struct malloc_target){ 0 };
}
