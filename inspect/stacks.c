/*
 * Stacks of the other program: its files hold the names of their addresses, which addr2line reads (library/debug/symbols.c).
 */
#define _GNU_SOURCE
#include "inspect.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define MOST_NOTED 8192u /* as many as are looked up (library/debug/symbols.c) */

static const struct target *target;
static uintptr_t noted[MOST_NOTED];
static size_t noted_count;
static bool looked_up;

/* ---- Which file ----------------------------------------------------------------------------------------------- */

/* The virtual address that an ELF file gives to an offset in it. False: there is no such file or offset. */
static bool own_address(const char *path, uint64_t offset, uintptr_t *address)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ElfW(Ehdr) header;
	ElfW(Phdr) is;
	bool found = false;

	if (file < 0)
		return false;
	if (pread(file, &header, sizeof(header), 0) == sizeof(header) && !memcmp(header.e_ident, ELFMAG, SELFMAG))
		for (unsigned i = 0; i < header.e_phnum && !found; i++) {
			found = pread(file, &is, sizeof(is), (off_t)(header.e_phoff + i * sizeof(is))) == sizeof(is) &&
			        is.p_type == PT_LOAD && offset - is.p_offset < is.p_filesz;
			*address = (uintptr_t)(offset - is.p_offset + is.p_vaddr);
		}
	close(file);
	return found;
}

/* A process may see another file by that name than we do. */
static bool locate(uintptr_t address, const char **module, uintptr_t *offset)
{
	const struct region *region = region_of(&target->modules, address);
	char inside[4500];

	if (!region)
		return false;
	*module = region->path;
	snprintf(inside, sizeof(inside), "/proc/%ld/root%s", (long)target->pid, region->path);
	if (target->pid && own_address(inside, address - region->start + region->offset, offset))
		return true;
	return own_address(region->path, address - region->start + region->offset, offset);
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

void stacks_begin(const struct target *of)
{
	target = of;
}

void stacks_look_up(void)
{
	sy_inspect_look_up(noted, noted_count, locate);
	looked_up = true;
}

static bool is_noted(uintptr_t address)
{
	for (size_t i = noted_count; i--;)
		if (noted[i] == address)
			return true;
	return false;
}

static void note(const uintptr_t *frames, unsigned depth)
{
	for (unsigned i = 0; i < depth && noted_count < MOST_NOTED; i++)
		if (!is_noted(frames[i]))
			noted[noted_count++] = frames[i];
}

static void write_frame(struct json *json, uintptr_t address)
{
	const char *name = sy_inspect_name_of(address);

	if (name)
		json_string(json, NULL, name);
	else
		address_write(json, NULL, (const void *)address);
}

void stack_write(struct json *json, const struct sy_heap *heap, uint32_t number)
{
	uintptr_t frames[SY_INSPECT_FRAMES];
	unsigned first = 0, depth = sy_inspect_stack(heap, number, frames);

	if (!looked_up)
		note(frames, depth);
	while (first + 1 < depth && sy_inspect_is_own(frames[first]))
		first++;
	json_array(json, "stack");
	for (unsigned i = first; i < depth; i++)
		write_frame(json, frames[i]);
	json_array_end(json);
}
