/*
 * A heap's figures in Prometheus's text format: each line has a form that the format allows, the lines of a metric stand
 * together and come once, values are those of the heap's own counters, and where there is too little room the text is the
 * beginning of the whole.
 */
#include "threads_support.h"

#define ROOM 65536u
#define HEAPS 2u
#define OBJECTS 100u
#define LARGE_BYTES ((size_t)300 << 10)

static char text[ROOM], part[ROOM];

static bool is_name(char byte)
{
	return (byte >= 'a' && byte <= 'z') || byte == '_';
}

/* The text behind {name="value",...}; NULL: these are no labels. */
static const char *behind_labels(const char *at)
{
	do {
		at++;
		while (is_name(*at))
			at++;
		if (strncmp(at, "=\"", 2))
			return NULL;
		for (at += 2; *at != '"'; at++) {
			if (*at == '\\' && !strchr("\\\"n", *++at))
				return NULL;
			if (*at < ' ' || *at > '~')
				return NULL;
		}
		at++;
	} while (*at == ',');
	return *at == '}' ? at + 1 : NULL;
}

/* A line of a metric whose name begins at `name`: its name, labels and value. */
static bool is_sample(const char *line, const char *name, size_t length)
{
	const char *at = strncmp(line, name, length) ? NULL : behind_labels(line + length);
	char *end = NULL;

	if (!at || *at != ' ' || at[1] < '0' || at[1] > '9')
		return false;
	strtoull(at + 1, &end, 10);
	return end && *end == '\n';
}

static void check_form(void)
{
	const char *name = NULL, *line = text;
	size_t length = 0;

	for (; *line; line = strchr(line, '\n') + 1) {
		if (!strncmp(line, "# HELP ", 7)) {
			name = line + 7;
			length = strcspn(name, " ");
			CHECK(strstr(text, name) == name); /* nothing of this metric has come before */
		} else if (!strncmp(line, "# TYPE ", 7)) {
			CHECK(name && !strncmp(line + 7, name, length));
			CHECK(!strncmp(line + 7 + length, " gauge\n", 7) || !strncmp(line + 7 + length, " counter\n", 9));
		} else {
			CHECK(name && is_sample(line, name, length));
		}
	}
}

/* The value that stands behind these words; UINT64_MAX: they are not there. */
static uint64_t value(const char *words)
{
	const char *at = strstr(text, words);

	return at ? strtoull(at + strlen(words), NULL, 10) : UINT64_MAX;
}

static void check_values(const char *policy, struct sy_heap *heap)
{
	const struct sy_heap_counters *counters = &heap->counters;
	char words[200];

	snprintf(words, sizeof(words), "slabyard_heap_slab_bytes{heap=\"1\",spec=\"%s\"} ", policy);
	CHECK_EQUAL(value(words), counters->slab_pages << SY_PAGE_SHIFT);
	snprintf(words, sizeof(words), "slabyard_heap_page_requests_total{heap=\"1\",spec=\"%s\"} ", policy);
	CHECK_EQUAL(value(words), counters->page_requests);
	snprintf(words, sizeof(words), "slabyard_cache_bytes{heap=\"1\",spec=\"%s\",cache=\"large\"} ", policy);
	CHECK_EQUAL(value(words), counters->large_pages << SY_PAGE_SHIFT);
	snprintf(words, sizeof(words), "slabyard_heap_used_bytes{heap=\"1\",spec=\"%s\"} ", policy);
	CHECK(value(words) >= LARGE_BYTES + (size_t)OBJECTS * 700 && value(words) <= LARGE_BYTES * 4);
	snprintf(words, sizeof(words), "slabyard_cache_used_objects{heap=\"1\",spec=\"%s\",cache=\"a \\\"name\\\\\\n?\"} ", policy);
	CHECK(value(words) == OBJECTS || value(words) == UINT64_MAX); /* caches may share pages */
	CHECK_EQUAL(value("slabyard_heap_page_failures_total{heap=\"0\",spec=\"yard:max_order=2,merge=off\"} "), 0);
}

static void test_figures(const char *policy)
{
	const struct sy_heap_options options = { .reserve = SMALL_RESERVE };
	const struct sy_cache_config config = { .name = "a \"name\\\n\x7f", .size = 700, .flags = SY_CACHE_NO_MERGE };
	struct sy_heap *heaps[HEAPS] = { sy_heap_open("yard:merge=off,max_order=2", &options, NULL), sy_heap_open(policy, &options, NULL) };
	struct sy_cache *cache = sy_cache_create(heaps[1], &config);
	size_t length;

	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK(sy_alloc(cache, 0) != NULL);
	CHECK(sy_malloc(heaps[1], LARGE_BYTES, 0) != NULL);
	length = sy_heaps_metrics(heaps, HEAPS, text, ROOM);
	CHECK(length > 0 && length < ROOM);
	CHECK_EQUAL(strlen(text), length);
	check_form();
	check_values(policy, heaps[1]);
	CHECK_EQUAL(sy_heaps_metrics(heaps, HEAPS, NULL, 0), length);
	memset(part, 'x', ROOM);
	CHECK_EQUAL(sy_heaps_metrics(heaps, HEAPS, part, length / 2), length);
	CHECK(!memcmp(part, text, length / 2 - 1));
	CHECK_EQUAL(part[length / 2 - 1], 0);
	CHECK_BYTES(part + length / 2, 'x', ROOM - length / 2);
	for (unsigned i = 0; i < HEAPS; i++)
		sy_heap_close(heaps[i]);
}

int main(void)
{
	for (const struct sy_policy *const *at = sy_policies; *at; at++)
		test_figures((*at)->name);
	return check_result();
}
