/*
 * Records in an unnamed temporary file, 48 bytes each. The file is unlinked as soon as it is open, so nothing is left behind however
 * the program ends. It is in $TMPDIR. If the user did not set that, importer.py sets it to the folder of the result, because /tmp
 * is memory on many machines.
 *
 * Time never decreases in a spool. Captures are nearly always in order. Time goes back where a tool has merged per-CPU buffers
 * without sorting; the record then moves back to its place among the last WINDOW records. One that is older than those takes the
 * time of the oldest of them. All of these are counted.
 */
#include "import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 16384, WINDOW = 4096 };

void spool_open(struct spool *spool)
{
	const char *folder = getenv("TMPDIR");
	if (!folder || !*folder)
		folder = "/tmp";
	size_t length = strlen(folder) + sizeof "/slabyard-import-XXXXXX";
	char *path = grow(NULL, length, 1);
	snprintf(path, length, "%s/slabyard-import-XXXXXX", folder);
	*spool = (struct spool){.fd = mkstemp(path)};
	if (spool->fd < 0)
		die("cannot make a temporary file in %s: %s; set TMPDIR to a folder with room", folder, strerror(errno));
	unlink(path);
	free(path);
	spool->buffer = grow(NULL, BUFFER, sizeof *spool->buffer);
}

static void write_out(struct spool *spool, uint32_t records)
{
	const char *from = (const char *)spool->buffer;
	size_t left = records * sizeof *spool->buffer;
	while (left) {
		ssize_t written = write(spool->fd, from, left);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			die("cannot write the temporary file: %s; %s", strerror(errno),
			    errno == EFBIG ? "raise the limit (ulimit -f)" : "set TMPDIR to a folder with more room");
		from += written;
		left -= (size_t)written;
	}
	spool->floor_time = spool->buffer[records - 1].time;
	spool->held -= records;
	memmove(spool->buffer, spool->buffer + records, spool->held * sizeof *spool->buffer);
}

static void insert_by_time(struct spool *spool, const struct record *record)
{
	uint32_t at = spool->held;
	spool->reordered++;
	spool->descents += record->time < spool->last_time;
	while (at && spool->buffer[at - 1].time > record->time)
		at--;
	memmove(&spool->buffer[at + 1], &spool->buffer[at], (spool->held - at) * sizeof *spool->buffer);
	spool->buffer[at] = *record;
	if (record->time < spool->floor_time) {
		spool->buffer[at].time = spool->floor_time;
		spool->late++;
	}
	spool->held++;
}

void spool_put(struct spool *spool, const struct record *record)
{
	if (unlikely(spool->held == BUFFER))
		write_out(spool, BUFFER - WINDOW);
	if (likely(!spool->held || spool->buffer[spool->held - 1].time <= record->time))
		spool->buffer[spool->held++] = *record;
	else
		insert_by_time(spool, record);
	spool->last_time = record->time;
	spool->records++;
}

void spool_finish(struct spool *spool)
{
	if (spool->held)
		write_out(spool, spool->held);
	free(spool->buffer);
	spool->buffer = NULL;
}

void spool_close(struct spool *spool)
{
	close(spool->fd);
}
