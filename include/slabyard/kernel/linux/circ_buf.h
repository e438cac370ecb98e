/* <linux/circ_buf.h> for kernel code that is compiled into a program: rings of a power of two. */
#ifndef SLABYARD_KERNEL_LINUX_CIRC_BUF_H
#define SLABYARD_KERNEL_LINUX_CIRC_BUF_H

#pragma GCC system_header

struct circ_buf {
	char *buf;
	int head, tail;
};

#define CIRC_CNT(head, tail, size) (((head) - (tail)) & ((size) - 1))
#define CIRC_SPACE(head, tail, size) CIRC_CNT((tail), (head) + 1, (size))
#define CIRC_CNT_TO_END(head, tail, size) \
	(CIRC_CNT(head, tail, size) < (size) - (tail) ? CIRC_CNT(head, tail, size) : (size) - (tail))
#define CIRC_SPACE_TO_END(head, tail, size) \
	(CIRC_SPACE(head, tail, size) < (size) - (head) ? CIRC_SPACE(head, tail, size) : (size) - (head))

#endif
