/*
 * The bug of Bonwick 1994, section 6.8: somebody writes into a free snode. Calls and names are his.
 *
 * The cache has checks, by flags of its own; its heap has none. The free snode is found to be modified when the cache is shrunk.
 */
#include <slabyard/kmem.h>

#include <stdint.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

struct snode {
	uint32_t words[50];
};

static struct kmem_cache *snode_cache;
static struct snode *volatile snode;

static NOINLINE void specvp(void)
{
	snode = kmem_cache_alloc(snode_cache, GFP_KERNEL);
}

static NOINLINE void ufs_lookup(void)
{
	specvp();
	__asm__ volatile("");
}

static NOINLINE void lookuppn(void)
{
	ufs_lookup();
	__asm__ volatile("");
}

static NOINLINE void copen(void)
{
	lookuppn();
	__asm__ volatile("");
}

static NOINLINE void spec_inactive(void)
{
	kmem_cache_free(snode_cache, snode);
	__asm__ volatile("");
}

static NOINLINE void closef(void)
{
	spec_inactive();
	__asm__ volatile("");
}

int main(void)
{
	snode_cache = kmem_cache_create("snode_cache", sizeof(struct snode), 0, SLAB_POISON | SLAB_STORE_USER, NULL);
	copen();
	printf("%p\n", (void *)snode);
	fflush(stdout);
	closef();
	snode->words[0x18 / 4] = 0x34;
	kmem_cache_shrink(snode_cache);
	return 0;
}
