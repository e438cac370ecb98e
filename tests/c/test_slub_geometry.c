/*
 * SLUB's layouts and slab orders: by hand, and against /proc/slabinfo of a real Linux 6.1 with one CPU.
 *
 * The table `linux_6_1` holds every triple of objsize, objperslab and pagesperslab that the slabinfo of a user-mode
 * Linux 6.1.192 (x86-64, one CPU, 4 KiB pages) showed after two workloads: 47 different sizes.
 */
#include "check.h"

#include "core/types.h"

static const uint16_t linux_6_1[][3] = {
	{ 8, 512, 1 }, { 16, 256, 1 }, { 32, 128, 1 }, { 40, 102, 1 }, { 48, 85, 1 }, { 56, 73, 1 }, { 64, 64, 1 },
	{ 72, 56, 1 }, { 80, 51, 1 }, { 96, 42, 1 }, { 104, 39, 1 }, { 112, 36, 1 }, { 120, 34, 1 }, { 128, 32, 1 },
	{ 136, 30, 1 }, { 184, 22, 1 }, { 192, 21, 1 }, { 200, 20, 1 }, { 208, 19, 1 }, { 248, 16, 1 },
	{ 256, 16, 1 }, { 304, 13, 1 }, { 320, 12, 1 }, { 448, 9, 1 }, { 512, 8, 1 }, { 552, 14, 2 }, { 576, 14, 2 },
	{ 584, 14, 2 }, { 616, 13, 2 }, { 624, 13, 2 }, { 640, 12, 2 }, { 672, 12, 2 }, { 824, 19, 4 }, { 896, 9, 2 },
	{ 912, 17, 4 }, { 960, 8, 2 }, { 1008, 8, 2 }, { 1024, 8, 2 }, { 1152, 14, 4 }, { 1216, 13, 4 },
	{ 2048, 8, 4 }, { 2112, 15, 8 }, { 2176, 15, 8 }, { 2368, 13, 8 }, { 4096, 8, 8 }, { 4736, 6, 8 },
	{ 8192, 4, 8 },
};

static struct sy_geometry geometry(const char *tunable, int64_t value, unsigned cpus, size_t size)
{
	const struct sy_policy *slub = sy_policy_find("slub");
	struct sy_geometry result = { 0 };
	struct sy_heap_config config;

	sy_heap_defaults(slub, &config);
	for (unsigned i = 0; tunable && i < slub->tunable_count; i++)
		if (!strcmp(slub->tunables[i].name, tunable))
			config.tunables[i] = value;
	if (!slub->geometry(config.tunables, cpus, size, &result))
		result.order = SY_ORDERS;
	return result;
}

static void test_every_size_of_a_real_kernel(void)
{
	for (size_t i = 0; i < sizeof(linux_6_1) / sizeof(linux_6_1[0]); i++) {
		struct sy_geometry is = geometry(NULL, 0, 1, linux_6_1[i][0]);

		CHECK_EQUAL(is.size, linux_6_1[i][0]);
		CHECK_EQUAL(is.objects, linux_6_1[i][1]);
		CHECK_EQUAL(1u << is.order, linux_6_1[i][2]);
		CHECK_EQUAL(is.wasted, ((uint32_t)linux_6_1[i][2] << 12) - is.objects * is.size);
	}
}

/* Wanted are 4 * (fls(CPUs) + 1) objects: 8 with one CPU, 12 with two or three, 16 with four to seven, 36 with 128. */
static void test_more_cpus_want_more_objects(void)
{
	CHECK_EQUAL(geometry(NULL, 0, 1, 1024).order, 1);
	CHECK_EQUAL(geometry(NULL, 0, 2, 1024).order, 2);
	CHECK_EQUAL(geometry(NULL, 0, 3, 1024).order, 2);
	CHECK_EQUAL(geometry(NULL, 0, 4, 1024).order, 2);
	CHECK_EQUAL(geometry(NULL, 0, 8, 1024).order, 3);
	CHECK_EQUAL(geometry(NULL, 0, 256, 1024).order, 3); /* 40 objects need order 4: what order 3 holds must do */
	CHECK_EQUAL(geometry(NULL, 0, 128, 512).order, 3);  /* 36 of 512 bytes: 18432 */
	CHECK_EQUAL(geometry(NULL, 0, 128, 112).order, 0);  /* 36 of 112: 4032 */
}

/* 2376 bytes on one CPU: 8 want order 3, which holds 13 and wastes 1880 of 32768, 1/17: good. 2600 bytes waste
 * 32768 - 12 * 2600 = 1568, good. 5000 bytes: order 3 holds 6 and wastes 2768, more than 1/16 (2048): 1/8 lets
 * it pass. 11000: 2 objects, waste 10768, more than 1/4 at order 3; one object is left, at the smallest order
 * that holds it. */
static void test_waste_limits(void)
{
	CHECK_EQUAL(geometry(NULL, 0, 1, 2376).order, 3);
	CHECK_EQUAL(geometry(NULL, 0, 1, 2600).wasted, 1568);
	CHECK_EQUAL(geometry(NULL, 0, 1, 5000).order, 3);
	CHECK_EQUAL(geometry(NULL, 0, 1, 5000).objects, 6);
	CHECK_EQUAL(geometry(NULL, 0, 1, 11000).order, 2);
	CHECK_EQUAL(geometry(NULL, 0, 1, 11000).objects, 1);
	CHECK_EQUAL(geometry(NULL, 0, 1, 40000).order, 4); /* beyond the largest order: any order */
	CHECK_EQUAL(geometry(NULL, 0, 1, (size_t)4 << 20).order, 10);
}

static void test_tunables(void)
{
	CHECK_EQUAL(geometry("max_order", 0, 1, 1024).order, 0);
	CHECK_EQUAL(geometry("max_order", 0, 1, 1024).objects, 4);
	CHECK_EQUAL(geometry("max_order", 5, 255, 2048).order, 5); /* 36 objects: 73728 bytes */
	CHECK_EQUAL(geometry("min_order", 2, 1, 64).order, 2);
	CHECK_EQUAL(geometry("min_order", 4, 1, 64).order, 4); /* above max_order: any order, from min_order on */
	CHECK_EQUAL(geometry("min_objects", 4, 1, 1024).order, 0);
	CHECK_EQUAL(geometry("min_objects", 100, 1, 64).order, 1);
	CHECK_EQUAL(geometry("min_order", 10, 1, 8).order, 5); /* no slab has more than 32767 objects */
	CHECK_EQUAL(geometry("min_order", 10, 1, 8).objects, 16384);
}

static void test_impossible(void)
{
	CHECK_EQUAL(geometry(NULL, 0, 1, ((size_t)4 << 20) + 8).order, SY_ORDERS);
	CHECK_EQUAL(geometry(NULL, 0, 1, 0).order, SY_ORDERS);
}

int main(void)
{
	test_every_size_of_a_real_kernel();
	test_more_cpus_want_more_objects();
	test_waste_limits();
	test_tunables();
	test_impossible();
	return check_result();
}
