/* Words of a line, and numbers in them; for scan.c and remarks.c. */
#ifndef SLABYARD_WORDS_H
#define SLABYARD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct word {
	const char *start, *end;
};

static inline const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static inline const char *back_over_blanks(const char *start, const char *end)
{
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return end;
}

static inline const char *word_end(const char *at, const char *end)
{
	while (at < end && *at != ' ' && *at != '\t')
		at++;
	return at;
}

static inline struct word next_word(const char *at, const char *end)
{
	struct word word = {skip_blanks(at, end), NULL};
	word.end = word_end(word.start, end);
	return word;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool word_is(struct word word, const char *text, size_t length)
{
	return (size_t)(word.end - word.start) == length && memcmp(word.start, text, length) == 0;
}
#define WORD_IS(word, text) word_is(word, text, sizeof(text) - 1)

static inline bool decimal(struct word word, uint64_t *value)
{
	uint64_t sum = 0;
	if (word.start == word.end || word.end - word.start > 20)
		return false;
	for (const char *at = word.start; at < word.end; at++) {
		unsigned digit = (unsigned char)*at - (unsigned)'0';
		if (digit > 9 || __builtin_mul_overflow(sum, (uint64_t)10, &sum) || __builtin_add_overflow(sum, (uint64_t)digit, &sum))
			return false;
	}
	*value = sum;
	return true;
}

static inline bool hexadecimal(struct word word, uint64_t *value)
{
	uint64_t sum = 0;
	if (word.start == word.end || word.end - word.start > 16)
		return false;
	for (const char *at = word.start; at < word.end; at++) {
		unsigned digit = (unsigned char)*at - (unsigned)'0';
		if (digit > 9) {
			digit = ((unsigned char)*at | 0x20u) - (unsigned)'a' + 10;
			if (digit < 10 || digit > 15)
				return false;
		}
		sum = sum << 4 | digit;
	}
	*value = sum;
	return true;
}

#endif
