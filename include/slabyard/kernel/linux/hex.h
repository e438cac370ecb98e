/* <linux/hex.h> for kernel code that is compiled into a program: bytes as hexadecimal digits. */
#ifndef SLABYARD_KERNEL_LINUX_HEX_H
#define SLABYARD_KERNEL_LINUX_HEX_H

#pragma GCC system_header

#include "errno.h"
#include "types.h"

#define hex_asc_lo(byte) ("0123456789abcdef"[(byte) & 15])
#define hex_asc_hi(byte) ("0123456789abcdef"[((byte) & 0xf0) >> 4])
#define hex_asc_upper_lo(byte) ("0123456789ABCDEF"[(byte) & 15])
#define hex_asc_upper_hi(byte) ("0123456789ABCDEF"[((byte) & 0xf0) >> 4])

static inline char *hex_byte_pack(char *text, u8 byte)
{
	*text++ = hex_asc_hi(byte);
	*text++ = hex_asc_lo(byte);
	return text;
}

/* -1: no such digit. */
static inline int hex_to_bin(unsigned char digit)
{
	unsigned char letter = (unsigned char)(digit | 0x20);

	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Two digits for each byte. -EINVAL: there is one that is none. */
static inline int __must_check hex2bin(u8 *to, const char *text, size_t count)
{
	for (; count; count--, text += 2) {
		int high = hex_to_bin((unsigned char)text[0]), low;

		if (high < 0)
			return -EINVAL;
		low = hex_to_bin((unsigned char)text[1]);
		if (low < 0)
			return -EINVAL;
		*to++ = (u8)(high << 4 | low);
	}
	return 0;
}

/* Where the text ends; nothing is written there. */
static inline char *bin2hex(char *to, const void *from, size_t count)
{
	const u8 *byte = (const u8 *)from;

	for (; count; count--)
		to = hex_byte_pack(to, *byte++);
	return to;
}

#endif
