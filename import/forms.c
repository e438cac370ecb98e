/*
 * Lines of events that have no CPU in brackets with a time behind it. scan.c asks here about lines that it cannot read.
 *
 * Latency format, of tracefs's option `latency-format`, `trace-cmd report -l`, and the buffer that a kernel dumps when it crashes (each
 * line of which may have the log's own time in front). The CPU is followed at once by the flags:
 *
 *       small.sh-1556      0.N... 35982us : kmem_cache_free: call_site=unlink_anon_vmas+0x81/0x1e0 ptr=...
 *     [ 1786.276018]  cc1plus-1581     0..... 1786276018 us+: mm_page_alloc: page=ffffea000827ec40 pfn=0x209fb1 ...
 *       small.sh-1556      0d..2  1786.276018: kmem_cache_free: ...
 *       small.sh-1556      0d..2  50024: kmem_cache_free: ...                                 with a clock that counts
 *
 * and with tracefs's option `verbose`, where the number behind the process is the CPU, and the times are hexadecimal and in ms:
 *
 *       small.sh    1556   1 0 00000000 000000c7 [3d74c382] 1031062.402ms (+0.001ms): kmem_cache_free: ...
 *
 * The text that babeltrace makes of LTTng's events. Their names have `kmem_` in front, and fields blanks around the `=`:
 *
 *     [02:32:27.881636123] (+0.000000412) host kmem_kmalloc: { cpu_id = 1 }, { call_site = 0xFFFFFFFF812D5A2C, ptr = 0x..., ... }
 *
 * Both are read backwards from the event's name, because a task or host may be called anything.
 */
#include "import.h"
#include "values.h"

enum { LONGEST_LTTNG_LINE = 4096 };

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || c == '_';
}

/* The first word of the line that is the name of one of our events with a colon behind; its event. EVENT_NAMES: there is none. */
enum event_name find_event(const char *line, const char *end, struct word *name)
{
	for (const char *colon = line; colon < end && (colon = memchr(colon, ':', (size_t)(end - colon))) != NULL; colon++) {
		const char *start = colon;
		while (start > line && is_name_character(start[-1]))
			start--;
		for (unsigned prefix = 0; prefix <= 5; prefix += 5) { /* LTTng's `kmem_` */
			if (prefix && !(colon - start > 5 && memcmp(start, "kmem_", 5) == 0))
				continue;
			*name = (struct word){start + prefix, colon};
			enum event_name event = event_of(*name);
			if (event < EVENT_MARK)
				return event;
		}
	}
	return EVENT_NAMES;
}

static struct word last_word(const char *line, const char *end)
{
	struct word word = {NULL, back_over_blanks(line, end)};
	word.start = word.end;
	while (word.start > line && word.start[-1] != ' ' && word.start[-1] != '\t')
		word.start--;
	return word;
}

/* `35982us :`, `35982 us+:`, `1786.276018:`, `50024:` or `1031062.402ms (+0.001ms):` before the event's name. What stands before it. */
static const char *latency_time(struct scan *scan, const char *line, const char *end, uint64_t *time)
{
	uint64_t value;
	bool counted = false;
	end = back_over_blanks(line, end);
	if (end == line || *--end != ':')
		return NULL;
	end = back_over_blanks(line, end);
	if (end > line && end[-1] == ')') /* how long the step before took */
		end = back_over_blanks(line, last_word(line, end).start);
	else if (end > line && strchr("+!#*@$", end[-1]))
		end = back_over_blanks(line, end - 1);
	bool micro = end - line > 2 && memcmp(end - 2, "us", 2) == 0, milli = end - line > 2 && memcmp(end - 2, "ms", 2) == 0;
	struct word word = last_word(line, micro || milli ? end - 2 : end);
	if (micro ? !decimal(word, &value) || value > MAX_TIME / 1000 : !seconds(word, &value)) {
		if (micro || milli || !decimal(word, &value) || value > MAX_TIME)
			return NULL;
		counted = true;
	}
	scan->counted |= counted;
	*time = TIME_ZERO + (micro ? value * 1000 : milli ? value / 1000 : value);
	return word.start;
}

/* `0d..2`: the CPU, and what stands before it. */
static const char *latency_cpu(const char *line, const char *end, uint64_t *cpu)
{
	struct word flags = last_word(line, end), digits = {flags.start, flags.start};
	while (digits.end < flags.end && is_digit(*digits.end))
		digits.end++;
	return flags.end - digits.end >= LEAST_FLAGS && decimal(digits, cpu) ? flags.start : NULL;
}

/* `1 0 00000000 000000c7 [3d74c382]`: the CPU, two words of flags, a running number, a time. */
static const char *verbose_cpu(const char *line, const char *end, uint64_t *cpu)
{
	struct word word = last_word(line, end);
	uint64_t value;
	if (word.end - word.start < 3 || *word.start != '[' || word.end[-1] != ']')
		return NULL;
	for (unsigned i = 0; i < 3; i++) {
		word = last_word(line, word.start);
		if (!hexadecimal(word, &value))
			return NULL;
	}
	word = last_word(line, word.start);
	return decimal(word, cpu) ? word.start : NULL;
}

static bool take_latency(struct scan *scan, struct record *record, enum event_name event, const char *line, struct word name, const char *end)
{
	uint64_t cpu;
	const char *time = latency_time(scan, line, name.start, &record->time);
	const char *before = time ? latency_cpu(line, time, &cpu) : NULL;
	if (time && !before)
		before = verbose_cpu(line, time, &cpu);
	if (!before || cpu >= UINT16_MAX)
		return false;
	record->cpu = (uint16_t)cpu;
	record->task = task_of(scan, line, before);
	scan->tracefs = true;
	return take_kmem(scan, record, event, name.end + 1, end);
}

/* The fields as `key=value` words. */
static size_t plain_fields(const char *at, const char *end, char *to)
{
	size_t length = 0;
	for (; at < end && length < LONGEST_LTTNG_LINE; at++) {
		if (strchr("{},\"", *at))
			continue;
		if (end - at > 3 && memcmp(at, " = ", 3) == 0) {
			to[length++] = '=';
			at += 2;
			continue;
		}
		to[length++] = *at;
	}
	return length;
}

/* `[02:32:27.881636123]`, with a date in it, or `[1786.276018123]`. */
static bool lttng_time(const char *line, const char *end, uint64_t *time)
{
	uint64_t days = 0, ns;
	const char *open = memchr(line, '[', (size_t)(end - line)), *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
	if (!close)
		return false;
	struct word word = last_word(open + 1, close);
	if (date((struct word){open + 1, word_end(open + 1, close)}, &days))
		days *= DAY_SECONDS;
	if (!time_of_day(word, &ns) && !seconds(word, &ns))
		return false;
	*time = TIME_ZERO + days * 1000000000 + ns;
	return true;
}

static bool take_lttng(struct scan *scan, struct record *record, enum event_name event, const char *line, struct word name, const char *end)
{
	char fields[LONGEST_LTTNG_LINE];
	size_t length;
	uint64_t cpu;
	if (!lttng_time(line, name.start, &record->time))
		return false;
	length = plain_fields(name.end + 1, end, fields);
	static const char key[] = " cpu_id=";
	for (size_t at = 0; at + sizeof key < length; at++)
		if (memcmp(fields + at, key, sizeof key - 1) == 0) {
			const char *start = fields + at + sizeof key - 1;
			if (!decimal((struct word){start, word_end(start, fields + length)}, &cpu) || cpu >= UINT16_MAX)
				return false;
			record->cpu = (uint16_t)cpu;
			return take_kmem(scan, record, event, fields, fields + length);
		}
	return false;
}

bool take_other_form(struct scan *scan, enum event_name event, const char *line, struct word name, const char *end)
{
	struct record record = empty_record(0);
	if (take_latency(scan, &record, event, line, name, end))
		return true;
	record = empty_record(0);
	return take_lttng(scan, &record, event, line, name, end);
}
