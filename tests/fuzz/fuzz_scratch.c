/* The replay's file: a good one with any bytes changed. A file that is accepted is replayed, and must be as good as it
 * claims. */
#define _GNU_SOURCE /* clock_gettime */
#include "check.h"
#include "core/types.h"
#include "fuzz.h"
#include "replay/exact.h"
#include "replay_image.h"

#define MOST_NUMBERS 4096u /* handles, call sites, snapshots: more are no mistake, but take memory */
#define MOST_PAGES 65536u

static struct image image;

static void change(struct bytes *bytes)
{
	while (bytes->left > 2) {
		size_t place = take_scaled(bytes) % sizeof(image), count = 1 + take8(bytes) % 8;

		for (; count && place < sizeof(image); count--)
			((uint8_t *)&image)[place++] = (uint8_t)take8(bytes);
	}
}

static bool is_small(const struct scratch *scratch)
{
	uint64_t pages = 0;

	for (uint64_t i = 0; i < scratch->zone_count; i++)
		pages += scratch->zones[i].pages > MOST_PAGES ? MOST_PAGES + 1 : scratch->zones[i].pages;
	return scratch->run->handles <= MOST_NUMBERS && scratch->run->call_sites <= MOST_NUMBERS &&
	       scratch->run->snapshots <= MOST_NUMBERS && pages <= MOST_PAGES && scratch->run->span_ns < UINT64_C(1) << 40;
}

static void replay(const struct scratch *scratch, const struct spec *spec)
{
	struct pass_options options = { .driver.memory = 64 << 20, .points = 10, .allow_failures = true };
	struct stage stage;
	struct exact exact;
	struct fault fault = { "" };

	if (!stage_prepare(&stage, scratch, true, &options, &fault)) {
		FUZZ_CHECK(*fault.text);
		return;
	}
	if (!stage_open(&stage, spec, &fault)) {
		FUZZ_CHECK(*fault.text);
		stage_close(&stage);
		return;
	}
	if (exact_run(&exact, &stage, false, &fault))
		exact_release(&exact);
	fuzz_fine(sy_heap_check(stage.driver.heap));
	fuzz_fine(sy_pages_check(stage.driver.pages));
	stage_close(&stage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct scratch scratch;
	struct fault fault = { "" };
	struct spec spec;

	FUZZ_CHECK(spec_parse(&spec, policy_of(take8(&bytes))->name, &fault));
	image_make(&image);
	change(&bytes);
	if (!scratch_parse(&scratch, &image, sizeof(image), &fault)) {
		FUZZ_CHECK(*fault.text);
		return 0;
	}
	if (is_small(&scratch))
		replay(&scratch, &spec);
	scratch_close(&scratch);
	return 0;
}
