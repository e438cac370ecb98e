/*
 * Lines between the events: reports of lost events, perf's words around those, headings of tracefs and trace-cmd. scan.c asks here
 * about lines that are no events.
 */
#include "import.h"
#include "words.h"

#define MAX_SAMPLES ((uint64_t)1 << 50)

/* The first number in a text, or `otherwise`. */
static uint64_t number_in(const char *at, const char *end, uint64_t otherwise)
{
	struct word digits;
	uint64_t value;
	while (at < end && !is_digit(*at))
		at++;
	digits.start = digits.end = at;
	while (digits.end < end && is_digit(*digits.end))
		digits.end++;
	return decimal(digits, &value) ? value : otherwise;
}

/* The place in a line behind `text`; NULL: the line does not have it. */
static const char *behind(const char *line, const char *end, const char *text)
{
	size_t length = strlen(text);
	for (; (size_t)(end - line) >= length; line++)
		if (*line == *text && memcmp(line, text, length) == 0)
			return line + length;
	return NULL;
}

/*
 * Lost events. A report without a number stands for one event:
 *
 *     PERF_RECORD_LOST lost 12       perf script (also ..._LOST_SAMPLES, and with a CPU that does not exist)
 *     CPU:0 [LOST 12 EVENTS]         tracefs
 *     LOST 12 events!                perf trace
 *     CPU:0 [12 EVENTS DROPPED]      trace-cmd
 *
 * perf may end with a sum over all events, reported losses included:
 *
 *     Processed 94257 events and lost 866 chunks!      a chunk is one event at least
 *     Processed 569363 samples and lost 85.26%!        the lost ones are among the samples
 */
static bool take_loss(struct scan *scan, const char *line, const char *end)
{
	const char *at, *samples;
	uint64_t all = 0;
	if ((at = behind(line, end, "LOST")) != NULL) {
		const char *word = behind(at, end, "lost");
		scan->lost += number_in(word ? word : at, end, 1);
	} else if (behind(line, end, "EVENTS DROPPED") != NULL) {
		at = memchr(line, '[', (size_t)(end - line));
		scan->lost += at ? number_in(at, end, 1) : 1;
	} else if ((at = behind(line, end, "events and lost ")) != NULL) {
		all = number_in(at, end, 1);
	} else if ((samples = behind(line, end, "Processed ")) != NULL && (at = behind(samples, end, "samples and lost ")) != NULL) {
		const char *dot = memchr(at, '.', (size_t)(end - at));
		uint64_t percent = number_in(at, end, 0), hundredths = dot && end - dot > 2 ? number_in(dot, dot + 3, 0) : 0;
		all = number_in(samples, at, 1);
		if (percent <= 100 && all < MAX_SAMPLES)
			all = (all * (percent * 100 + hundredths) + 9999) / 10000;
	} else {
		return false;
	}
	scan->lost_in_all = all > scan->lost_in_all ? all : scan->lost_in_all;
	return true;
}

/* perf's own records, which perf script prints on request: maps and forks of programs, ends of rounds, losses. */
bool take_record(struct scan *scan, const char *line, const char *end)
{
	static const char lost[] = "PERF_RECORD_LOST";
	size_t length = sizeof lost - 1;
	return (size_t)(end - line) < length || memcmp(line, lost, length) != 0 || take_loss(scan, line, end);
}

/* Headings of trace-cmd: how many CPUs the machine has, which of them have no events, the version of the file. */
static bool take_trace_cmd(struct scan *scan, const char *line, const char *end)
{
	struct word cpus = {line + 5, end};
	uint64_t count;
	line = skip_blanks(line, end);
	if (end - line > 5 && memcmp(line, "cpus=", 5) == 0 && decimal(cpus, &count) && count <= UINT16_MAX) {
		scan->cpus = count > scan->cpus ? (uint32_t)count : scan->cpus;
		scan->tracefs = true;
		return true;
	}
	if (behind(line, end, "CPU ") == line + 4)
		return behind(line, end, " is empty") == end;
	return behind(line, end, "version = ") == line + 10;
}

/* What `perf script --header` tells of the recording, for the lab: it knows what the lines mean. */
static void take_heading(struct scan *scan, const char *line, const char *end)
{
	static const char *const wanted[] = {"# cmdline : ", "# event : ", "# os release : ", "# arch : ", "# nrcpus avail : ", "# captured on"};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		size_t length = strlen(wanted[i]);
		if ((size_t)(end - line) > length && memcmp(line, wanted[i], length) == 0)
			intern(&scan->headings, line, (size_t)(end - line));
	}
}

/* `#P:64` in the headings of tracefs: how many CPUs there are. */
static void take_cpus(struct scan *scan, const char *line, const char *end)
{
	const char *at = behind(line, end, "#P:");
	uint64_t count = at ? number_in(at, end, 0) : 0;
	if (count <= UINT16_MAX && count > scan->cpus)
		scan->cpus = (uint32_t)count;
}

/*
 * How many of the written events are still there; behind the heading's first words:
 *
 *     # entries-in-buffer/entries-written: 320/21956   #P:2
 *     # latency: 0 us, #320/21956, CPU#0 | (M:...                     with the option latency-format
 */
static void take_overwritten(struct scan *scan, const char *at, const char *end)
{
	const char *slash = at ? memchr(at, '/', (size_t)(end - at)) : NULL, *start = slash;
	if (!slash)
		return;
	while (start > at && is_digit(start[-1]))
		start--;
	uint64_t kept, written = number_in(slash, end, 0);
	scan->tracefs = true;
	if (!decimal((struct word){start, slash}, &kept) || (kept == scan->kept && written == scan->written))
		return; /* the files of each CPU have the same heading, of all of them */
	scan->kept = kept;
	scan->written = written;
	scan->lost += written > kept ? written - kept : 0;
	scan->headed += kept;
}

/* Lost events, perf's words around them, and tracefs's headings: the tracer, and how many of the written events are still there. */
bool take_remark(struct scan *scan, const char *line, const char *end)
{
	struct word all = {line, end};
	if (line < end && *line != '#')
		return take_loss(scan, line, end) || WORD_IS(all, "Warning:") || WORD_IS(all, "Check IO/CPU overload!") ||
		       behind(line, end, "PERF_RECORD_") != NULL || take_trace_cmd(scan, line, end);
	if (line == end)
		return false;
	if (end - line > 9 && memcmp(line, "# tracer:", 9) == 0) {
		scan->tracefs = true;
		scan->other_tracer |= behind(line, end, ": nop") != end;
	}
	scan->other_tracer |= behind(line, end, "# latency: ") != NULL;
	take_heading(scan, line, end);
	take_cpus(scan, line, end);
	take_overwritten(scan, behind(line, end, "# latency: "), end);
	take_overwritten(scan, behind(line, end, "entries-in-buffer/entries-written:"), end);
	return true;
}

