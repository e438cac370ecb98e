/* <linux/math.h> for kernel code that is compiled into a program. The C library's <math.h> is another. */
#ifndef SLABYARD_KERNEL_LINUX_MATH_H
#define SLABYARD_KERNEL_LINUX_MATH_H

#pragma GCC system_header

#define DIV_ROUND_UP(number, by) (((number) + (by) - 1) / (by))
#define DIV_ROUND_DOWN_ULL(number, by) ((unsigned long long)(number) / (by))
#define DIV_ROUND_UP_ULL(number, by) DIV_ROUND_DOWN_ULL((unsigned long long)(number) + (by) - 1, (by))
#define DIV_ROUND_CLOSEST(number, by) (((number) + (by) / 2) / (by))
#define roundup(number, by) __extension__ ({ __typeof__(by) sy__by = (by); ((number) + (sy__by - 1)) / sy__by * sy__by; })
#define rounddown(number, by) __extension__ ({ __typeof__(number) sy__number = (number); sy__number - sy__number % (by); })

/* To a power of two. */
#define round_up(number, by) ((((number) - 1) | ((__typeof__(number))((by) - 1))) + 1)
#define round_down(number, by) ((number) & ~((__typeof__(number))((by) - 1)))
#define ALIGN(number, by) (((number) + ((__typeof__(number))(by) - 1)) & ~((__typeof__(number))(by) - 1))
#define ALIGN_DOWN(number, by) ((number) & ~((__typeof__(number))(by) - 1))
#define PTR_ALIGN(pointer, by) ((__typeof__(pointer))ALIGN((unsigned long)(pointer), (by)))
#define IS_ALIGNED(number, by) (((number) & ((__typeof__(number))(by) - 1)) == 0)

#endif
