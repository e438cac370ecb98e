/*
 * SLAB's layouts and the sizes of its arrays: by hand, and against /proc/slabinfo of a real Linux 6.1 with one CPU.
 *
 * The table `linux_6_1` holds every combination of objsize, objperslab, pagesperslab, limit and batchcount that the
 * slabinfo of a user-mode Linux 6.1.192 (x86-64, one CPU, 4 KiB pages) showed before and after two workloads: 44
 * different sizes, two of which come twice. The shared factor was 0 everywhere.
 */
#include "check.h"

#include "core/types.h"

#include "core/pages/pages.h"
#include "core/policies/slab/slab.h"

struct row {
	uint16_t size, objects, pages, limit, batchcount;
};

static const struct row linux_6_1[] = {
	{ 16, 240, 1, 120, 60 },  { 32, 124, 1, 120, 60 },  { 40, 99, 1, 120, 60 },   { 48, 83, 1, 120, 60 },
	{ 56, 71, 1, 120, 60 },   { 64, 64, 1, 120, 60 },   { 72, 56, 1, 120, 60 },   { 80, 51, 1, 120, 60 },
	{ 88, 46, 1, 120, 60 },   { 96, 42, 1, 120, 60 },   { 104, 39, 1, 120, 60 },  { 112, 36, 1, 120, 60 },
	{ 128, 32, 1, 120, 60 },  { 136, 30, 1, 120, 60 },  { 184, 22, 1, 120, 60 },  { 192, 21, 1, 120, 60 },
	{ 200, 20, 1, 120, 60 },  { 208, 19, 1, 120, 60 },  { 248, 16, 1, 120, 60 },  { 256, 16, 1, 120, 60 },
	{ 296, 13, 1, 54, 27 },   { 320, 12, 1, 54, 27 },   { 448, 9, 1, 54, 27 },    { 512, 8, 1, 54, 27 },
	{ 544, 7, 1, 54, 27 },    { 576, 7, 1, 54, 27 },    { 616, 6, 1, 54, 27 },    { 640, 6, 1, 54, 27 },
	{ 664, 6, 1, 54, 27 },    { 824, 9, 2, 54, 27 },    { 896, 4, 1, 54, 27 },    { 912, 4, 1, 54, 27 },
	{ 960, 4, 1, 54, 27 },    { 1000, 4, 1, 54, 27 },   { 1024, 4, 1, 54, 27 },   { 1152, 7, 2, 24, 12 },
	{ 1216, 3, 1, 24, 12 },   { 2048, 2, 1, 24, 12 },   { 2112, 3, 2, 24, 12 },   { 2176, 3, 2, 24, 12 },
	{ 2304, 3, 2, 24, 12 },   { 4096, 1, 1, 24, 12 },   { 4736, 1, 2, 8, 4 },     { 8192, 1, 2, 8, 4 },
};

/* The same sizes again, for other reasons: fs_cache has objects of 56 bytes aligned to lines, too few for a freelist
 * of 64; bdev_cache is reclaimable, hence of order 0 whatever that wastes. */
static const struct row fs_cache = { 64, 63, 1, 120, 60 }, bdev_cache = { 1152, 3, 1, 24, 12 };

static struct sy_pages *pages;
static struct sy_heap *heap;

static void start(unsigned slots, const char *tunable, int64_t value)
{
	struct sy_pages_config pages_config = { .zone_count = 1, .slots = slots, .pageblock_order = 9,
		                                    .zones = { { .name = "Normal", .pages = 65536 } } };
	const struct sy_policy *slab = sy_policy_find("slab");
	struct sy_heap_config config;

	pages = sy_pages_create(&pages_config);
	sy_heap_defaults(slab, &config);
	config.slots = slots;
	for (unsigned i = 0; tunable && i < slab->tunable_count; i++)
		if (!strcmp(slab->tunables[i].name, tunable))
			config.tunables[i] = value;
	heap = sy_heap_create(pages, &config);
	CHECK(heap != NULL);
}

static void stop(void)
{
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_destroy(heap);
	sy_pages_destroy(pages);
}

static void construct(void *object, size_t size)
{
	memset(object, 0x11, size);
}

static struct sy__slab_cache *make(size_t size, size_t align, unsigned flags, void (*constructor)(void *, size_t))
{
	struct sy_cache_config config = { .name = "test", .size = size, .align = align, .flags = flags | SY_CACHE_NO_MERGE,
		                              .constructor = constructor };

	return sy__slab_cache(sy_cache_create(heap, &config));
}

static void check_row(const struct sy__slab_cache *cache, const struct row *row)
{
	CHECK_EQUAL(cache->cache.size, row->size);
	CHECK_EQUAL(cache->objects, row->objects);
	CHECK_EQUAL(1u << cache->order, row->pages);
	CHECK_EQUAL(cache->limit, row->limit);
	CHECK_EQUAL(cache->batchcount, row->batchcount);
	CHECK_EQUAL(cache->shared, 0);
}

static void test_every_cache_of_a_real_kernel(void)
{
	start(1, NULL, 0);
	for (size_t i = 0; i < sizeof(linux_6_1) / sizeof(linux_6_1[0]); i++)
		check_row(make(linux_6_1[i].size, 0, 0, NULL), &linux_6_1[i]);
	check_row(make(56, 0, SY_CACHE_HWCACHE_ALIGN, NULL), &fs_cache);
	check_row(make(1152, 0, SY_CACHE_RECLAIMABLE, NULL), &bdev_cache);
	stop();
}

static void test_geometry_of_every_size(void)
{
	struct sy_geometry is;
	struct sy_heap_config config;

	sy_heap_defaults(sy_policy_find("slab"), &config);
	for (size_t i = 0; i < sizeof(linux_6_1) / sizeof(linux_6_1[0]); i++) {
		CHECK(config.policy->geometry(config.tunables, 1, linux_6_1[i].size, &is));
		CHECK_EQUAL(is.size, linux_6_1[i].size);
		CHECK_EQUAL(is.objects, linux_6_1[i].objects);
		CHECK_EQUAL(1u << is.order, linux_6_1[i].pages);
		CHECK_EQUAL(is.wasted, ((uint32_t)linux_6_1[i].pages << 12) - is.objects * is.size);
	}
	CHECK(config.policy->geometry(config.tunables, 1, 8, &is)); /* no object is below 16 bytes */
	CHECK_EQUAL(is.size, 16);
	CHECK(config.policy->geometry(config.tunables, 1, (size_t)4 << 20, &is));
	CHECK_EQUAL(is.order, 10);
	CHECK(!config.policy->geometry(config.tunables, 1, ((size_t)4 << 20) + 8, &is));
	CHECK(!config.policy->geometry(config.tunables, 1, 0, &is));
}

/* 64 objects of 64 bytes, 64 bytes of freelist: it just fits in one. 56: 73 > 56. */
static void test_freelist_in_an_object(void)
{
	start(1, NULL, 0);
	CHECK_EQUAL(make(64, 0, 0, NULL)->place, SY__SLAB_IN_OBJECT);
	CHECK_EQUAL(make(56, 0, 0, NULL)->place, SY__SLAB_ON_SLAB);
	CHECK_EQUAL(make(8192, 0, 0, NULL)->place, SY__SLAB_IN_STATE);
	stop();
}

/* With a constructor a free object keeps its contents. 512: 8 objects, no byte left, and 32 bytes for the freelist
 * are less than 256: off slab. 504: 8 objects leave 64 bytes, where 8 numbers fit. 64: the freelist would take
 * kmalloc-64, more than half of an object, and more with every order: 63 objects and their numbers. Readers under RCU
 * look as well. */
static void test_freelist_of_constructed_objects(void)
{
	start(1, NULL, 0);
	CHECK_EQUAL(make(512, 0, 0, construct)->place, SY__SLAB_OFF_SLAB);
	CHECK_EQUAL(make(512, 0, SY_CACHE_TYPESAFE_BY_RCU, NULL)->place, SY__SLAB_OFF_SLAB);
	CHECK_EQUAL(make(504, 0, 0, construct)->place, SY__SLAB_ON_SLAB);
	CHECK_EQUAL(make(504, 0, 0, construct)->objects, 8);
	CHECK_EQUAL(make(64, 0, 0, construct)->place, SY__SLAB_ON_SLAB);
	CHECK_EQUAL(make(64, 0, 0, construct)->objects, 63);
	CHECK_EQUAL(make((size_t)4 << 20, 0, 0, construct)->place, SY__SLAB_OFF_SLAB);
	stop();
}

static void test_large_slabs_only_where_asked(void)
{
	start(1, "max_order", 0);
	CHECK_EQUAL(make(1152, 0, 0, NULL)->objects, 3);
	CHECK_EQUAL(make(4736, 0, 0, NULL)->order, 1); /* no smaller one holds an object */
	stop();
	start(1, "max_order", 3);
	CHECK_EQUAL(make(2304, 0, 0, NULL)->order, 2); /* 7 of them waste 256 of 16384 bytes */
	CHECK_EQUAL(make(1152, 0, 0, NULL)->order, 1);
	stop();
}

static void test_shared_arrays_need_several_cpus(void)
{
	start(2, NULL, 0);
	CHECK_EQUAL(make(64, 0, 0, NULL)->shared, 8);
	CHECK_EQUAL(make(4096, 0, 0, NULL)->shared, 8);
	CHECK_EQUAL(make(4104, 0, 0, NULL)->shared, 0);
	CHECK_EQUAL(make(131080, 0, 0, NULL)->limit, 1);
	CHECK_EQUAL(make(131080, 0, 0, NULL)->batchcount, 1);
	stop();
}

static void test_tunables(void)
{
	start(2, "limit", 9);
	CHECK_EQUAL(make(64, 0, 0, NULL)->limit, 9);
	CHECK_EQUAL(make(64, 0, 0, NULL)->batchcount, 5);
	stop();
	start(2, "batchcount", 100);
	CHECK_EQUAL(make(64, 0, 0, NULL)->batchcount, 100);
	CHECK_EQUAL(make(512, 0, 0, NULL)->batchcount, 54); /* no more than the limit */
	stop();
	start(2, "shared", 0);
	CHECK(make(64, 0, 0, NULL)->nodes[0].shared == NULL);
	stop();
	start(2, "colour", 0);
	CHECK_EQUAL(make(1216, 0, 0, NULL)->colours, 0);
	stop();
}

static void test_size_classes(void)
{
	start(1, NULL, 0);
	const struct sy__kmalloc *kmalloc = &sy__slab_heap(heap)->kmalloc;

	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 1, 0)->name, "kmalloc-32");
	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 32, 0)->name, "kmalloc-32");
	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 33, 0)->name, "kmalloc-64");
	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 65, 0)->name, "kmalloc-96");
	CHECK_EQUAL(sy__kmalloc_cache(kmalloc, 65, 0)->size, 128);
	CHECK_EQUAL(sy__kmalloc_cache(kmalloc, 65, 0)->object_size, 96);
	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 8, SY_RECLAIMABLE)->name, "kmalloc-rcl-32");
	CHECK_TEXT(sy__kmalloc_cache(kmalloc, 8192, 0)->name, "kmalloc-8k");
	stop();
}

int main(void)
{
	test_every_cache_of_a_real_kernel();
	test_geometry_of_every_size();
	test_freelist_in_an_object();
	test_freelist_of_constructed_objects();
	test_large_slabs_only_where_asked();
	test_shared_arrays_need_several_cpus();
	test_tunables();
	test_size_classes();
	return check_result();
}
