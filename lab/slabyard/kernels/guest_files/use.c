/*
 * Uses memory, and frees some of it in pieces: use FOLDER SPARE PIECE EACH
 *
 * Files in the tmpfs FOLDER take memory until no more than SPARE bytes are free; then every EACH-th piece of PIECE bytes is given back.
 * So what is free lies between pages that cannot go, as in a system that has been up for long, and the kernel has to take such a piece
 * for its own pages. Where there is a zone for movable memory alone, that is filled first, so that the rest takes the kernel's, and given
 * back whole.
 *
 * If more is free besides SPARE and the pieces than a quarter of these, that is an error; the pages in CPUs' own lists count as free.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096LL
#define STEP (4LL << 20)
#define LEFT (2LL << 20) /* of movable memory: below that the kernel takes pages elsewhere */

struct memory {
	long long free, listed;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Bytes that are free, and in CPUs' lists, in the zone for movable memory, or in all others. */
static struct memory memory(int movable)
{
	FILE *file = fopen("/proc/zoneinfo", "re");
	char line[256], zone[32] = "";
	struct memory found = {0, 0};
	long long pages;

	if (!file)
		fail("/proc/zoneinfo");
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Node %*d, zone %31s", zone);
		if ((strcmp(zone, "Movable") == 0) != movable)
			continue;
		if (sscanf(line, " pages free %lld", &pages) == 1)
			found.free += pages * PAGE;
		if (sscanf(line, " count: %lld", &pages) == 1)
			found.listed += pages * PAGE;
	}
	fclose(file);
	if (!*zone)
		fail("/proc/zoneinfo");
	return found;
}

/* A file that leaves so many bytes of that memory free: its size. */
static long long fill(const char *name, int movable, long long spare, long long piece)
{
	int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	long long size = 0, left;

	if (file < 0)
		fail(name);
	while ((left = memory(movable).free - spare) > 0) {
		long long more = left > 2 * STEP ? left / 2 / piece * piece : piece;

		if (fallocate(file, 0, size, more))
			fail(name);
		size += more;
	}
	if (close(file))
		fail(name);
	return size;
}

/* How many pieces it gives back. */
static long long give_back(const char *name, long long size, long long piece, long long each)
{
	int file = open(name, O_WRONLY | O_CLOEXEC);
	long long pieces = 0;

	if (file < 0)
		fail(name);
	for (long long at = 0; at + piece <= size; at += each * piece, pieces++) {
		if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, piece))
			fail(name);
	}
	if (close(file))
		fail(name);
	return pieces;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: use FOLDER SPARE PIECE EACH\n");
		return 2;
	}
	long long spare = atoll(argv[2]), piece = atoll(argv[3]), each = atoll(argv[4]);

	if (chdir(argv[1]))
		fail(argv[1]);
	fill("movable", 1, LEFT, piece);
	long long size = fill("used", 0, spare, piece);

	if (unlink("movable"))
		fail("movable");
	long long given = give_back("used", size, piece, each) * piece;
	struct memory left = memory(0);

	if (left.free + left.listed > spare + given + given / 4) {
		fprintf(stderr, "use: %lld KiB are free in pieces, and %lld besides, for %lld\n", given >> 10,
		        (left.free + left.listed - given) >> 10, spare >> 10);
		return 1;
	}
	return 0;
}
