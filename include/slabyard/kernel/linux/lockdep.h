/* <linux/lockdep.h> for kernel code that is compiled into a program: nothing follows locks. */
#ifndef SLABYARD_KERNEL_LINUX_LOCKDEP_H
#define SLABYARD_KERNEL_LINUX_LOCKDEP_H

#pragma GCC system_header

#include "types.h"

struct lock_class_key {
	char none;
};

struct lockdep_map {
	char none;
};

#ifndef lockdep_assert_held
#define lockdep_assert_held(lock) ((void)(lock))
#endif
#define lockdep_assert_not_held(lock) ((void)(lock))
#define lockdep_is_held(lock) ((void)(lock), 1)
#define lockdep_set_class(lock, key) ((void)(lock))
#define lockdep_set_class_and_name(lock, key, name) ((void)(lock))
#define lockdep_init_map(map, name, key, subclass) ((void)(map))
#define lockdep_register_key(key) ((void)(key))
#define lockdep_unregister_key(key) ((void)(key))
#define lockdep_off() ((void)0)
#define lockdep_on() ((void)0)
#define might_lock(lock) ((void)(lock))
#define lock_acquire(...) ((void)0)
#define lock_release(...) ((void)0)
#define lock_acquire_exclusive(...) ((void)0)
#define lock_acquire_shared(...) ((void)0)
#define lock_map_acquire(map) ((void)(map))
#define lock_map_release(map) ((void)(map))
#define lock_map_acquire_read(map) ((void)(map))
#define STATIC_LOCKDEP_MAP_INIT(name, key) { 0 }
#define SINGLE_DEPTH_NESTING 1

#endif
