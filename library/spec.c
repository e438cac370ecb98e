/*
 * Allocator specs: a policy and its tunables in one word.
 *
 *   slub                                   a policy with its defaults
 *   slub:min_partial=0,max_order=1         with tunables; a value is a number, the name of a choice, or auto
 *   slub:debug=FZ,dentry                   with checks (debug/spec.c)
 *   slub:paper,min_partial=5               with a preset of the policy, whose settings the tunables behind it change
 *
 * Everything comes from the policies' own tables (struct sy_policy, struct sy_tunable, struct sy_preset): this file names no policy.
 *
 * A mistyped name is answered with the nearest one that exists, by edit distance (insertions, deletions, substitutions and swaps
 * of neighbours; Damerau 1964), if it is near enough to be what was meant; otherwise with all of them. An impossible value is
 * answered with the possible ones.
 *
 * Two tunables named min_X and max_X bound the same thing. A minimum above the maximum is refused here, for all policies.
 *
 * Nothing here allocates memory: the library may be what serves malloc.
 */
#include "spec.h"

#include "debug/spec.h"

#include "core/types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 32u
#define MOST_SHOWN 100u /* bytes */

/* ---- Words ---------------------------------------------------------------------------------------------------- */

/* As strcspn with one character. In some C libraries strcspn is large, and its pages are not in memory when a program starts. */
static size_t length_to(const char *text, char mark)
{
	const char *found = strchr(text, mark);

	return found ? (size_t)(found - text) : strlen(text);
}

/* Without memcmp, for the same reason. */
static bool is_word(const char *word, const char *text, size_t length)
{
	while (length && *word && *word == *text) {
		word++;
		text++;
		length--;
	}
	return !length && !*word;
}

/* ---- Messages ------------------------------------------------------------------------------------------------- */

/* How many bytes of a user's word a message shows. It does not cut a UTF-8 character. */
static int shown(const char *word, size_t length)
{
	if (length > MOST_SHOWN)
		for (length = MOST_SHOWN; length && (word[length] & 0xc0) == 0x80; length--)
			;
	return (int)length;
}

/* Replaces control characters, so that a message is one line and does nothing to a terminal. */
static void clean(char *line)
{
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == '\177')
			*line = '?';
}

void sy__spec_show(char *line, size_t size, const char *spec)
{
	size_t length = strlen(spec);

	snprintf(line, size, "%.*s%s", shown(spec, length), spec, length > MOST_SHOWN ? "..." : "");
	clean(line);
}

/* Writes the line for the user; false always, so that callers return it. */
__attribute__((format(printf, 2, 3), cold)) static bool refuse(struct sy_fault *fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault->text, sizeof fault->text, format, arguments);
	va_end(arguments);
	clean(fault->text);
	return false;
}

/* ---- Nearest names -------------------------------------------------------------------------------------------- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The edit distance of two words. Words that are too long count as far. */
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

/* One letter may be wrong, and another for each third letter of the word. */
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

static bool refuse_policy(const char *text, size_t length, const struct sy__spec_other *other, struct sy_fault *fault)
{
	struct nearest nearest = { .word = text, .length = length };
	char names[200] = "";

	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		if (is_word((*at)->name, text, length_to(text, ',')))
			return refuse(fault, "%.*s: write a colon behind %s: %s:tunable=value", shown(text, length), text, (*at)->name, (*at)->name);
		consider(&nearest, (*at)->name);
		append(names, sizeof names, "%s%s", at == sy_policies ? "" : !at[1] && !other ? " and " : ", ", (*at)->name);
	}
	if (other)
		consider(&nearest, other->name);
	if (near_enough(&nearest))
		return refuse(fault, "no allocator is named %.*s: did you mean %s?", shown(text, length), text,
		              other && nearest.name == other->name ? other->example : nearest.name);
	return refuse(fault, "no allocator is named %.*s: there are %s%s%s", shown(text, length), text, names, other ? ", " : "",
	              other ? other->all : "");
}

/* The policy's preset of that name, or NULL. */
static const struct sy_preset *find_preset(const struct sy_policy *policy, const char *text, size_t length)
{
	for (unsigned i = 0; i < policy->preset_count; i++)
		if (is_word(policy->presets[i].name, text, length))
			return &policy->presets[i];
	return NULL;
}

static bool refuse_tunable(const struct sy_policy *policy, const char *text, size_t length, struct sy_fault *fault)
{
	struct nearest nearest = { .word = text, .length = length };
	char names[300] = "";

	if (find_preset(policy, text, length))
		return refuse(fault, "%s: %.*s comes before all tunables: write %s:%.*s,tunable=value", policy->name, (int)length, text,
		              policy->name, (int)length, text);
	for (unsigned i = 0; i < policy->tunable_count; i++) {
		consider(&nearest, policy->tunables[i].name);
		append(names, sizeof names, "%s%s", i ? ", " : "", policy->tunables[i].name);
	}
	for (unsigned i = 0; i < policy->preset_count; i++) {
		consider(&nearest, policy->presets[i].name);
		append(names, sizeof names, ", %s", policy->presets[i].name);
	}
	if (!policy->tunable_count)
		return refuse(fault, "%s has no tunables", policy->name);
	if (near_enough(&nearest))
		return refuse(fault, "%s has no tunable %.*s: did you mean %s?", policy->name, shown(text, length), text, nearest.name);
	return refuse(fault, "%s has no tunable %.*s: it has %s", policy->name, shown(text, length), text, names);
}

static bool refuse_value(const struct sy_policy *policy, const struct sy_tunable *tunable, const char *text,
                         size_t length, struct sy_fault *fault)
{
	char possible[200] = "";

	for (unsigned i = 0; i < sy_tunable_choices(tunable); i++)
		append(possible, sizeof possible, "%s%s", i ? ", " : "", tunable->choices[i]);
	if (!tunable->choices)
		append(possible, sizeof possible, "%" PRId64 " to %" PRId64, tunable->min, tunable->max);
	if (tunable->default_value == SY_TUNABLE_AUTO)
		append(possible, sizeof possible, " or auto");
	return refuse(fault, "%s: %s cannot be %s%.*s: it can be %s%s", policy->name, tunable->name, length ? "" : "empty",
	              shown(text, length), text, possible, tunable->combines ? ", or some joined by +" : "");
}

/* ---- Parsing -------------------------------------------------------------------------------------------------- */

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

/* What a choice stands for by itself. Choices that combine are bits. */
static int64_t value_of(const struct sy_tunable *tunable, unsigned choice)
{
	if (!tunable->combines || choice == 0)
		return choice;
	return choice == sy_tunable_choices(tunable) - 1 ? tunable->max : (int64_t)1 << (choice - 1);
}

void sy__spec_value(char *text, size_t size, const struct sy_tunable *tunable, int64_t value)
{
	unsigned choices = sy_tunable_choices(tunable);

	*text = '\0';
	for (unsigned i = 0; i < choices; i++)
		if (value == value_of(tunable, i)) {
			append(text, size, "%s", tunable->choices[i]);
			return;
		}
	for (unsigned i = 1; tunable->combines && i < choices - 1; i++)
		if (value & value_of(tunable, i))
			append(text, size, "%s%s", *text ? "+" : "", tunable->choices[i]);
	if (!*text)
		append(text, size, "%" PRId64, value);
}

/* Choices joined by +. */
static bool parse_combined(const struct sy_tunable *tunable, const char *text, size_t length, int64_t *value)
{
	for (*value = 0;; text++, length--) {
		size_t word = length_to(text, '+') < length ? length_to(text, '+') : length;
		unsigned choice = 1;

		while (choice < sy_tunable_choices(tunable) && !is_word(tunable->choices[choice], text, word))
			choice++;
		if (choice == sy_tunable_choices(tunable))
			return false;
		*value |= value_of(tunable, choice);
		text += word;
		length -= word;
		if (!length)
			return true;
	}
}

static bool parse_value(const struct sy_tunable *tunable, const char *text, size_t length, int64_t *value)
{
	if (tunable->default_value == SY_TUNABLE_AUTO && is_word("auto", text, length)) {
		*value = SY_TUNABLE_AUTO;
		return true;
	}
	for (unsigned i = 0; i < sy_tunable_choices(tunable); i++) {
		if (is_word(tunable->choices[i], text, length)) {
			*value = value_of(tunable, i);
			return true;
		}
	}
	if (tunable->combines)
		return parse_combined(tunable, text, length, value);
	return !tunable->choices && parse_integer(text, length, value) && *value >= tunable->min && *value <= tunable->max;
}

/* Parses one tunable=value. given: a bit for each tunable that was set. */
static bool parse_setting(struct sy_heap_config *config, const char *text, size_t length, uint32_t *given, struct sy_fault *fault)
{
	const struct sy_policy *policy = config->policy;
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
		if (!parse_value(tunable, equals + 1, length - name_length - 1, &config->tunables[i]))
			return refuse_value(policy, tunable, equals + 1, length - name_length - 1, fault);
		return true;
	}
	if (!name_length)
		return refuse(fault, "%s: a tunable is missing between commas: write %s:tunable=value,tunable=value", policy->name,
		              policy->name);
	return refuse_tunable(policy, text, name_length, fault);
}

/* Refuses a minimum above its maximum. */
static bool check_bounds(const struct sy_heap_config *config, struct sy_fault *fault)
{
	const struct sy_policy *policy = config->policy;

	for (unsigned i = 0; i < policy->tunable_count; i++) {
		const char *low = policy->tunables[i].name;

		for (unsigned j = 0; strncmp(low, "min_", 4) == 0 && j < policy->tunable_count; j++) {
			const char *high = policy->tunables[j].name;

			if (strncmp(high, "max_", 4) == 0 && strcmp(low + 4, high + 4) == 0 &&
			    config->tunables[j] != SY_TUNABLE_AUTO && config->tunables[i] > config->tunables[j])
				return refuse(fault, "%s: %s=%" PRId64 " is more than %s=%" PRId64, policy->name, low,
				              config->tunables[i], high, config->tunables[j]);
		}
	}
	return true;
}

#define DEBUG "debug="

/* The value of debug= goes on behind commas, as far as there are patterns and words of it. */
static size_t setting_length(const char *text)
{
	size_t length = length_to(text, ',');

	while (strncmp(text, DEBUG, strlen(DEBUG)) == 0 && text[length] &&
	       sy__debug_goes_on(text + length + 1, length_to(text + length + 1, ',')))
		length += 1 + length_to(text + length + 1, ',');
	return length;
}

static bool parse_debug(struct sy_heap_config *config, const char *text, size_t length, struct sy_fault *fault)
{
	char value[sizeof(config->debug.text) + 1];

	snprintf(value, sizeof(value), "%.*s", (int)(length < sizeof(value) ? length : sizeof(value)), text);
	return sy__debug_parse(&config->debug, value, fault);
}

static bool parse_tunables(struct sy_heap_config *config, const char *text, struct sy_fault *fault)
{
	uint32_t given = 0;

	for (;;) {
		size_t length = setting_length(text), name = strlen(DEBUG);

		if (strncmp(text, DEBUG, name) == 0) {
			if (!parse_debug(config, text + name, length - name, fault))
				return false;
		} else if (!parse_setting(config, text, length, &given, fault)) {
			return false;
		}
		if (!text[length])
			return true;
		text += length + 1;
	}
}

static bool parse_settings(struct sy_heap_config *config, const char *text, struct sy_fault *fault)
{
	size_t length = length_to(text, ',');
	const struct sy_preset *preset = find_preset(config->policy, text, length);

	if (preset && !parse_tunables(config, preset->settings, fault))
		return false;
	if (preset && !text[length])
		return check_bounds(config, fault);
	return parse_tunables(config, preset ? text + length + 1 : text, fault) && check_bounds(config, fault);
}

bool sy__spec_parse(struct sy_heap_config *config, const char *text, const struct sy__spec_other *other,
                    struct sy_fault *fault)
{
	size_t length = text ? length_to(text, ':') : 0;
	const struct sy_policy *policy = NULL;

	if (!length)
		return refuse(fault, "the allocator has no name: write policy or policy:tunable=value");
	for (const struct sy_policy *const *at = sy_policies; *at && !policy; at++)
		if (is_word((*at)->name, text, length))
			policy = *at;
	if (!policy)
		return refuse_policy(text, length, other, fault);
	sy_heap_defaults(policy, config);
	config->debug.hooks = &sy__debug_program;
	return !text[length] || parse_settings(config, text + length + 1, fault);
}

bool sy_spec_parse(struct sy_heap_config *config, const char *text, struct sy_fault *fault)
{
	return sy__spec_parse(config, text, NULL, fault);
}
