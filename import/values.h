/*
 * The values that events print, in all their forms. Kernels, tracers and tools print one field in several ways:
 *
 *     pointers    0xffff8881027dbb60, ffff8881027dbb60, (nil), (null); decimal in Perfetto's text; (____ptrval____) before the
 *                 kernel can hash them
 *     numbers     56, 0x38; tracefs's option `fields` puts the other form in parentheses behind: 0x38 (56), which is a word of its own
 *     signed      -1, 0xffffffff
 *     truth       true, 1, (1)
 *     times       227.770745, 227.770745123, 227,770745; -0.000012 before a chosen zero; 35553us in latency format; a bare count of clocks that
 *                 count; a date and time of day (perf script -F +tod)
 */
#ifndef SLABYARD_VALUES_H
#define SLABYARD_VALUES_H

#include "words.h"

/* What a record's time counts from, so that times before a trace's zero stay positive. */
#define TIME_ZERO ((uint64_t)1 << 62)
#define MAX_TIME ((uint64_t)1 << 61) /* ns, 73 years from there: a later time is damaged, and a replay takes none */
#define DAY_SECONDS 86400u

static inline bool has_0x(struct word word)
{
	return word.end - word.start > 2 && word.start[0] == '0' && (word.start[1] | 0x20) == 'x';
}

static inline struct word after(struct word word, unsigned characters)
{
	return (struct word){word.start + characters, word.end};
}

static inline bool is_null(struct word word)
{
	return WORD_IS(word, "(nil)") || WORD_IS(word, "(null)");
}

/* What kernels print in place of pointers until they have the randomness to hash them. */
static inline bool is_hidden(struct word word)
{
	return WORD_IS(word, "(____ptrval____)") || WORD_IS(word, "(__ptrval__)");
}

/*
 * Memory tagging (KASAN on arm64) keeps a tag in the top byte of kernel pointers, and the page tables ignore it. Kernel addresses have
 * bit 55 set there. Where they lie on other processors, either that bit is not set or the top byte is 0xff already.
 */
static inline uint64_t without_tag(uint64_t address)
{
	return address >> 55 & 1 ? address | (uint64_t)0xff << 56 : address;
}

static inline bool pointer(struct word word, uint64_t *value)
{
	bool read = true;
	if (has_0x(word))
		read = hexadecimal(after(word, 2), value);
	else if (is_null(word))
		*value = 0;
	else if (word.end - word.start > 16) /* no hexadecimal number has more digits */
		read = decimal(word, value);
	else
		read = hexadecimal(word, value);
	*value = read ? without_tag(*value) : 0;
	return read;
}

static inline bool number(struct word word, uint64_t *value)
{
	return has_0x(word) ? hexadecimal(after(word, 2), value) : decimal(word, value);
}

/* -32768 to 32767. In hexadecimal of 32 or 64 bits. */
static inline bool small_signed(struct word word, int16_t *value)
{
	uint64_t magnitude;
	bool negative = word.start < word.end && *word.start == '-';
	if (!number(negative ? after(word, 1) : word, &magnitude))
		return false;
	if (has_0x(word) && (magnitude >> 31 == 1 || magnitude >> 63)) {
		magnitude = magnitude >> 63 ? -magnitude : (uint64_t)(uint32_t)-(uint32_t)magnitude;
		negative = true;
	}
	if (magnitude > INT16_MAX)
		return false;
	*value = (int16_t)(negative ? -(int)magnitude : (int)magnitude);
	return true;
}

static inline bool is_true(struct word word)
{
	while (word.start < word.end && *word.start == '(')
		word.start++;
	return word.start < word.end && (*word.start == 't' || *word.start == 'T' || *word.start == 'Y' || *word.start == '1' ||
	                                 (has_0x(word) && word.start[2] == '1'));
}

/* Seconds with a fraction, as ns. */
static inline bool seconds(struct word word, uint64_t *ns)
{
	static const uint32_t scale[10] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
	uint64_t whole, fraction;
	const char *dot = word.start < word.end ? memchr(word.start, '.', (size_t)(word.end - word.start)) : NULL;
	if (!dot) /* as some languages write it */
		dot = word.start < word.end ? memchr(word.start, ',', (size_t)(word.end - word.start)) : NULL;
	if (!dot)
		return false;
	size_t digits = (size_t)(word.end - dot - 1);
	if (digits > 9 || dot - word.start > 10 || !decimal((struct word){word.start, dot}, &whole) ||
	    !decimal((struct word){dot + 1, word.end}, &fraction))
		return false;
	*ns = whole * 1000000000 + fraction * scale[digits]; /* ten digits of seconds: no overflow */
	return *ns <= MAX_TIME;
}

/* A time with its colon, from TIME_ZERO. counted: it has no fraction, so it is a count of a clock's own unit. */
static inline bool time_of(struct word word, uint64_t *time, bool *counted)
{
	uint64_t ns;
	if (word.end - word.start < 2 || word.end[-1] != ':')
		return false;
	word.end--;
	bool negative = *word.start == '-';
	if (negative)
		word.start++;
	*counted = false;
	if (!seconds(word, &ns)) {
		if (!decimal(word, &ns) || ns > MAX_TIME)
			return false;
		*counted = true;
	}
	*time = negative ? TIME_ZERO - ns : TIME_ZERO + ns;
	return true;
}

/* 2026-11-27: days, from any day on. */
static inline bool date(struct word word, uint64_t *days)
{
	uint64_t year, month, day;
	if (word.end - word.start != 10 || word.start[4] != '-' || word.start[7] != '-' || !decimal((struct word){word.start, word.start + 4}, &year) ||
	    !decimal((struct word){word.start + 5, word.start + 7}, &month) || !decimal((struct word){word.start + 8, word.end}, &day))
		return false;
	/* Years that begin in March have their leap day at the end. */
	year -= month < 3;
	*days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day;
	return true;
}

/* 02:32:27.881636: ns since midnight. */
static inline bool time_of_day(struct word word, uint64_t *ns)
{
	uint64_t hours, minutes;
	if (word.end - word.start < 9 || word.start[2] != ':' || word.start[5] != ':' || !decimal((struct word){word.start, word.start + 2}, &hours) ||
	    !decimal((struct word){word.start + 3, word.start + 5}, &minutes) || !seconds((struct word){word.start + 6, word.end}, ns))
		return false;
	*ns += (hours * 60 + minutes) * 60 * 1000000000;
	return true;
}

#endif
