/*
 * Where functions are, from the program's own symbol table, which has static functions too.
 *
 * Parts that a compiler splits off (name.part.0, name.cold) count as the function. Functions of different files may have the
 * same name; a mutant means all of them.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "inside.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *image(void)
{
	static const char *start;
	struct stat status;
	int file;

	if (start)
		return start;
	file = open("/proc/self/exe", O_RDONLY);
	if (file < 0 || fstat(file, &status))
		abort();
	start = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (start == MAP_FAILED)
		abort();
	close(file);
	return start;
}

/* The program comes first. */
static int note_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static bool is_called(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(symbol, name, length) && (!symbol[length] || symbol[length] == '.');
}

void functions_find(struct functions *found, const char *name)
{
	const ElfW(Ehdr) *header = (const void *)image();
	const ElfW(Shdr) *sections = (const void *)(image() + header->e_shoff);
	uintptr_t base = 0;

	dl_iterate_phdr(note_base, &base);
	found->count = 0;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		const ElfW(Sym) *symbols = (const void *)(image() + sections[i].sh_offset);
		const char *names = image() + sections[sections[i].sh_link].sh_offset;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t at = 0; at < sections[i].sh_size / sizeof(*symbols); at++) {
			if ((symbols[at].st_info & 0xf) != STT_FUNC || !is_called(names + symbols[at].st_name, name))
				continue;
			if (found->count == MODEL_FUNCTIONS)
				abort();
			found->of[found->count++] = (struct range){ (char *)(base + symbols[at].st_value), symbols[at].st_size };
		}
	}
}

/* Takes an address that a call returns to: it lies behind the call, which may be a function's last instruction. */
bool functions_have(const struct functions *functions, const void *returns_to)
{
	for (unsigned i = 0; i < functions->count; i++)
		if ((uintptr_t)returns_to - 1 - (uintptr_t)functions->of[i].start < functions->of[i].bytes)
			return true;
	return false;
}
