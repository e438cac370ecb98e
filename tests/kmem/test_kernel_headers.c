/*
 * What kernel code uses beside the allocator (include/slabyard/kernel/linux), used as kernel code does: lists, errors, objects
 * that leave their scope, readers whose objects wait for them, and names of newer kernels. Run under every policy.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "core/types.h"

#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define READERS 3
#define REPLACEMENTS 3000
#define ALIVE 0x5a5a5a5aU

struct session {
	struct list_head link;
	struct rcu_head rcu;
	unsigned alive;
	char name[20];
};

static struct kmem_cache *session_cache;
static LIST_HEAD(sessions);
static DEFINE_SPINLOCK(sessions_lock);

static int sessions_init(void)
{
	struct kmem_cache_args args = { .align = 64 };

	session_cache = kmem_cache_create("session", sizeof(struct session), &args, SLAB_NO_MERGE);
	if (!session_cache)
		return -ENOMEM;
	return 0;
}

static void sessions_exit(void)
{
	kmem_cache_destroy(session_cache);
}

static struct session *session_new(const char *name)
{
	struct session *session = kmem_cache_zalloc(session_cache, GFP_KERNEL);

	if (!session)
		return (struct session *)ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&session->link);
	session->alive = ALIVE;
	strncpy(session->name, name, sizeof(session->name) - 1);
	return session;
}

static void session_free(struct session *session)
{
	session->alive = 0;
	kmem_cache_free(session_cache, session);
}

static uint64_t in_use(void)
{
	struct sy_cache_counts counts;

	sy_cache_count((struct sy_cache *)(void *)session_cache, &counts);
	return counts.objects_in_use;
}

static void lists(void)
{
	static const char *const names[] = { "Bonwick", "Lameter", "Mackall" };
	struct session *session, *spare;
	char order[64] = "";
	LIST_HEAD(others);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		session = session_new(names[i]);
		CHECK(!IS_ERR(session));
		CHECK_EQUAL((uintptr_t)session % 64, 0);
		guard(spinlock)(&sessions_lock);
		list_add(&session->link, &sessions);
	}
	CHECK(!spin_is_locked(&sessions_lock));
	CHECK_EQUAL(list_count_nodes(&sessions), 3);
	list_move_tail(sessions.next, &sessions);
	list_for_each_entry(session, &sessions, link)
		strcat(order, session->name);
	CHECK_TEXT(order, "LameterBonwickMackall");
	list_cut_position(&others, &sessions, sessions.next);
	CHECK(list_is_singular(&others) && list_count_nodes(&sessions) == 2);
	list_splice_tail_init(&others, &sessions);
	CHECK(list_empty(&others));
	session = list_last_entry(&sessions, struct session, link);
	CHECK_TEXT(session->name, "Lameter");
	list_for_each_entry_safe(session, spare, &sessions, link) {
		list_del(&session->link);
		session_free(session);
	}
	CHECK(list_empty(&sessions));
	CHECK_EQUAL(in_use(), 0);
}

struct entry {
	struct hlist_node node;
	int key;
};

static void hash_lists(void)
{
	HLIST_HEAD(bucket);
	struct entry *entry;
	struct hlist_node *spare;
	int sum = 0;

	for (int key = 1; key <= 4; key++) {
		entry = kmalloc(sizeof(*entry), GFP_KERNEL);
		entry->key = key;
		hlist_add_head(&entry->node, &bucket);
	}
	hlist_for_each_entry(entry, &bucket, node)
		sum = sum * 10 + entry->key;
	CHECK_EQUAL(sum, 4321);
	hlist_for_each_entry_safe(entry, spare, &bucket, node) {
		hlist_del_init(&entry->node);
		CHECK(hlist_unhashed(&entry->node));
		kfree(entry);
	}
	CHECK(hlist_empty(&bucket));
}

static void errors(void)
{
	void *pointer = ERR_PTR(-EINVAL);

	CHECK(IS_ERR(pointer) && PTR_ERR(pointer) == -EINVAL && IS_ERR_OR_NULL(NULL) && !IS_ERR(&pointer));
	CHECK_EQUAL(PTR_ERR_OR_ZERO(pointer), -EINVAL);
	CHECK_EQUAL(PTR_ERR_OR_ZERO(&pointer), 0);
}

/* The C library has a type of this name too, another one. */
static void places(void)
{
	loff_t place = -1;
	long long *same = &place;
	char text[8];

	CHECK(*same == -1 && sizeof(place) == 8);
	CHECK_EQUAL(snprintf(text, sizeof(text), "%lld", place), 2);
}

/* ---- Allocation under newer names --------------------------------------------------------------------------------- */

struct row {
	size_t count;
	u32 cells[];
};

static unsigned char *handed_on(size_t size)
{
	unsigned char *first __free(kfree) = kzalloc(size, GFP_KERNEL);
	void *second __free(kvfree) = kvmalloc(size * 1000, GFP_KERNEL);
	void *none __free(kfree) = ERR_PTR(-ENOMEM);

	if (!first || !second || !IS_ERR(none))
		return NULL;
	return_ptr(first);
}

static void newer_names(void)
{
	struct session *session = kzalloc_obj(*session), *three = kmalloc_objs(struct session, 3, GFP_NOWAIT);
	struct row *row = kzalloc_flex(*row, cells, 10);
	unsigned char *bytes = handed_on(50), *more;

	CHECK(session && !session->alive && three && row && !row->cells[9] && ksize(row) >= struct_size(row, cells, 10));
	kfree(session);
	kfree(three);
	kfree(row);
	CHECK(kmalloc_objs(struct session, SIZE_MAX / 4) == NULL && kmalloc_flex(*row, cells, SIZE_MAX / 2) == NULL);
	CHECK(bytes && !bytes[49]);
	bytes[49] = 7;
	more = kvrealloc(bytes, (size_t)9 << 20, GFP_KERNEL | __GFP_ZERO);
	CHECK(more && more[49] == 7 && !more[(9 << 20) - 1] && is_vmalloc_addr(more));
	CHECK(kvrealloc(more, 0, GFP_KERNEL) == ZERO_SIZE_PTR);
	more = vzalloc(10);
	CHECK(more && !more[9] && is_vmalloc_addr(more) && (uintptr_t)more % PAGE_SIZE == 0);
	vfree(more);
	more = vmalloc(100000);
	CHECK(more && is_vmalloc_addr(more) && !vmalloc(0) && !vmalloc(~0UL));
	kvfree(more);
	CHECK(kmemdup_array("ab", SIZE_MAX / 2, 3, GFP_KERNEL) == NULL);
	session_cache = kmem_cache_create("plain", 40, NULL, 0);
	CHECK(session_cache != NULL);
	kmem_cache_destroy(session_cache);
}

/* As in the kernel: a request for no bytes gets an address that is no object's. */
static void no_size(void)
{
	CHECK(kmalloc(0, GFP_KERNEL) == ZERO_SIZE_PTR && kzalloc(0, GFP_ATOMIC) == ZERO_SIZE_PTR);
	CHECK(kmalloc_array(0, 8, GFP_KERNEL) == ZERO_SIZE_PTR && kvmalloc(0, GFP_KERNEL) == ZERO_SIZE_PTR);
	CHECK(krealloc(NULL, 0, GFP_KERNEL) == ZERO_SIZE_PTR && kmemdup("", 0, GFP_KERNEL) == ZERO_SIZE_PTR);
	CHECK_EQUAL(ksize(kmalloc(0, GFP_KERNEL)), 0);
	kvfree(ZERO_SIZE_PTR);
	kfree_sensitive(ZERO_SIZE_PTR);
}

static void pages(void)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO, 2), *one = alloc_page(GFP_KERNEL);
	char *address = page_address(page);

	CHECK(page && one && page != one);
	CHECK_EQUAL((uintptr_t)address % PAGE_SIZE, 0);
	CHECK(virt_to_page(address + 10) == page && page_address(virt_to_page(address + PAGE_SIZE)) == address + PAGE_SIZE);
	memset(address, 1, PAGE_SIZE << 2);
	memset(page_address(one), 2, PAGE_SIZE);
	CHECK_EQUAL(address[(PAGE_SIZE << 2) - 1], 1);
	CHECK(PAGE_ALIGNED(address) && !PAGE_ALIGNED(address + 1));
	CHECK(PAGE_ALIGN_DOWN((unsigned long)(address + 1)) == (unsigned long)address);
	CHECK(pfn_to_page(page_to_pfn(page)) == page && pfn_to_virt(virt_to_pfn(address + 5)) == address);
	__free_pages(page, 2);
	__free_page(one);
	__free_pages(NULL, 0);
	CHECK(alloc_pages(GFP_KERNEL, KMALLOC_MAX_ORDER + 1) == NULL && virt_to_page(&page) == NULL);
}

static void told(void)
{
	struct session *session = session_new("told");

	CHECK(kmem_valid_obj(session) && !kmem_valid_obj(&session) && !kmem_valid_obj(NULL));
	kmem_dump_obj(session->name);
	kmem_dump_obj(&session);
	session_free(session);
}

/* ---- Readers ---------------------------------------------------------------------------------------------------- */

static struct session *present;
static bool over;
static int called;

static void call_one(struct rcu_head *head)
{
	struct session *session = container_of(head, struct session, rcu);

	session->alive = 0;
	__atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
	spin_lock(&sessions_lock); /* the one that is held where it was queued */
	spin_unlock(&sessions_lock);
	kmem_cache_free(session_cache, session);
}

static void *read_present(void *none)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		rcu_read_lock();
		rcu_read_lock();
		CHECK_EQUAL(READ_ONCE(rcu_dereference(present)->alive), ALIVE);
		rcu_read_unlock();
		CHECK_EQUAL(READ_ONCE(rcu_dereference(present)->alive), ALIVE);
		rcu_read_unlock();
	}
	return none;
}

static void readers(void)
{
	pthread_t threads[READERS];

	present = session_new("first");
	for (unsigned i = 0; i < READERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, read_present, NULL));
	for (unsigned i = 0; i < REPLACEMENTS; i++) {
		struct session *next = session_new("next"), *old;

		spin_lock(&sessions_lock);
		old = rcu_replace_pointer(present, next, true);
		if (i % 100)
			call_rcu(&old->rcu, call_one);
		spin_unlock(&sessions_lock);
		if (i % 100)
			continue;
		synchronize_rcu();
		session_free(old);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	rcu_barrier();
	CHECK_EQUAL(called, REPLACEMENTS - REPLACEMENTS / 100);
	CHECK_EQUAL(in_use(), 1);
	session_free(present);
}

/* An object freed while somebody reads stays; then it goes without anybody waiting. */
static void freed_later(void)
{
	bool by_kfree = strstr("slub slab slqb bonwick", sy_kmem_heap()->policy->name) != NULL;
	struct session *session = by_kfree ? session_new("old") : kzalloc(sizeof(*session), GFP_KERNEL);
	struct session *none = NULL;

	rcu_read_lock();
	CHECK(rcu_read_lock_held());
	session->alive = ALIVE;
	kfree_rcu(session, rcu);
	kfree_rcu(none, rcu);
	CHECK_EQUAL(session->alive, ALIVE);
	CHECK_EQUAL(in_use(), by_kfree);
	rcu_read_unlock();
	CHECK(!rcu_read_lock_held());
	CHECK_EQUAL(in_use(), 0);
	kfree_rcu_mightsleep(kmalloc(100, GFP_KERNEL));
	scoped_guard(rcu)
		CHECK(rcu_read_lock_held());
	CHECK(!rcu_read_lock_held());
}

/* The child does not have the reader who was reading. */
static void forked_beside_reader(void)
{
	pthread_t thread;
	int status = 1;
	pid_t child;

	__atomic_store_n(&over, false, __ATOMIC_RELEASE);
	present = session_new("forked");
	CHECK(!pthread_create(&thread, NULL, read_present, NULL));
	for (unsigned i = 0; i < 20; i++) {
		child = fork();
		if (!child) {
			alarm(60);
			synchronize_rcu();
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK_EQUAL(status, 0);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	session_free(present);
}

/* A child frees an address that is no object's, or one a second time: it ends, and other memory stays. */
static void foreign_frees(void)
{
	static char statics[3 * 65536];
	char *inside = (char *)(((uintptr_t)statics + 65536) & ~(uintptr_t)65535), local[10];
	char *mapped = kvmalloc(64 << 20, GFP_KERNEL), *gone = kvmalloc(64 << 20, GFP_KERNEL);
	const void *addresses[] = { statics + 1, local, inside, mapped + 65536, (void *)65536, gone };

	CHECK(mapped && gone);
	kvfree(gone);
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		int status = 0;
		pid_t child = fork();

		if (!child) {
			kvfree(addresses[i]);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	kvfree(mapped);
}

int main(void)
{
	foreign_frees();
	newer_names();
	no_size();
	pages();
	CHECK_EQUAL(sessions_init(), 0);
	lists();
	hash_lists();
	errors();
	places();
	told();
	readers();
	freed_later();
	forked_beside_reader();
	sessions_exit();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
