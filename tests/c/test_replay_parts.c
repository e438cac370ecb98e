/*
 * The replay program's parts, one by one: the histogram's error, ratios and strings in JSON, allocator specs and what
 * they are refused with, and the formats of /proc, against what a real machine printed.
 */
#include "check.h"

#include "core/types.h"
#include "replay/exact.h"
#include "programs/histogram.h"

/* ---- Histogram ------------------------------------------------------------------------------------------------ */

static void test_buckets(void)
{
	unsigned last = 0;

	for (uint64_t value = 0; value < (uint64_t)1 << 40; value += 1 + value / 300) {
		unsigned bucket = histogram_bucket(value);
		double middle = histogram_middle(bucket), error = middle - (double)value;

		CHECK(bucket >= last && bucket < HISTOGRAM_BUCKETS);
		CHECK(error <= 0.008 * (double)value && -error <= 0.008 * (double)value);
		last = bucket;
	}
	CHECK(histogram_bucket(UINT64_MAX) < HISTOGRAM_BUCKETS);
}

static void test_quantiles(void)
{
	static struct histogram histogram, other;

	CHECK(histogram_quantile(&histogram, 500) == 0);
	for (uint64_t value = 1; value <= 100; value++)
		histogram_add(&histogram, value);
	CHECK(histogram_quantile(&histogram, 500) == 50);
	CHECK(histogram_quantile(&histogram, 990) == 99);
	CHECK(histogram_quantile(&histogram, 999) == 100);
	histogram_add(&other, 7);
	histogram_merge(&other, &histogram);
	CHECK_EQUAL(other.total, 101);
	CHECK_EQUAL(other.counts[7], 2);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static char *text;
static size_t text_size;

static FILE *open_text(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_size);
}

static void test_ratios(void)
{
	struct json json;
	FILE *out = open_text();

	json_begin(&json, out);
	json_array(&json, NULL);
	json_ratio(&json, NULL, 1, 3);
	json_ratio(&json, NULL, 2, 3);
	json_ratio(&json, NULL, 7, 7);
	json_ratio(&json, NULL, 19999999, 10000000); /* rounds into the next whole */
	json_ratio(&json, NULL, 1, 2000000); /* half a digit, up */
	json_ratio(&json, NULL, 5, 0);
	json_ratio(&json, NULL, UINT64_MAX, UINT64_MAX / 2);
	json_rest(&json, NULL, 1, 4);
	json_rest(&json, NULL, 5, 4);
	json_rest(&json, NULL, 0, 0);
	json_array_end(&json);
	CHECK(json_end(&json));
	fclose(out);
	CHECK_TEXT(text, "[\n 0.333333,\n 0.666667,\n 1.000000,\n 2.000000,\n 0.000001,\n null,\n 2.000000,\n 0.750000,\n -0.250000,\n"
	                 " null\n]\n");
}

static void test_strings(void)
{
	struct json json;
	FILE *out = open_text();

	json_begin(&json, out);
	json_object(&json, NULL);
	json_string(&json, "a\"b\\", "tab\t, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80, bad \xff\xc3(\xed\xa0\x80");
	json_signed(&json, "min", INT64_MIN);
	json_object(&json, "empty");
	json_object_end(&json);
	json_bool(&json, "yes", true);
	json_object_end(&json);
	CHECK(json_end(&json));
	fclose(out);
	CHECK_TEXT(text, "{\n \"a\\\"b\\\\\": \"tab\\u0009, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80, bad "
	                 "\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\",\n \"min\": -9223372036854775808,\n \"empty\": {},\n \"yes\": true\n}\n");
}

static void test_full_disk(void)
{
	FILE *full = fopen("/dev/full", "w");
	struct json json;

	if (!full)
		return; /* no such device here */
	json_begin(&json, full);
	json_count(&json, NULL, 1);
	CHECK(!json_end(&json));
	fclose(full);
}

/* ---- Specs ---------------------------------------------------------------------------------------------------- */

/* The message that refuses the spec; NULL: accepted. */
static const char *verdict(const char *spec)
{
	static struct fault fault;
	struct spec parsed;

	return spec_parse(&parsed, spec, &fault) ? NULL : fault.text;
}

static void test_specs(void)
{
	struct spec spec;
	struct fault fault;

	CHECK(spec_parse(&spec, "slob:log_every=5,fit=best", &fault));
	CHECK_TEXT(spec.policy->name, "slob");
	CHECK_EQUAL(spec.tunables[0], 2);
	CHECK_EQUAL(spec.tunables[1], 5);
	CHECK(spec_parse(&spec, "slub:min_partial=auto,max_order=1", &fault));
	CHECK(spec_parse(&spec, "slob:paper", &fault) && spec.tunables[0] == 1 && spec.tunables[1] == 0);
	CHECK(spec_parse(&spec, "slob:paper,log_every=9", &fault) && spec.tunables[0] == 1 && spec.tunables[1] == 9);
	CHECK(spec_parse(&spec, "slob:paper,fit=best", &fault) && spec.tunables[0] == 2);
	CHECK(spec_parse(&spec, "malloc:system", &fault));
	CHECK(!spec.policy && !spec.library);
	CHECK(spec_parse(&spec, "malloc:/usr/lib/x.so", &fault));
	CHECK_TEXT(spec.library, "/usr/lib/x.so");
}

/* Whether a text begins like that, goes on with every policy, and ends with the ways to name a malloc. */
static bool names_all(const char *refusal, const char *begin)
{
	static const char end[] = ", malloc:system and malloc:/path/lib.so";
	size_t length = strlen(refusal);
	bool all = !strncmp(refusal, begin, strlen(begin)) && length > strlen(end) &&
	           !strcmp(refusal + length - strlen(end), end);

	for (const struct sy_policy *const *at = sy_policies; *at; at++)
		all = all && strstr(refusal, (*at)->name);
	return all;
}

static void test_refused_specs(void)
{
	CHECK_TEXT(verdict("slbu"), "no allocator is named slbu: did you mean slub?");
	CHECK_TEXT(verdict("slubb:max_order=1"), "no allocator is named slubb: did you mean slub?");
	CHECK_TEXT(verdict("mallok"), "no allocator is named mallok: did you mean malloc:system?");
	CHECK(names_all(verdict("jemalloc-5.3"), "no allocator is named jemalloc-5.3: there are yard, slub, slob, "));
	CHECK_TEXT(verdict(""), "the allocator has no name: write policy or policy:tunable=value");
	CHECK_TEXT(verdict("malloc"), "malloc: which one? Write malloc:system or malloc:/path/lib.so");
	CHECK_TEXT(verdict("slob:fti=best"), "slob has no tunable fti: did you mean fit?");
	CHECK_TEXT(verdict("slob:batchcount=1"), "slob has no tunable batchcount: it has fit, log_every, paper");
	CHECK_TEXT(verdict("slub:papr"), "slub has no tunable papr: did you mean paper?");
	CHECK_TEXT(verdict("slob:log_every=9,paper"), "slob: paper comes before all tunables: write slob:paper,tunable=value");
	CHECK_TEXT(verdict("slub:paper,min_order=1"), "slub: min_order=1 is more than max_order=0");
	CHECK_TEXT(verdict("slob:fit=bset"), "slob: fit cannot be bset: it can be next, first, best");
	CHECK_TEXT(verdict("slob:fit=worstest"), "slob: fit cannot be worstest: it can be next, first, best");
	CHECK_TEXT(verdict("slob:fit"), "slob: fit needs a value: fit=VALUE");
	CHECK_TEXT(verdict("slob:fit="), "slob: fit cannot be empty: it can be next, first, best");
	CHECK_TEXT(verdict("slob:fit=best,fit=next"), "slob: fit is given twice");
	CHECK_TEXT(verdict("slob:log_every=-1"), "slob: log_every cannot be -1: it can be 0 to 2147483647");
	CHECK_TEXT(verdict("slob:log_every=1x"), "slob: log_every cannot be 1x: it can be 0 to 2147483647");
	CHECK_TEXT(verdict("slob:log_every=99999999999999999999"),
	           "slob: log_every cannot be 99999999999999999999: it can be 0 to 2147483647");
	CHECK_TEXT(verdict("slob:"), "slob: a tunable is missing between commas: write slob:tunable=value,tunable=value");
	CHECK_TEXT(verdict("slub:min_order=3,max_order=1"), "slub: min_order=3 is more than max_order=1");
}

/* ---- /proc ---------------------------------------------------------------------------------------------------- */

/* Free lists and pageblocks as an x86-64 machine with 8 GiB had them after a day. */
static const struct sy_pages_counts machine = {
	.zone_count = 4,
	.zones = {
		{ .name = "DMA", .managed = 3840,
		  .free_blocks = { [SY_UNMOVABLE][8] = 1, [SY_MOVABLE_TYPE] = { [9] = 1, [10] = 3 } },
		  .pageblocks = { 1, 7, 0, 0 } },
		{ .name = "DMA32", .managed = 775000,
		  .free_blocks = { [SY_MOVABLE_TYPE] = { 1, 1, 4, 2, 5, 4, 3, 3, 4, 2, 752 } },
		  .pageblocks = { 0, 1528, 0, 0 } },
		{ .name = "Normal", .managed = 1800000,
		  .free_blocks = { { 507, 1305, 1031, 721, 423, 81, 90, 34, 9, 0, 0 },
		                   { 120, 22, 12, 11, 9, 4, 284, 392, 320, 207, 1342 },
		                   { 2686, 799, 604, 257, 134, 81, 21, 10, 3, 0, 0 } },
		  .pageblocks = { 99, 3358, 127, 0 } },
		{ .name = "Movable" }, /* without pages: not shown */
	},
};

static void test_buddyinfo(void)
{
	FILE *out = open_text();

	proc_buddyinfo(out, &machine);
	fclose(out);
	CHECK_TEXT(text,
	           "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
	           "Node 0, zone    DMA32      1      1      4      2      5      4      3      3      4      2    752 \n"
	           "Node 0, zone   Normal   3313   2126   1647    989    566    166    395    436    332    207   1342 \n");
}

static void test_pagetypeinfo(void)
{
	FILE *out = open_text();

	proc_pagetypeinfo(out, &machine, 9);
	fclose(out);
	CHECK_TEXT(text,
	           "Page block order: 9\n"
	           "Pages per block:  512\n"
	           "\n"
	           "Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n"
	           "Node    0, zone      DMA, type    Unmovable      0      0      0      0      0      0      0      0      1      0      0 \n"
	           "Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      3 \n"
	           "Node    0, zone      DMA, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "Node    0, zone      DMA, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "Node    0, zone    DMA32, type    Unmovable      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "Node    0, zone    DMA32, type      Movable      1      1      4      2      5      4      3      3      4      2    752 \n"
	           "Node    0, zone    DMA32, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "Node    0, zone    DMA32, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "Node    0, zone   Normal, type    Unmovable    507   1305   1031    721    423     81     90     34      9      0      0 \n"
	           "Node    0, zone   Normal, type      Movable    120     22     12     11      9      4    284    392    320    207   1342 \n"
	           "Node    0, zone   Normal, type  Reclaimable   2686    799    604    257    134     81     21     10      3      0      0 \n"
	           "Node    0, zone   Normal, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0 \n"
	           "\n"
	           "Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic \n"
	           "Node 0, zone      DMA            1            7            0            0 \n"
	           "Node 0, zone    DMA32            0         1528            0            0 \n"
	           "Node 0, zone   Normal           99         3358          127            0 \n");
}

static void test_counting_limit(void)
{
	static struct sy_pages_counts many = { .zone_count = 1, .zones = { { .name = "Normal", .managed = 1 } } };
	FILE *out = open_text();

	many.zones[0].free_blocks[SY_MOVABLE_TYPE][SY_MAX_ORDER] = 262144;
	proc_pagetypeinfo(out, &many, 9);
	fclose(out);
	CHECK(strstr(text, "      0 >100000 \n") != NULL);
}

int main(void)
{
	test_buckets();
	test_quantiles();
	test_ratios();
	test_strings();
	test_full_disk();
	test_specs();
	test_refused_specs();
	test_buddyinfo();
	test_pagetypeinfo();
	test_counting_limit();
	free(text);
	return check_result();
}
