# What mm/Makefile includes in place of the line that names the object of the kernel's own allocator: slob.o (6.1), slub.o (6.12).
ifneq ($(CONFIG_SLOB)$(if $(wildcard $(srctree)/mm/slob.c),,y),)
obj-y += slabyard/linux/
CFLAGS_slab_common.o += -include $(srctree)/mm/slabyard/linux/slab_common.h
endif
