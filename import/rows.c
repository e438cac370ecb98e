/*
 * Rows as blocks of columns, so that capture/writer.py wraps each column as an array without touching a value:
 *
 *     uint32 rows (0: no more blocks follow), then for each column in the order of COLUMNS its values, packed
 *
 * Values are in the machine's own byte order, because both ends are on the same machine. A block becomes one Parquet row group.
 */
#include "import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 1 << 19 };

/* The order that capture/writer.py expects. */
#define COLUMNS(X) \
	X(uint64_t, time) X(uint64_t, address) X(uint32_t, object) X(uint32_t, size) X(uint32_t, allocated) X(uint32_t, call_site) \
	X(uint32_t, stack) X(uint32_t, task) X(uint16_t, cpu) X(uint16_t, cache) X(uint16_t, gfp) X(uint8_t, kind) X(uint8_t, origin) \
	X(uint8_t, order) X(uint8_t, owner) X(int8_t, migrate) X(int16_t, node) X(uint8_t, accounted)

static struct {
	FILE *file;
	uint32_t count;
#define COLUMN(type, name) type *name;
	COLUMNS(COLUMN)
#undef COLUMN
} block;

static void put_bytes(const void *bytes, size_t size, size_t count)
{
	if (fwrite(bytes, size, count, block.file) != count)
		die("cannot write the result: %s", strerror(errno));
}

static void put_block(void)
{
	put_bytes(&block.count, sizeof block.count, 1);
#define COLUMN(type, name) put_bytes(block.name, sizeof *block.name, block.count);
	COLUMNS(COLUMN)
#undef COLUMN
	block.count = 0;
}

void rows_begin(FILE *file)
{
	block.file = file;
	block.count = 0;
#define COLUMN(type, name) block.name = grow(NULL, BLOCK_ROWS, sizeof *block.name);
	COLUMNS(COLUMN)
#undef COLUMN
}

void rows_put(const struct row *row)
{
	uint32_t at = block.count++;
#define COLUMN(type, name) block.name[at] = row->name;
	COLUMNS(COLUMN)
#undef COLUMN
	if (unlikely(block.count == BLOCK_ROWS))
		put_block();
}

void rows_end(void)
{
	if (block.count)
		put_block();
	put_block(); /* of no rows: the end */
#define COLUMN(type, name) free(block.name);
	COLUMNS(COLUMN)
#undef COLUMN
}
