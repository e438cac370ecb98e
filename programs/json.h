/* Writing JSON: values in order of the calls, one line per member of the two outer levels. See json.c. */
#ifndef PROGRAMS_JSON_H
#define PROGRAMS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fault.h"

#define JSON_DEPTH 16

struct json {
	FILE *out;
	unsigned depth;
	bool one_line;           /* no line breaks; false after json_begin */
	bool filled[JSON_DEPTH]; /* the container of this depth has a member */
};

/* The key of every function: a member's name, or NULL for an element of an array (or the outermost value). */
void json_begin(struct json *, FILE *out);
void json_object(struct json *, const char *key);
void json_object_end(struct json *);
void json_array(struct json *, const char *key);
void json_array_end(struct json *);

void json_string(struct json *, const char *key, const char *value); /* NULL: null */
void json_text(struct json *, const char *key, const char *text, size_t length); /* keeps each byte; a zero follows the text */
void json_count(struct json *, const char *key, uint64_t value);
void json_counts(struct json *, const char *key, const uint64_t *values, unsigned count); /* an array */
void json_known(struct json *, const char *key, bool known, uint64_t value); /* not known: null */
void json_signed(struct json *, const char *key, int64_t value);
void json_null(struct json *, const char *key);
void json_bool(struct json *, const char *key, bool value);

/* numerator / denominator with six decimals, by integer arithmetic; null for a denominator of 0. */
void json_ratio(struct json *, const char *key, uint64_t numerator, uint64_t denominator);

/* 1 - part / whole with six decimals, negative if part > whole; null for a whole of 0. */
void json_rest(struct json *, const char *key, uint64_t part, uint64_t whole);

/* A measured time or rate, with this many decimals; null if it is infinite or not a number. Never for an exact measure. */
void json_measured(struct json *, const char *key, double value, int decimals);

/* Ends the line. False: not everything reached the file, because a disk is full, for example. */
bool json_end(struct json *);

/* The same, for a program's result. False: see fault. */
bool json_finish(struct json *, struct fault *);

#endif
