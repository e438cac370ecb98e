/*
 * A core file: an ELF file whose segments are the memory of a process, and whose notes tell what was mapped where. Written by the
 * kernel or by a debugger.
 */
#define _GNU_SOURCE
#include "inspect.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NOTES ((size_t)256 << 20) /* bytes */

struct file {
	int number;
	const char *path;
	uint64_t bytes;
};

static void *read_part(const struct file *file, uint64_t offset, size_t bytes)
{
	char *part = bytes <= MOST_NOTES && offset <= file->bytes && bytes <= file->bytes - offset ? malloc(bytes + 1) : NULL;

	if (part && pread(file->number, part, bytes, (off_t)offset) != (ssize_t)bytes) {
		free(part);
		return NULL;
	}
	if (part)
		part[bytes] = '\0';
	return part;
}

/* ---- Notes ---------------------------------------------------------------------------------------------------- */

/* Mapped files: how many, the unit of their offsets, then start, end and offset of each, then their names. */
static bool add_files(struct target *target, const char *text, size_t bytes, struct fault *fault)
{
	const unsigned long *words = (const unsigned long *)(const void *)text;
	size_t count = bytes >= 2 * sizeof(*words) ? words[0] : 0;
	const char *name, *end = text + bytes;

	if (count > bytes / (3 * sizeof(*words)) || bytes < (2 + 3 * count) * sizeof(*words))
		return true;
	name = text + (2 + 3 * count) * sizeof(*words);
	for (size_t i = 0; i < count && name < end; i++, name += strnlen(name, (size_t)(end - name)) + 1) {
		const unsigned long *at = words + 2 + 3 * i;
		struct region region = { .start = at[0], .end = at[1], .offset = (uint64_t)at[2] * words[1], .path = name };

		if (!regions_add(&target->modules, &region, fault))
			return false;
		if (!*target->program)
			snprintf(target->program, sizeof(target->program), "%s", name);
	}
	return true;
}

static bool read_notes(struct target *target, char *notes, size_t bytes, struct fault *fault)
{
	for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)(notes + at);
		size_t name = (note->n_namesz + 3u) & ~(size_t)3, text = (note->n_descsz + 3u) & ~(size_t)3;

		at += sizeof(*note);
		if (name > bytes - at || text > bytes - at - name)
			break;
		if (note->n_type == NT_FILE && !add_files(target, notes + at + name, note->n_descsz, fault))
			return false;
		at += name + text;
	}
	return true;
}

/* ---- Segments ------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct region *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

static bool add_segment(struct target *target, const struct file *file, const ElfW(Phdr) *is, struct fault *fault)
{
	struct region region = { .start = is->p_vaddr, .end = is->p_vaddr + is->p_memsz, .offset = is->p_offset,
		                 .stored = is->p_filesz, .readable = is->p_flags & PF_R, .writable = is->p_flags & PF_W,
		                 .executable = is->p_flags & PF_X };

	if (is->p_offset + is->p_filesz > file->bytes) {
		target->truncated = true;
		region.stored = is->p_offset < file->bytes ? file->bytes - is->p_offset : 0;
	}
	return !is->p_filesz || regions_add(&target->regions, &region, fault);
}

/* Segments of mapped files are known by the notes. */
static void name_segments(struct target *target)
{
	qsort(target->regions.list, target->regions.count, sizeof(*target->regions.list), by_address);
	for (size_t i = 0; i < target->regions.count; i++) {
		const struct region *module = region_of(&target->modules, target->regions.list[i].start);

		if (module)
			target->regions.list[i].path = module->path;
	}
}

static bool read_segments(struct target *target, const struct file *file, const ElfW(Ehdr) *header, struct fault *fault)
{
	size_t count = header->e_phnum;
	const ElfW(Phdr) *segments;
	bool read = true;

	if (count == PN_XNUM) {
		const ElfW(Shdr) *first = read_part(file, header->e_shoff, sizeof(*first));

		count = first ? first->sh_info : 0;
	}
	segments = read_part(file, header->e_phoff, count * sizeof(*segments));
	if (!segments || !count)
		return refuse(fault, "%s: the core file is cut short: it lacks its table of segments", file->path);
	for (size_t i = 0; i < count && read; i++) {
		char *notes = segments[i].p_type == PT_NOTE ? read_part(file, segments[i].p_offset, segments[i].p_filesz) : NULL;

		if (notes)
			read = read_notes(target, notes, segments[i].p_filesz, fault);
		else if (segments[i].p_type == PT_LOAD)
			read = add_segment(target, file, &segments[i], fault);
	}
	name_segments(target);
	return read;
}

bool core_open(struct target *target, const char *path, struct fault *fault)
{
	struct file file = { open(path, O_RDONLY | O_CLOEXEC), path, 0 };
	struct stat status;
	ElfW(Ehdr) header;

	if (file.number < 0 || fstat(file.number, &status))
		return refuse(fault, "%s: %s", path,
		              errno == ENOENT ? "no such file; name a core file, or a process by its number" : strerror(errno));
	file.bytes = (uint64_t)status.st_size;
	target->memory = file.number;
	target->owner = status.st_uid;
	target->group = status.st_gid;
	if (pread(file.number, &header, sizeof(header), 0) != sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_type != ET_CORE)
		return refuse(fault, "%s: is no core file; a compressed one has to be unpacked first (coredumpctl dump, zstd -d)",
		              path);
	if (header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return refuse(fault, "%s: is of a program with pointers of another size than this command's", path);
	return read_segments(target, &file, &header, fault);
}
