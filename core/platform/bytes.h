/* Copies, fills and compares bytes, as the compiler knows best. */
#ifndef SY_PLATFORM_BYTES_H
#define SY_PLATFORM_BYTES_H

static inline void sy__copy(void *to, const void *from, size_t bytes)
{
	__builtin_memcpy(to, from, bytes);
}

static inline void sy__fill(void *to, int byte, size_t bytes)
{
	__builtin_memset(to, byte, bytes);
}

static inline bool sy__same(const void *a, const void *b, size_t bytes)
{
	return __builtin_memcmp(a, b, bytes) == 0;
}

#endif
