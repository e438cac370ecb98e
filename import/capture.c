/*
 * All inputs as one sequence of records.
 *
 * A thread of its own scanned each input and numbered its texts. Here the texts are merged, and records get the merged numbers as
 * they are read. Each spool is in order of time. Inputs may overlap in time, so they are merged by time; at equal times the
 * input that was given first comes first.
 *
 * `record` asks for a first and a last mark. They become records like the capture's own marks.
 */
#include "import.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 16384 };

/* ---- Joining ---------------------------------------------------------------------------------------------------- */

/* Numbers of texts in `from` -> in `into`. A text that `into` has no room for becomes `full`. */
static uint32_t *merge(struct interner *into, const struct interner *from, uint32_t full)
{
	uint32_t *numbers = zeroed(from->count, sizeof *numbers);
	for (uint32_t i = 0; i < from->count; i++) {
		uint32_t number = intern(into, from->texts[i], from->lengths[i]);
		numbers[i] = number == NONE ? full : number;
	}
	return numbers;
}

void capture_join(struct capture *capture, const char *first_mark, const char *last_mark)
{
	struct texts *texts = &capture->texts;
	uint64_t records = (uint64_t)(first_mark != NULL) + (last_mark != NULL);
	texts_init(texts);
	capture->first_mark = first_mark ? intern(&texts->marks, first_mark, strlen(first_mark)) : NONE;
	capture->numbers = zeroed(capture->scan_count, sizeof *capture->numbers);
	capture->first_time = UINT64_MAX;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		struct scan *scan = &capture->scans[i];
		capture->numbers[i] = (struct numbers){
			.call_sites = merge(&texts->call_sites, &scan->texts.call_sites, NONE),
			.stacks = merge(&texts->stacks, &scan->texts.stacks, NONE),
			.tasks = merge(&texts->tasks, &scan->texts.tasks, NONE),
			.marks = merge(&texts->marks, &scan->texts.marks, NONE),
			.gfp = merge(&texts->gfp, &scan->texts.gfp, 0),
			.names = merge(&texts->names, &scan->texts.names, NO_TEXT),
		};
		records += scan->spool.records;
		if (scan->first_time < capture->first_time)
			capture->first_time = scan->first_time;
		if (scan->last_time > capture->last_time)
			capture->last_time = scan->last_time;
	}
	capture->last_mark = last_mark ? intern(&texts->marks, last_mark, strlen(last_mark)) : NONE;
	if (records >= NONE)
		die("more than 4,294,967,294 events; import the capture in parts");
	capture->records = (uint32_t)records;
	capture->readers = zeroed(capture->scan_count, sizeof *capture->readers);
	for (uint32_t i = 0; i < capture->scan_count; i++)
		capture->readers[i].buffer = grow(NULL, BUFFER, sizeof *capture->readers[i].buffer);
}

void capture_close(struct capture *capture)
{
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		spool_close(&capture->scans[i].spool);
		texts_free(&capture->scans[i].texts);
		intern_free(&capture->scans[i].unknown);
		intern_free(&capture->scans[i].headings);
		free(capture->readers[i].buffer);
		free(capture->numbers[i].call_sites);
		free(capture->numbers[i].stacks);
		free(capture->numbers[i].tasks);
		free(capture->numbers[i].marks);
		free(capture->numbers[i].gfp);
		free(capture->numbers[i].names);
	}
	texts_free(&capture->texts);
	free(capture->numbers);
	free(capture->scans);
	free(capture->readers);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* The next records of an input; none at its end. */
static void fill(const struct spool *spool, struct reader *reader)
{
	uint64_t left = spool->records - reader->at;
	uint32_t count = left < BUFFER ? (uint32_t)left : BUFFER;
	char *to = (char *)reader->buffer;
	size_t bytes = count * sizeof *reader->buffer;
	off_t from = (off_t)(reader->at * sizeof *reader->buffer);
	while (bytes) {
		ssize_t got = pread(spool->fd, to, bytes, from);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			die("cannot read the temporary file back: %s", got ? strerror(errno) : "it was cut off");
		to += got;
		from += got;
		bytes -= (size_t)got;
	}
	reader->at += count;
	reader->buffered = count;
	reader->next = 0;
}

void capture_rewind(struct capture *capture)
{
	capture->taken = capture->repeats = 0;
	capture->last = capture->first_time;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		capture->readers[i].at = 0;
		fill(&capture->scans[i].spool, &capture->readers[i]);
	}
}

static struct record *mark(struct capture *capture, uint32_t number)
{
	capture->current = (struct record){
		.time = capture->last, .kind = SNAPSHOT, .address = number, .migrate = -1, .node = -1, .call_site = NONE, .stack = NONE,
		.task = NONE, .name = NO_TEXT};
	capture->taken++;
	return &capture->current;
}

static void translate(const struct scan *scan, const struct numbers *numbers, struct record *record)
{
	if (unlikely(scan->tick_ns != 1))
		record->time = TIME_ZERO + (record->time - TIME_ZERO) * scan->tick_ns;
	if (record->call_site != NONE)
		record->call_site = numbers->call_sites[record->call_site];
	if (record->stack != NONE)
		record->stack = numbers->stacks[record->stack];
	if (record->task != NONE)
		record->task = numbers->tasks[record->task];
	if (record->name != NO_TEXT)
		record->name = (uint16_t)numbers->names[record->name];
	if (record->gfp)
		record->gfp = (uint16_t)numbers->gfp[record->gfp];
	if (record->kind == SNAPSHOT)
		record->address = numbers->marks[record->address];
}

/* One event twice: nothing happens twice in one place without something between. Of a clock's coarse ticks that may be unseen. */
static bool is_repeat(const struct record *one, const struct record *other, const struct scan *scan)
{
	return one->time == other->time && one->address == other->address && one->kind == other->kind && one->cpu == other->cpu &&
	       one->call_site == other->call_site && one->kind != SNAPSHOT && scan->tick_ns == 1;
}

/* The input whose next record is the earliest; NONE when all are at their ends. */
static uint32_t earliest(const struct capture *capture)
{
	uint32_t best = NONE;
	uint64_t time = UINT64_MAX;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct reader *reader = &capture->readers[i];
		if (reader->next < reader->buffered && (best == NONE || reader->buffer[reader->next].time < time)) {
			best = i;
			time = reader->buffer[reader->next].time;
		}
	}
	return best;
}

struct record *capture_next(struct capture *capture)
{
	if (unlikely(capture->taken == 0 && capture->first_mark != NONE))
		return mark(capture, capture->first_mark);
	uint32_t input = earliest(capture);
	if (unlikely(input == NONE)) {
		bool last = capture->last_mark != NONE && capture->taken < capture->records;
		return last ? mark(capture, capture->last_mark) : NULL;
	}
	struct reader *reader = &capture->readers[input];
	struct record before = capture->current;
	capture->current = reader->buffer[reader->next++];
	if (unlikely(reader->next == reader->buffered))
		fill(&capture->scans[input].spool, reader);
	translate(&capture->scans[input], &capture->numbers[input], &capture->current);
	capture->repeats += capture->taken && is_repeat(&before, &capture->current, &capture->scans[input]);
	capture->last = capture->current.time;
	capture->taken++;
	return &capture->current;
}
