/*
 * Command lines of the C programs: `--name VALUE` and `--name`, in any order; of one name the last wins. Words that are no options
 * follow them. Numbers are decimal, without a sign.
 */
#include "options.h"

#include <inttypes.h>
#include <string.h>

static const struct option *find(const struct option *options, const char *name)
{
	while (options->name && strcmp(options->name, name) != 0)
		options++;
	return options;
}

int options_read(const struct option *options, int count, char *const *words, struct fault *fault)
{
	int i = 1;

	for (; i < count && strncmp(words[i], "--", 2) == 0 && words[i][2]; i++) {
		const struct option *option = find(options, words[i]);

		if (!option->name)
			return refuse(fault, "unknown option %s: --help shows them", words[i]);
		if (!option->value)
			*option->on = true;
		else if (i + 1 == count)
			return refuse(fault, "%s needs a value", words[i]);
		else
			*option->value = words[++i];
	}
	return i;
}

bool number_read(const char **text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (digit > max || number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (at == *text || number < min)
		return false;
	*text = at;
	*value = number;
	return true;
}

bool number_whole(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t number;

	if (!number_read(&text, min, max, &number) || *text)
		return false;
	*value = number;
	return true;
}

bool option_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value, struct fault *fault)
{
	if (!text || number_whole(text, min, max, value))
		return true;
	return refuse(fault, "%s cannot be %s: give a number from %" PRIu64 " to %" PRIu64, option, text, min, max);
}

int program_status(const char *program, bool done, const struct fault *fault)
{
	if (!done)
		fprintf(stderr, "%s: %s\n", program, fault->text);
	return done ? 0 : 2;
}
