/* <linux/typecheck.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_TYPECHECK_H
#define SLABYARD_KERNEL_LINUX_TYPECHECK_H

#pragma GCC system_header

#define typecheck(type, value) __extension__ ({ type sy__one; __typeof__(value) sy__two; (void)(&sy__one == &sy__two); 1; })
#define typecheck_fn(type, function) __extension__ ({ __typeof__(type) sy__one = (function); (void)sy__one; })

#endif
