# What mm/Makefile includes in place of the line that names slob.o.
ifeq ($(CONFIG_SLOB),y)
sy-mm := $(srctree)/mm/slabyard
sy-flags := -I$(sy-mm)/linux/include -I$(sy-mm) -I$(sy-mm)/include -I$(sy-mm)/linux \
            -DSY_PLATFORM_SHIM='<platform.h>' -DSY_PAGE_DESCRIPTOR='<descriptor.h>' $(if $(CONFIG_ARM64),-mno-outline-atomics)
obj-y += slob.o slabyard/linux/
CFLAGS_slob.o += $(sy-flags)
# With CONFIG_SLOB the kernel drops flags of caches that slob.c of Linux knows nothing of; this one does.
CFLAGS_slab_common.o += -include $(sy-mm)/linux/cache_flags.h
endif
