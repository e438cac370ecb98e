/*
 * Allocator specs, and what can be said of an allocator without running it.
 *
 *   slub                                   a policy with its defaults
 *   slub:min_partial=0,max_order=1         with tunables; a value is a number, the name of a choice, or auto
 *   malloc:system   malloc:/path/lib.so    the C library's malloc, or that of a library
 *
 * Everything comes from the policies' own tables (struct sy_policy, struct sy_tunable): this file names no policy. A
 * user who mistypes a name is shown the nearest one that exists, by edit distance (insertions, deletions,
 * substitutions and swaps of neighbours; Damerau 1964), if it is near enough to be what was meant; otherwise all of
 * them. One who gives an impossible value is shown the possible ones.
 *
 * Two tunables named min_X and max_X bound the same thing, whatever it is: a minimum above the maximum is refused
 * here, as no policy can make sense of it.
 */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MALLOC_PREFIX "malloc:"
#define LONGEST_NAME 32u

/* ---- Nearest names -------------------------------------------------------------------------------------------- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits from one word to the other. Longer words count as far. */
static unsigned distance(const char *a, size_t a_length, const char *b)
{
	unsigned rows[3][LONGEST_NAME + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t b_length = strlen(b);

	if (a_length > LONGEST_NAME || b_length > LONGEST_NAME)
		return LONGEST_NAME;
	for (unsigned j = 0; j <= b_length; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a_length; i++) {
		unsigned *oldest = before;

		row[0] = i;
		for (unsigned j = 1; j <= b_length; j++) {
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_length];
}

/* The best candidate so far for a mistyped word. */
struct nearest {
	const char *word;
	size_t length;
	const char *name;
	unsigned edits;
};

static void consider(struct nearest *nearest, const char *name)
{
	unsigned edits = distance(nearest->word, nearest->length, name);

	if (!nearest->name || edits < nearest->edits) {
		nearest->name = name;
		nearest->edits = edits;
	}
}

/* A third of the word may be wrong, and always one letter. */
static bool near_enough(const struct nearest *nearest)
{
	return nearest->name && nearest->edits <= 1 + nearest->length / 3;
}

/* Appends to a line in a fixed buffer, which it never overruns. */
__attribute__((format(printf, 3, 4))) static void append(char *line, size_t size, const char *format, ...)
{
	size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, size - used, format, arguments);
	va_end(arguments);
}

static bool refuse_policy(const char *text, size_t length, struct fault *fault)
{
	struct nearest nearest = { .word = text, .length = length };
	char names[200] = "";

	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		consider(&nearest, (*at)->name);
		append(names, sizeof names, "%s, ", (*at)->name);
	}
	consider(&nearest, "malloc");
	if (near_enough(&nearest))
		return refuse(fault, "no allocator is named %.*s: did you mean %s?", (int)length, text,
		              strcmp(nearest.name, "malloc") == 0 ? "malloc:system" : nearest.name);
	return refuse(fault, "no allocator is named %.*s: there are %smalloc:system and malloc:/path/lib.so", (int)length, text,
	              names);
}

static bool refuse_tunable(const struct sy_policy *policy, const char *text, size_t length, struct fault *fault)
{
	struct nearest nearest = { .word = text, .length = length };
	char names[300] = "";

	for (unsigned i = 0; i < policy->tunable_count; i++) {
		consider(&nearest, policy->tunables[i].name);
		append(names, sizeof names, "%s%s", i ? ", " : "", policy->tunables[i].name);
	}
	if (!policy->tunable_count)
		return refuse(fault, "%s has no tunables", policy->name);
	if (near_enough(&nearest))
		return refuse(fault, "%s has no tunable %.*s: did you mean %s?", policy->name, (int)length, text, nearest.name);
	return refuse(fault, "%s has no tunable %.*s: it has %s", policy->name, (int)length, text, names);
}

static bool refuse_value(const struct sy_policy *policy, const struct sy_tunable *tunable, const char *text,
                         size_t length, struct fault *fault)
{
	char possible[200] = "";

	if (tunable->choices) {
		struct nearest nearest = { .word = text, .length = length };

		for (int64_t i = 0; i <= tunable->max; i++) {
			consider(&nearest, tunable->choices[i]);
			append(possible, sizeof possible, "%s%s", i ? ", " : "", tunable->choices[i]);
		}
		if (near_enough(&nearest))
			return refuse(fault, "%s: %s cannot be %.*s: did you mean %s? It can be %s", policy->name, tunable->name,
			              (int)length, text, nearest.name, possible);
	} else {
		append(possible, sizeof possible, "%" PRId64 " to %" PRId64, tunable->min, tunable->max);
	}
	if (tunable->default_value == SY_TUNABLE_AUTO)
		append(possible, sizeof possible, " or auto");
	return refuse(fault, "%s: %s cannot be %s%.*s: it can be %s", policy->name, tunable->name, length ? "" : "empty",
	              (int)length, text, possible);
}

/* ---- Parsing -------------------------------------------------------------------------------------------------- */

static bool is_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && memcmp(word, text, length) == 0;
}

static bool parse_integer(const char *text, size_t length, int64_t *value)
{
	char digits[24], *end;

	if (!length || length >= sizeof digits || !strchr("-0123456789", *text))
		return false;
	memcpy(digits, text, length);
	digits[length] = '\0';
	errno = 0;
	*value = strtoll(digits, &end, 10);
	return !errno && !*end;
}

bool spec_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= min && *value <= max;
}

static bool parse_value(const struct sy_tunable *tunable, const char *text, size_t length, int64_t *value)
{
	if (tunable->default_value == SY_TUNABLE_AUTO && is_word("auto", text, length)) {
		*value = SY_TUNABLE_AUTO;
		return true;
	}
	for (int64_t i = 0; tunable->choices && i <= tunable->max; i++) {
		if (is_word(tunable->choices[i], text, length)) {
			*value = i;
			return true;
		}
	}
	return !tunable->choices && parse_integer(text, length, value) && *value >= tunable->min && *value <= tunable->max;
}

/* One tunable=value; given remembers which ones were. */
static bool parse_setting(struct spec *spec, const char *text, size_t length, uint32_t *given, struct fault *fault)
{
	const struct sy_policy *policy = spec->policy;
	const char *equals = memchr(text, '=', length);
	size_t name_length = equals ? (size_t)(equals - text) : length;

	for (unsigned i = 0; i < policy->tunable_count; i++) {
		const struct sy_tunable *tunable = &policy->tunables[i];

		if (!is_word(tunable->name, text, name_length))
			continue;
		if (!equals)
			return refuse(fault, "%s: %s needs a value: %s=VALUE", policy->name, tunable->name, tunable->name);
		if (*given & 1u << i)
			return refuse(fault, "%s: %s is given twice", policy->name, tunable->name);
		*given |= 1u << i;
		if (!parse_value(tunable, equals + 1, length - name_length - 1, &spec->tunables[i]))
			return refuse_value(policy, tunable, equals + 1, length - name_length - 1, fault);
		return true;
	}
	if (!name_length)
		return refuse(fault, "%s: a tunable is missing between commas: write %s:tunable=value,tunable=value", policy->name,
		              policy->name);
	return refuse_tunable(policy, text, name_length, fault);
}

/* Refuses a minimum above its maximum. */
static bool check_bounds(const struct spec *spec, struct fault *fault)
{
	const struct sy_policy *policy = spec->policy;

	for (unsigned i = 0; i < policy->tunable_count; i++) {
		const char *low = policy->tunables[i].name;

		for (unsigned j = 0; strncmp(low, "min_", 4) == 0 && j < policy->tunable_count; j++) {
			const char *high = policy->tunables[j].name;

			if (strncmp(high, "max_", 4) == 0 && strcmp(low + 4, high + 4) == 0 &&
			    spec->tunables[j] != SY_TUNABLE_AUTO && spec->tunables[i] > spec->tunables[j])
				return refuse(fault, "%s: %s=%" PRId64 " is more than %s=%" PRId64, policy->name, low,
				              spec->tunables[i], high, spec->tunables[j]);
		}
	}
	return true;
}

static bool parse_settings(struct spec *spec, const char *text, struct fault *fault)
{
	uint32_t given = 0;

	for (;;) {
		size_t length = strcspn(text, ",");

		if (!parse_setting(spec, text, length, &given, fault))
			return false;
		if (!text[length])
			return check_bounds(spec, fault);
		text += length + 1;
	}
}

static bool parse_malloc(struct spec *spec, const char *library, struct fault *fault)
{
	if (!*library)
		return refuse(fault, "malloc: which one? Write malloc:system or malloc:/path/lib.so");
	spec->policy = NULL;
	spec->library = strcmp(library, "system") == 0 ? NULL : library;
	return true;
}

bool spec_parse(struct spec *spec, const char *text, struct fault *fault)
{
	size_t length = strcspn(text, ":");
	struct sy_heap_config defaults;

	*spec = (struct spec){ 0 };
	if (is_word("malloc", text, length))
		return parse_malloc(spec, text[length] ? text + length + 1 : "", fault);
	if (!length)
		return refuse(fault, "the allocator has no name: write policy or policy:tunable=value");
	for (const struct sy_policy *const *at = sy_policies; *at && !spec->policy; at++)
		if (is_word((*at)->name, text, length))
			spec->policy = *at;
	if (!spec->policy)
		return refuse_policy(text, length, fault);
	sy_heap_defaults(spec->policy, &defaults);
	memcpy(spec->tunables, defaults.tunables, sizeof spec->tunables);
	return !text[length] || parse_settings(spec, text + length + 1, fault);
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

static void list_tunable(struct json *json, const struct sy_tunable *tunable)
{
	json_object(json, NULL);
	json_string(json, "name", tunable->name);
	if (tunable->default_value == SY_TUNABLE_AUTO)
		json_string(json, "default", "auto");
	else if (tunable->choices)
		json_string(json, "default", tunable->choices[tunable->default_value]);
	else
		json_signed(json, "default", tunable->default_value);
	json_signed(json, "min", tunable->min);
	json_signed(json, "max", tunable->max);
	if (tunable->choices) {
		json_array(json, "choices");
		for (int64_t i = 0; i <= tunable->max; i++)
			json_string(json, NULL, tunable->choices[i]);
		json_array_end(json);
	} else {
		json_null(json, "choices");
	}
	json_string(json, "meaning", tunable->meaning);
	json_object_end(json);
}

void spec_list(struct json *json)
{
	json_array(json, NULL);
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		json_object(json, NULL);
		json_string(json, "name", (*at)->name);
		json_string(json, "summary", (*at)->summary);
		json_string(json, "paper", (*at)->paper);
		json_array(json, "tunables");
		for (unsigned i = 0; i < (*at)->tunable_count; i++)
			list_tunable(json, &(*at)->tunables[i]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The geometry of one size, if there is one. */
static bool geometry_of(const struct spec *spec, unsigned cpus, const char *text, uint64_t *size,
                        struct sy_geometry *geometry, struct fault *fault)
{
	const uint64_t most = (uint64_t)SY_PAGE_SIZE << SY_MAX_ORDER;

	if (!spec_number(text, 1, most, size))
		return refuse(fault, "%s is no object size: give bytes, 1 to %" PRIu64, text, most);
	if (!spec->policy->geometry(spec->tunables, cpus, (size_t)*size, geometry))
		return refuse(fault, "no slab of %s holds objects of %s bytes", spec->policy->name, text);
	return true;
}

bool spec_geometry(struct json *json, const struct spec *spec, unsigned cpus, char *const *sizes, int count,
                   struct fault *fault)
{
	struct sy_geometry geometry;
	uint64_t size;

	if (!spec->policy || !spec->policy->geometry)
		return refuse(fault, "%s has no slabs of one size of object, hence no geometry",
		              spec->policy ? spec->policy->name : "malloc");
	if (!count)
		return refuse(fault, "geometry of which sizes? Give object sizes in bytes");
	for (int i = 0; i < count; i++)
		if (!geometry_of(spec, cpus, sizes[i], &size, &geometry, fault))
			return false;
	json_array(json, NULL);
	for (int i = 0; i < count && geometry_of(spec, cpus, sizes[i], &size, &geometry, fault); i++) {
		json_object(json, NULL);
		json_count(json, "size", size);
		json_count(json, "objects_per_slab", geometry.objects);
		json_count(json, "pages_per_slab", (uint64_t)1 << geometry.order);
		json_count(json, "wasted_bytes", geometry.wasted);
		json_object_end(json);
	}
	json_array_end(json);
	return true;
}
