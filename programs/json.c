/*
 * Writing JSON.
 *
 * The exact measures are the same to the byte on every run and machine, so nothing here that an exact measure goes
 * through touches floating point: its rounding, contraction (a fused multiply-add is another number) and printing
 * differ between machines and libraries. Ratios are long divisions of integers.
 *
 * Strings come from traces and command lines: quotes, backslashes and control characters are escaped; UTF-8 passes
 * through, and each byte that is no UTF-8 becomes U+FFFD, so that the output always is JSON. json_text makes `\xff`, four
 * characters, of such a byte, so that nothing is lost.
 *
 * Output is buffered by the C library, errors stick to the stream, and json_end asks for them once.
 */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define OUTER_LEVELS 2
#define DECIMALS 6u

/* ---- Strings -------------------------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character that begins here, 0 if none does; surrogates and overlong forms are none. A zero ends the text. */
static unsigned utf8_length(const unsigned char *s)
{
	unsigned length = s[0] < 0x80 ? 1 : s[0] < 0xc2 || s[0] > 0xf4 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	for (unsigned i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return length;
}

static void write_string(FILE *out, const char *text, size_t bytes, bool keep)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + bytes;

	putc('"', out);
	while (s < end) {
		unsigned length = utf8_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else if (length)
			fwrite(s, 1, length, out);
		else if (keep)
			fprintf(out, "\\\\x%02x", *s);
		else
			fputs("\\ufffd", out);
		s += length ? length : 1;
	}
	putc('"', out);
}

/* ---- Structure ------------------------------------------------------------------------------------------------ */

static void new_line(struct json *json)
{
	putc('\n', json->out);
	for (unsigned i = 0; i < json->depth; i++)
		putc(' ', json->out);
}

/* Everything that stands before a value. */
static void lead(struct json *json, const char *key)
{
	if (json->filled[json->depth])
		putc(',', json->out);
	json->filled[json->depth] = true;
	if (json->depth && json->depth <= OUTER_LEVELS && !json->one_line)
		new_line(json);
	if (key) {
		write_string(json->out, key, strlen(key), false);
		fputs(": ", json->out);
	}
}

static void open_container(struct json *json, const char *key, char bracket)
{
	lead(json, key);
	putc(bracket, json->out);
	json->depth++;
	assert(json->depth < JSON_DEPTH);
	json->filled[json->depth] = false;
}

static void close_container(struct json *json, char bracket)
{
	bool filled = json->filled[json->depth];

	json->depth--;
	if (filled && json->depth < OUTER_LEVELS && !json->one_line)
		new_line(json);
	putc(bracket, json->out);
}

void json_begin(struct json *json, FILE *out)
{
	*json = (struct json){ .out = out };
}

void json_object(struct json *json, const char *key)
{
	open_container(json, key, '{');
}

void json_object_end(struct json *json)
{
	close_container(json, '}');
}

void json_array(struct json *json, const char *key)
{
	open_container(json, key, '[');
}

void json_array_end(struct json *json)
{
	close_container(json, ']');
}

bool json_end(struct json *json)
{
	assert(json->depth == 0);
	putc('\n', json->out);
	return fflush(json->out) == 0 && !ferror(json->out);
}

bool json_finish(struct json *json, struct fault *fault)
{
	return json_end(json) || refuse_output(fault);
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

void json_string(struct json *json, const char *key, const char *value)
{
	if (!value) {
		json_null(json, key);
		return;
	}
	lead(json, key);
	write_string(json->out, value, strlen(value), false);
}

void json_text(struct json *json, const char *key, const char *text, size_t length)
{
	lead(json, key);
	write_string(json->out, text, length, true);
}

void json_count(struct json *json, const char *key, uint64_t value)
{
	lead(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_counts(struct json *json, const char *key, const uint64_t *values, unsigned count)
{
	json_array(json, key);
	for (unsigned i = 0; i < count; i++)
		json_count(json, NULL, values[i]);
	json_array_end(json);
}

void json_known(struct json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		json_count(json, key, value);
	else
		json_null(json, key);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
	lead(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void json_null(struct json *json, const char *key)
{
	lead(json, key);
	fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
	lead(json, key);
	fputs(value ? "true" : "false", json->out);
}

/* Digit by digit; the last is rounded half up by dividing with one more digit and carrying by hand. */
static void write_ratio(FILE *out, bool negative, uint64_t numerator, uint64_t denominator)
{
	uint64_t whole, fraction = 0;

	while (denominator > UINT64_MAX / 20) { /* room for remainder * 10 and for the doubled remainder */
		numerator >>= 1;
		denominator >>= 1;
	}
	whole = numerator / denominator;
	numerator %= denominator;
	for (unsigned i = 0; i < DECIMALS; i++) {
		numerator *= 10;
		fraction = fraction * 10 + numerator / denominator;
		numerator %= denominator;
	}
	fraction += numerator * 2 >= denominator;
	if (fraction == 1000000) {
		whole++;
		fraction = 0;
	}
	fprintf(out, "%s%" PRIu64 ".%06" PRIu64, negative && (whole || fraction) ? "-" : "", whole, fraction);
}

void json_ratio(struct json *json, const char *key, uint64_t numerator, uint64_t denominator)
{
	if (!denominator) {
		json_null(json, key);
		return;
	}
	lead(json, key);
	write_ratio(json->out, false, numerator, denominator);
}

void json_rest(struct json *json, const char *key, uint64_t part, uint64_t whole)
{
	bool negative = part > whole;

	if (!whole) {
		json_null(json, key);
		return;
	}
	lead(json, key);
	write_ratio(json->out, negative, negative ? part - whole : whole - part, whole);
}

void json_measured(struct json *json, const char *key, double value, int decimals)
{
	if (!isfinite(value)) {
		json_null(json, key);
		return;
	}
	lead(json, key);
	fprintf(json->out, "%.*f", decimals, value);
}
