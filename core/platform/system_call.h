/*
 * System calls by the machine's own instruction.
 *
 * Why. A program, or a library preloaded beside ours, may have functions of its own under the C library's names: mmap, getpid, even
 * syscall. Such a function may allocate memory, and would then wait for the heap whose growth it was called for. It may also be
 * called before it is ready. A call made here meets none of them, leaves errno alone, and is no cancellation point.
 *
 * Machines that have no instruction here call the C library's syscall(), and so do builds with a sanitizer, which must see what is
 * mapped. A result from -MOST_ERRORS to -1 is an error number with its sign changed.
 */
#ifndef SY_PLATFORM_SYSTEM_CALL_H
#define SY_PLATFORM_SYSTEM_CALL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SY__MOST_ERRORS 4095l

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SY__SANITIZED
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SY__SANITIZED
#endif

#if defined(__x86_64__) && defined(__LP64__)
static inline long sy__system_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
	                 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__) && defined(__LP64__)
static inline long sy__system_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long call __asm__("x8") = number, first __asm__("x0") = a, second __asm__("x1") = b, third __asm__("x2") = c;
	register long fourth __asm__("x3") = d, fifth __asm__("x4") = e, sixth __asm__("x5") = f;

	__asm__ volatile("svc 0"
	                 : "+r"(first)
	                 : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
	                 : "memory");
	return first;
}
#else
static inline long sy__system_call(long number, long a, long b, long c, long d, long e, long f)
{
	int before = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1)
		result = -(long)errno;
	errno = before;
	return result;
}
#endif

static inline bool sy__system_failed(long result)
{
	return (unsigned long)result >= (unsigned long)-SY__MOST_ERRORS;
}

static inline long sy__system_word(const volatile void *address)
{
	return (long)(uintptr_t)address;
}

/* Calls that have up to four arguments. */
static inline long sy__system(long number, long a, long b, long c, long d)
{
	return sy__system_call(number, a, b, c, d, 0, 0);
}

/* A private anonymous mapping; NULL: none. */
static inline void *sy__system_map(void *at, size_t bytes, int access, int flags)
{
#ifdef SY__SANITIZED
	void *mapped = mmap(at, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
#else
#ifdef SYS_mmap2
	const long number = SYS_mmap2; /* its offset counts pages; here it is 0 */
#else
	const long number = SYS_mmap;
#endif
	long result = sy__system_call(number, sy__system_word(at), (long)bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return sy__system_failed(result) ? NULL : (void *)(uintptr_t)result;
#endif
}

static inline bool sy__system_unmap(void *at, size_t bytes)
{
#ifdef SY__SANITIZED
	return munmap(at, bytes) == 0;
#else
	return sy__system(SYS_munmap, sy__system_word(at), (long)bytes, 0, 0) == 0;
#endif
}

/* Moves or resizes a mapping; NULL: impossible. `to` counts with MREMAP_FIXED alone. */
static inline void *sy__system_remap(void *at, size_t before, size_t bytes, int flags, const void *to)
{
	long result = sy__system_call(SYS_mremap, sy__system_word(at), (long)before, (long)bytes, flags, sy__system_word(to), 0);

	return sy__system_failed(result) ? NULL : (void *)(uintptr_t)result;
}

static inline bool sy__system_protect(void *at, size_t bytes, int access)
{
	return sy__system(SYS_mprotect, sy__system_word(at), (long)bytes, access, 0) == 0;
}

static inline bool sy__system_advise(void *at, size_t bytes, int advice)
{
	return sy__system(SYS_madvise, sy__system_word(at), (long)bytes, advice, 0) == 0;
}

/* Reads the beginning of a text file and ends it with a zero. False: it is empty or cannot be read. */
static inline bool sy__system_text(const char *name, char *text, size_t bytes)
{
	long file = sy__system(SYS_openat, AT_FDCWD, sy__system_word(name), O_RDONLY | O_CLOEXEC, 0);
	long length = file < 0 ? -1 : sy__system(SYS_read, file, sy__system_word(text), (long)bytes - 1, 0);

	if (file >= 0)
		sy__system(SYS_close, file, 0, 0, 0);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static inline int sy__system_process(void)
{
	return (int)sy__system(SYS_getpid, 0, 0, 0, 0);
}

#endif
