/*
 * The scratch file: what is accepted, what is refused with which message, and that no damage crashes the program.
 *
 * The fuzz test damages a good file in memory: bytes, whole fields, and its length, with a fixed seed and budget. A
 * damaged file is refused, or it still is a trace; then it is replayed under every policy, and the heap's and page
 * allocator's invariants are checked at its end. SLABYARD_FUZZ=N raises the budget.
 */
#include "check.h"
#include "replay/exact.h"
#include "replay_image.h"

#define FUZZ_IMAGES 2000u
#define POINTS 200u

/* A sanitizer's calloc is to refuse what is too large, like any other. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* The message of the parser; NULL: accepted. */
static const char *verdict(const void *bytes, size_t size)
{
	static struct fault fault;
	struct scratch scratch;

	return scratch_parse(&scratch, bytes, size, &fault) ? NULL : fault.text;
}

/* Checks that the refusal contains the words. */
static void check_refused(const struct image *image, const char *words)
{
	const char *text = verdict(image, sizeof *image);

	CHECK(text && strstr(text, words));
	if (text && !strstr(text, words))
		fprintf(stderr, "  it says: %s\n", text);
}

static void test_good(void)
{
	static struct image image;
	struct scratch scratch;
	struct fault fault;

	image_make(&image);
	CHECK_TEXT(verdict(&image, sizeof image), NULL);
	CHECK(scratch_parse(&scratch, &image, sizeof image, &fault));
	CHECK_EQUAL(scratch.event_count, IMAGE_EVENTS);
	CHECK(scratch.events == image.events);
	CHECK(scratch.run == image.run);
	scratch_close(&scratch);
}

static void test_absent_sections(void)
{
	static struct image image;
	struct scratch scratch;
	struct fault fault;

	image_make(&image);
	image.sections[0].count = 0;
	image.sections[1] = image.sections[5];
	image.header.sections = 2;
	CHECK(scratch_parse(&scratch, &image, sizeof image, &fault));
	CHECK_EQUAL(scratch.event_count + scratch.cache_count + scratch.zone_count + scratch.older_count, 0);
	image.header.sections = 1;
	check_refused(&image, "needs a section events");
}

#define REFUSED(change, words) \
	do { \
		image_make(&image); \
		change; \
		check_refused(&image, words); \
	} while (0)

static void test_refusals(void)
{
	static struct image image;

	REFUSED(image.header.magic[0] = 'X', "no scratch file");
	REFUSED(image.header.version = SCRATCH_VERSION + 1, "version 4");
	REFUSED(image.header.sections = 10, "cut short");
	REFUSED(image.sections[1].name[0] = 'X', "unknown name");
	REFUSED(image.sections[1] = image.sections[0], "twice");
	REFUSED(image.sections[0].record_bytes = 16, "16 bytes, expected 32");
	REFUSED(image.sections[0].record_bytes = 0, "0 bytes, expected 32");
	REFUSED(image.sections[0].offset += 8, "not aligned");
	REFUSED(image.sections[0].count = UINT64_MAX, "cut short");
	REFUSED(image.sections[6].count = 2, "an order of 2 caches for 3");
	REFUSED(image.order[1] = image.order[0], "twice in the order");
	REFUSED(image.laid[IMAGE_OLDER - 2].cache = NO_CACHE, "another object in each list");
	REFUSED(image.laid[0].handle = image.laid[IMAGE_OLDER - 2].handle, "has the handle of another one");
	REFUSED(image.laid[0].handle = IMAGE_HANDLES - 1, "another object in each list");
	REFUSED(image.graces[1].ends_ns = 4999, "ends before it begins, or before others");
	REFUSED(image.graces[0].begins_ns = 10001, "ends before it begins, or before others");
	REFUSED(image.order[2] = IMAGE_CACHES, "out of range");
	REFUSED(image.sections[0].offset = (uint64_t)1 << 63, "cut short");
	REFUSED(image.run->cpus = 0, "0 CPUs");
	REFUSED(image.run->cpus = SY_MAX_SLOTS + 1, "513 CPUs");
	REFUSED(image.run->nodes = 0, "memory nodes");
	REFUSED(image.run->pageblock_order = 11, "order 11");
	REFUSED(image.run->handles = UINT32_MAX, "handles");
	REFUSED(image.run->handles = 3, "out of range");
	REFUSED(image.run->call_sites = UINT32_MAX, "call sites");
	REFUSED(image.run->call_sites = 1, "call site out of range");
	REFUSED(image.run->snapshots = 0, "event 49 has a number of a snapshot");
	REFUSED(memset(image.caches[0].name, 'x', SY_NAME_BYTES), "name of cache 0");
	REFUSED(image.caches[1].object_size = 0, "objects of 0 bytes");
	REFUSED(image.caches[1].align = 48, "no power of two");
	REFUSED(image.caches[1].flags = SY_CACHE_KMALLOC, "unknown flags");
	REFUSED(image.zones[1].node = 1, "memory node 1 of 1");
	REFUSED(image.zones[1].managed = 20000, "impossible bounds");
	REFUSED(image.free_blocks->zone = 2, "free blocks of zone 2");
	REFUSED(image.older[1].handle = 0, "handle of another one");
	REFUSED(image.older[1].cache = IMAGE_CACHES, "does not exist");
	REFUSED(image.events[5].kind = EVENT_KINDS, "event 5 is of an unknown kind");
	REFUSED(image.events[5].flags = 1u << 20, "unknown flags");
	REFUSED(image.events[5].node = 1, "memory node");
	REFUSED(image.events[5].node = -2, "memory node");
	REFUSED(image.events[7].time_ns = 0, "event 7 is earlier");
	REFUSED(image.events[0].kind = EVENT_KFREE; image.events[0].handle = 40, "event 0 frees a handle that is not in use");
	REFUSED(image.events[0].kind = EVENT_PAGE_ALLOC; image.events[0].order = 11, "order above 10");
	REFUSED(image.events[0].kind = EVENT_KMALLOC; image.events[0].handle = 0, "allocates a handle that is in use");
	REFUSED(image.events[0].kind = EVENT_CACHE_ALLOC; image.events[0].cache = IMAGE_CACHES, "cache that does not exist");
}

/* Every shorter length is refused, and nothing is read beyond it. */
static void test_truncation(void)
{
	static struct image image;

	image_make(&image);
	for (size_t size = 0; size < sizeof image - 64; size += size < 512 ? 1 : 61) {
		void *copy = aligned_alloc(SCRATCH_ALIGN, (size + SCRATCH_ALIGN) & ~(size_t)(SCRATCH_ALIGN - 1));

		CHECK(copy != NULL);
		if (!copy)
			return;
		memcpy(copy, &image, size);
		CHECK(verdict(copy, size) != NULL);
		free(copy);
	}
}

static void test_files(void)
{
	struct scratch scratch;
	struct fault fault;

	CHECK(!scratch_open(&scratch, "/nonexistent/trace.scratch", &fault));
	CHECK(strstr(fault.text, "cannot open /nonexistent/trace.scratch: No such file") != NULL);
	CHECK(!scratch_open(&scratch, "/dev/null", &fault));
	CHECK(strstr(fault.text, "no regular file") != NULL);
}

/* ---- Fuzzing -------------------------------------------------------------------------------------------------- */

/* Small values and bounds are where checks go wrong. */
static uint64_t odd_value(uint64_t *random)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 10, 11, 47, 48, 255, 256, 4095, 65535, 1u << 20, 1u << 24, 1u << 28,
		                           INT32_MAX, UINT32_MAX, (uint64_t)1 << 36, (uint64_t)1 << 62, INT64_MAX, UINT64_MAX };
	uint64_t choice = check_random(random) % (sizeof values / sizeof *values + 1);

	return choice < sizeof values / sizeof *values ? values[choice] : check_random(random);
}

/* Headers, caches, zones and the run are small, and events many: each section gets its share of damage. */
static size_t odd_place(const struct image *image, uint64_t *random)
{
	const struct scratch_section *section = &image->sections[check_random(random) % IMAGE_SECTIONS];
	size_t bytes = (size_t)section->count * section->record_bytes;

	if (check_random(random) % 8 == 0)
		return (size_t)(check_random(random) % offsetof(struct image, events));
	return (size_t)(section->offset + check_random(random) % bytes);
}

static void damage(struct image *image, const struct image *good, uint64_t *random)
{
	unsigned char *bytes = (unsigned char *)image;

	for (uint64_t count = 1 + check_random(random) % 3; count; count--) {
		size_t place = odd_place(good, random), width = (size_t)1 << check_random(random) % 4;
		uint64_t value = odd_value(random);

		place &= ~(width - 1);
		memcpy(bytes + place, &value, width);
	}
}

/* Damage may ask for a simulated machine that an emulator can't hold. */
static bool is_huge(const struct scratch *scratch)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i < scratch->zone_count; i++)
		end = scratch->zones[i].start_page + scratch->zones[i].pages;
	return end > (uint64_t)1 << 22;
}

/* Replays what was accepted; true: it came to its end. */
static bool replay(const struct scratch *scratch, const char *allocator)
{
	struct pass_options options = { .points = POINTS, .allow_failures = true };
	struct stage stage;
	struct exact exact;
	struct spec spec;
	struct fault fault;
	bool good;

	CHECK(spec_parse(&spec, allocator, &fault));
	if (!stage_prepare(&stage, scratch, spec.policy, &options, &fault))
		return false;
	good = stage_open(&stage, &spec, &fault) && exact_run(&exact, &stage, false, &fault);
	if (good && stage.driver.heap && stage.driver.memory_pages < 1u << 20) {
		CHECK_FINE(sy_heap_check(stage.driver.heap));
		CHECK_FINE(sy_pages_check(stage.driver.pages));
	}
	if (good)
		exact_release(&exact);
	stage_close(&stage);
	return good;
}

static void test_fuzz(void)
{
	static const char *const allocators[] = { "slub", "slob", "slob:fit=best", "malloc:system" };
	static struct image good, image;
	const char *budget = getenv("SLABYARD_FUZZ");
	uint64_t random = 7, images = budget ? strtoull(budget, NULL, 10) : FUZZ_IMAGES, accepted = 0, replayed = 0;

	image_make(&good);
	for (uint64_t i = 0; i < images; i++) {
		struct scratch scratch;
		struct fault fault;
		size_t size = check_random(&random) % 16 ? sizeof image : (size_t)(check_random(&random) % sizeof image);

		image = good;
		damage(&image, &good, &random);
		if (!scratch_parse(&scratch, &image, size, &fault)) {
			CHECK(strlen(fault.text) > 20);
			continue;
		}
		accepted++;
		if (is_huge(&scratch) && check_emulated("a huge simulated machine"))
			continue;
		replayed += replay(&scratch, allocators[i % 4]);
	}
	CHECK(accepted > images / 20 && accepted < images);
	CHECK(replayed > images / 40);
}

int main(void)
{
	test_good();
	test_absent_sections();
	test_refusals();
	test_truncation();
	test_files();
	test_fuzz();
	return check_result();
}
