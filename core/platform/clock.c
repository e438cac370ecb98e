/*
 * The monotonic clock, without the C library's clock_gettime, which may be another's (system_call.h).
 *
 * The kernel maps a small library into each process (vDSO) with a clock that takes a tenth of a system call's time. It is found by
 * its name among that library's symbols. The table of these ends where their names begin, in all such libraries. Where anything is
 * not as expected, the system call serves.
 *
 * That clock reads the processor's counter, which a program may forbid itself (PR_SET_TSC, seccomp's strict mode). To read it is a fault
 * then. The clock that the kernel sets at each of its ticks serves in its place.
 */
#define _GNU_SOURCE /* syscall */
#include "../types.h"
#include "system_call.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>

#if defined(__x86_64__) && defined(__LP64__)
#define CLOCK_NAME "__vdso_clock_gettime"
#elif defined(__aarch64__) && defined(__LP64__)
#define CLOCK_NAME "__kernel_clock_gettime"
#endif

static clockid_t clock_read = CLOCK_MONOTONIC;

void sy__clock_without_counter(bool without)
{
	__atomic_store_n(&clock_read, without ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC, __ATOMIC_RELAXED);
}

#ifdef CLOCK_NAME
typedef int getter(clockid_t, struct timespec *);

static getter *kernels; /* relaxed: a thread that sees it late asks the system */
static bool searched;

static bool same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

static getter *find(uintptr_t start)
{
	const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)start;
	const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(start + file->e_phoff);
	const ElfW(Dyn) *entry = NULL;
	uintptr_t shift = start, symbols = 0, names = 0;
	uintptr_t address = 0;
	getter *found;

	for (unsigned i = 0; i < file->e_phnum; i++) {
		if (segment[i].p_type == PT_LOAD)
			shift = start + segment[i].p_offset - segment[i].p_vaddr;
		else if (segment[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(start + segment[i].p_offset);
	}
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		symbols = entry->d_tag == DT_SYMTAB ? shift + entry->d_un.d_ptr : symbols;
		names = entry->d_tag == DT_STRTAB ? shift + entry->d_un.d_ptr : names;
	}
	for (const ElfW(Sym) *symbol = (const ElfW(Sym) *)symbols; symbols && (uintptr_t)(symbol + 1) <= names; symbol++)
		if (symbol->st_shndx != SHN_UNDEF && same((const char *)names + symbol->st_name, CLOCK_NAME))
			address = shift + symbol->st_value;
	__builtin_memcpy(&found, &address, sizeof(found)); /* as POSIX has functions from dlsym */
	return found;
}

static SY__COLD getter *search(void)
{
	uintptr_t start = getauxval(AT_SYSINFO_EHDR);
	getter *found = start ? find(start) : NULL;

	__atomic_store_n(&kernels, found, __ATOMIC_RELAXED);
	__atomic_store_n(&searched, true, __ATOMIC_RELAXED);
	return found;
}
#endif

uint64_t sy__monotonic(void)
{
#if defined(CLOCK_NAME)
	getter *get = __atomic_load_n(&kernels, __ATOMIC_RELAXED);
	struct timespec now;

	if (sy__unlikely(!get) && !__atomic_load_n(&searched, __ATOMIC_RELAXED))
		get = search();
	if (get && !get(__atomic_load_n(&clock_read, __ATOMIC_RELAXED), &now))
		return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
#ifdef SYS_clock_gettime
	long words[2] = { 0, 0 }; /* on all machines that have this call */

	sy__system(SYS_clock_gettime, CLOCK_MONOTONIC, sy__system_word(words), 0, 0);
	return (uint64_t)words[0] * 1000000000u + (uint64_t)words[1];
#else
	struct timespec then;

	clock_gettime(CLOCK_MONOTONIC, &then);
	return (uint64_t)then.tv_sec * 1000000000u + (uint64_t)then.tv_nsec;
#endif
}
