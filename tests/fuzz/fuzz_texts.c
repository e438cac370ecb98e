/* What users write: allocator specs, checks of debugging, amounts, numbers. */
#include "fuzz.h"
#include "core/types.h"
#include "library/amount.h"
#include "library/debug/spec.h"
#include "library/spec.h"
#include "programs/options.h"
#include "programs/spec.h"

/* A refusal is one line, printable, and not cut off, however little room it has. */
static void line(const char *text)
{
	FUZZ_CHECK(*text && strlen(text) + 1 < sizeof(((struct sy_fault *)0)->text));
	for (; *text; text++)
		FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 127);
}

static void heap_spec(const char *text)
{
	struct sy_heap_config config;
	struct sy_fault fault = { "" };

	if (!sy_spec_parse(&config, text, &fault)) {
		line(fault.text);
		return;
	}
	for (unsigned i = 0; i < config.policy->tunable_count; i++)
		FUZZ_CHECK(config.tunables[i] == SY_TUNABLE_AUTO || (config.tunables[i] >= config.policy->tunables[i].min &&
		                                                     config.tunables[i] <= config.policy->tunables[i].max));
}

static void program_spec(const char *text)
{
	char size[] = "100", *sizes[] = { size };
	struct spec spec;
	struct fault fault = { "" };
	static FILE *out;
	struct json json;

	if (!spec_parse(&spec, text, &fault)) {
		line(fault.text);
		return;
	}
	if (!out)
		out = fopen("/dev/null", "w");
	json_begin(&json, out);
	if (spec.policy)
		spec_geometry(&json, &spec, 4, sizes, 1, &fault);
}

static void debug(const char *text)
{
	struct sy_debug_config config = { 0 };
	struct sy_fault fault = { "" };

	if (!sy__debug_parse(&config, text, &fault))
		line(fault.text);
	else
		FUZZ_CHECK(!(sy__debug_checks_of(config.text, "dentry") & ~config.checks));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t number;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	heap_spec(text);
	program_spec(text);
	debug(text);
	sy__debug_goes_on(text, strlen(text));
	sy__amount(text, strlen(text), &number);
	FUZZ_CHECK(!number_whole(text, 5, 5000, &number) || (number >= 5 && number <= 5000));
	free(text);
	return 0;
}
