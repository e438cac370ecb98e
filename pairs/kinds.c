/*
 * Objects as a kernel has them: the six of the second table in section 5.1 of Bonwick 1994.
 *
 * Each is written after what such an object is for. Its constructed state is what the paper says constructed state is: locks,
 * condition variables, lists, reference counts, and what never changes. A constructor makes it, a destructor undoes it; between uses
 * it is as it was. begin sets what each use has of its own, end sees that the object is fit to be used again.
 *
 * Locks and condition variables are the C library's, as those of a kernel of 1994 cannot be had. His were dearer than these: the
 * paper gives 23.6 us for what a stream head has, 12 times as much as for a pair of mutex_enter and mutex_exit.
 */
#include "pairs.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- What they have in common --------------------------------------------------------------------------------- */

struct list {
	struct list *next, *previous;
};

static void list_make(struct list *list)
{
	list->next = list->previous = list;
}

static void must(int so)
{
	if (!so)
		abort();
}

static void must_be_empty(const struct list *list)
{
	must(list->next == list);
}

#define DESCRIPTOR_WORDS (4 * MOST_LIVE / 64 + 1) /* two for each pipe, and as many beside */

/* What objects refer to that live longer than they. */
static struct {
	pthread_mutex_t lock;
	unsigned holds;
	uint64_t descriptors[DESCRIPTOR_WORDS]; /* a bit for each one in use */
	int64_t now;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER, .descriptors = { 7 }, .now = 784111777 };

/* ---- Stream head: shalloc ------------------------------------------------------------------------------------- */

struct stream_head {
	pthread_mutex_t lock, reference_lock, queue_lock;
	pthread_cond_t monitor, ioctl_done, references_gone, readable, writable;
	struct list poll_waiters, signal_waiters;
	unsigned references;
	void *vnode, *write_queue, *multiplexer;
	unsigned flags, write_offset, close_time;
	int read_error, write_error, ioctl_id;
	size_t least, most; /* bytes of a packet */
};

static void construct_stream_head(void *object, size_t size)
{
	struct stream_head *head = object;

	(void)size;
	pthread_mutex_init(&head->lock, NULL);
	pthread_mutex_init(&head->reference_lock, NULL);
	pthread_mutex_init(&head->queue_lock, NULL);
	pthread_cond_init(&head->monitor, NULL);
	pthread_cond_init(&head->ioctl_done, NULL);
	pthread_cond_init(&head->references_gone, NULL);
	pthread_cond_init(&head->readable, NULL);
	pthread_cond_init(&head->writable, NULL);
	list_make(&head->poll_waiters);
	list_make(&head->signal_waiters);
	head->references = 0;
}

static void destruct_stream_head(void *object, size_t size)
{
	struct stream_head *head = object;

	(void)size;
	must(!head->references);
	must_be_empty(&head->poll_waiters);
	must_be_empty(&head->signal_waiters);
	pthread_cond_destroy(&head->writable);
	pthread_cond_destroy(&head->readable);
	pthread_cond_destroy(&head->references_gone);
	pthread_cond_destroy(&head->ioctl_done);
	pthread_cond_destroy(&head->monitor);
	pthread_mutex_destroy(&head->queue_lock);
	pthread_mutex_destroy(&head->reference_lock);
	pthread_mutex_destroy(&head->lock);
}

static void begin_stream_head(void **parts)
{
	struct stream_head *head = parts[0];

	head->vnode = &process;
	head->write_queue = head->multiplexer = NULL;
	head->flags = head->write_offset = 0;
	head->read_error = head->write_error = head->ioctl_id = 0;
	head->close_time = 15;
	head->least = 0;
	head->most = SIZE_MAX;
}

static const struct type stream_head = { "stream_head", sizeof(struct stream_head), construct_stream_head, destruct_stream_head };

/* ---- Queue pair: allocq --------------------------------------------------------------------------------------- */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t wait;
	void *first, *last, *bands; /* messages */
	size_t bytes;
	const void *module;
	struct queue *next;
	unsigned flags;
	size_t high, low, least, most;
};

struct queue_pair {
	struct queue read, write;
	struct {
		pthread_mutex_t lock;
		pthread_cond_t wait, exit;
		struct list events;
		unsigned inside;
	} perimeter; /* who may be inside of the module */
};

static void construct_queue(struct queue *queue)
{
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->wait, NULL);
	queue->first = queue->last = queue->bands = NULL;
	queue->bytes = 0;
	queue->next = NULL;
}

static void destruct_queue(struct queue *queue)
{
	must(!queue->first && !queue->bands && !queue->next);
	pthread_cond_destroy(&queue->wait);
	pthread_mutex_destroy(&queue->lock);
}

static void construct_queue_pair(void *object, size_t size)
{
	struct queue_pair *pair = object;

	(void)size;
	construct_queue(&pair->read);
	construct_queue(&pair->write);
	pthread_mutex_init(&pair->perimeter.lock, NULL);
	pthread_cond_init(&pair->perimeter.wait, NULL);
	pthread_cond_init(&pair->perimeter.exit, NULL);
	list_make(&pair->perimeter.events);
	pair->perimeter.inside = 0;
}

static void destruct_queue_pair(void *object, size_t size)
{
	struct queue_pair *pair = object;

	(void)size;
	must(!pair->perimeter.inside);
	must_be_empty(&pair->perimeter.events);
	pthread_cond_destroy(&pair->perimeter.exit);
	pthread_cond_destroy(&pair->perimeter.wait);
	pthread_mutex_destroy(&pair->perimeter.lock);
	destruct_queue(&pair->write);
	destruct_queue(&pair->read);
}

static void begin_queue(struct queue *queue, unsigned flags)
{
	queue->module = &process;
	queue->flags = flags;
	queue->high = 5120;
	queue->low = 1024;
	queue->least = 0;
	queue->most = SIZE_MAX;
}

static void begin_queue_pair(void **parts)
{
	struct queue_pair *pair = parts[0];

	begin_queue(&pair->read, 1);
	begin_queue(&pair->write, 2);
}

static const struct type queue_pair = { "queue_pair", sizeof(struct queue_pair), construct_queue_pair, destruct_queue_pair };

/* ---- Messages: allocb, dupb ----------------------------------------------------------------------------------- */

struct message {
	struct message *next, *previous, *rest;
	unsigned char *read, *write;
	struct data *data;
	unsigned char band;
	unsigned short flags;
};

struct data {
	unsigned char *base, *limit;
	void (*release)(void *);
	void *argument;
	unsigned references, type;
};

/* A message with a buffer of its own. */
struct block {
	struct message message;
	struct data data;
	unsigned char buffer[128];
};

static void construct_message(void *object, size_t size)
{
	struct message *message = object;

	(void)size;
	message->next = message->previous = message->rest = NULL;
	message->data = NULL;
	message->band = 0;
	message->flags = 0;
}

static void destruct_message(void *object, size_t size)
{
	const struct message *message = object;

	(void)size;
	must(!message->next && !message->rest && !message->data);
}

static void construct_block(void *object, size_t size)
{
	struct block *block = object;

	construct_message(&block->message, size);
	block->message.data = &block->data;
	block->data.base = block->buffer;
	block->data.limit = block->buffer + sizeof(block->buffer);
	block->data.release = NULL;
	block->data.argument = NULL;
	block->data.references = 1;
}

static void destruct_block(void *object, size_t size)
{
	const struct block *block = object;

	(void)size;
	must(!block->message.next && !block->message.rest && block->data.references == 1);
}

static void begin_block(void **parts)
{
	struct block *block = parts[0];

	block->message.read = block->message.write = block->data.base;
	block->data.type = 0;
}

/* The message that is copied. */
static struct block original = { .message = { .read = original.buffer, .write = original.buffer, .data = &original.data },
	                         .data = { .base = original.buffer, .references = 1 } };

static void begin_copy(void **parts)
{
	struct message *copy = parts[0];

	pthread_mutex_lock(&process.lock);
	original.data.references++;
	pthread_mutex_unlock(&process.lock);
	copy->read = original.message.read;
	copy->write = original.message.write;
	copy->data = original.message.data;
}

static void end_copy(void **parts)
{
	struct message *copy = parts[0];

	pthread_mutex_lock(&process.lock);
	copy->data->references--;
	pthread_mutex_unlock(&process.lock);
	copy->data = NULL;
}

static const struct type block = { "block", sizeof(struct block), construct_block, destruct_block };
static const struct type message = { "message", sizeof(struct message), construct_message, destruct_message };

/* ---- Anonymous memory: anonmap_alloc -------------------------------------------------------------------------- */

#define SLOTS 16

struct anonmap {
	pthread_mutex_t lock;
	pthread_cond_t wait;
	unsigned references;
	size_t bytes, reserved;
	void **slots; /* of pages */
};

static void construct_anonmap(void *object, size_t size)
{
	struct anonmap *map = object;

	(void)size;
	pthread_mutex_init(&map->lock, NULL);
	pthread_cond_init(&map->wait, NULL);
	map->references = 1;
}

static void destruct_anonmap(void *object, size_t size)
{
	struct anonmap *map = object;

	(void)size;
	must(map->references == 1);
	pthread_cond_destroy(&map->wait);
	pthread_mutex_destroy(&map->lock);
}

static void begin_anonmap(void **parts)
{
	struct anonmap *map = parts[0];

	map->slots = parts[1];
	memset(map->slots, 0, SLOTS * sizeof(*map->slots));
	map->bytes = SLOTS << 12;
	map->reserved = 0;
}

static const struct type anonmap = { "anonmap", sizeof(struct anonmap), construct_anonmap, destruct_anonmap };

/* ---- Pipe: makepipe ------------------------------------------------------------------------------------------- */

struct pipe_end {
	struct {
		pthread_mutex_t lock;
		pthread_cond_t wait;
		struct list pages;
		unsigned references, type;
		const void *operations;
		void *stream, *mounted;
	} vnode;
	pthread_mutex_t lock;
	pthread_cond_t readers_wait, writers_wait;
	struct list messages;
	unsigned readers, writers;
	struct pipe_end *other;
	size_t bytes;
	int64_t accessed, modified, changed;
	unsigned user, group;
	uint64_t inode;
};

struct file {
	pthread_mutex_t lock;
	unsigned references, flags;
	void *vnode, *credentials;
	int64_t offset;
	unsigned descriptor;
};

static void construct_pipe_end(void *object, size_t size)
{
	struct pipe_end *end = object;

	(void)size;
	pthread_mutex_init(&end->vnode.lock, NULL);
	pthread_cond_init(&end->vnode.wait, NULL);
	list_make(&end->vnode.pages);
	end->vnode.references = 1;
	end->vnode.type = 8;
	end->vnode.operations = &process;
	end->vnode.stream = end->vnode.mounted = NULL;
	pthread_mutex_init(&end->lock, NULL);
	pthread_cond_init(&end->readers_wait, NULL);
	pthread_cond_init(&end->writers_wait, NULL);
	list_make(&end->messages);
	end->readers = end->writers = 1;
}

static void destruct_pipe_end(void *object, size_t size)
{
	struct pipe_end *end = object;

	(void)size;
	must_be_empty(&end->messages);
	must_be_empty(&end->vnode.pages);
	must(end->vnode.references == 1);
	pthread_cond_destroy(&end->writers_wait);
	pthread_cond_destroy(&end->readers_wait);
	pthread_mutex_destroy(&end->lock);
	pthread_cond_destroy(&end->vnode.wait);
	pthread_mutex_destroy(&end->vnode.lock);
}

static void construct_file(void *object, size_t size)
{
	struct file *file = object;

	(void)size;
	pthread_mutex_init(&file->lock, NULL);
	file->references = 1;
}

static void destruct_file(void *object, size_t size)
{
	struct file *file = object;

	(void)size;
	must(file->references == 1);
	pthread_mutex_destroy(&file->lock);
}

/* The lowest free descriptor. */
static unsigned take_descriptor(void)
{
	unsigned word = 0, bit;

	pthread_mutex_lock(&process.lock);
	while (!~process.descriptors[word])
		word++;
	bit = (unsigned)__builtin_ctzll(~process.descriptors[word]);
	process.descriptors[word] |= (uint64_t)1 << bit;
	process.holds++;
	pthread_mutex_unlock(&process.lock);
	return word * 64 + bit;
}

static void begin_end(struct pipe_end *end, struct pipe_end *other, struct file *file, unsigned flags)
{
	end->other = other;
	end->bytes = 0;
	end->accessed = end->modified = end->changed = process.now;
	end->user = end->group = 100;
	end->inode = (uintptr_t)end >> 4;
	file->vnode = &end->vnode;
	file->credentials = &process;
	file->flags = flags;
	file->offset = 0;
	file->descriptor = take_descriptor();
}

static void end_end(const struct file *file)
{
	pthread_mutex_lock(&process.lock);
	process.descriptors[file->descriptor / 64] &= ~((uint64_t)1 << file->descriptor % 64);
	process.holds--;
	pthread_mutex_unlock(&process.lock);
}

static void begin_pipe(void **parts)
{
	begin_end(parts[0], parts[1], parts[2], 1);
	begin_end(parts[1], parts[0], parts[3], 2);
}

static void end_pipe(void **parts)
{
	end_end(parts[2]);
	end_end(parts[3]);
}

static const struct type pipe_end = { "pipe_end", sizeof(struct pipe_end), construct_pipe_end, destruct_pipe_end };
static const struct type file = { "file", sizeof(struct file), construct_file, destruct_file };

/* ---- All of them ---------------------------------------------------------------------------------------------- */

const struct kind kinds[] = {
	{ "allocb", "a message with a buffer of its own", { &block }, 0, begin_block, NULL },
	{ "dupb", "a message that shares another's buffer", { &message }, 0, begin_copy, end_copy },
	{ "shalloc", "a stream head", { &stream_head }, 0, begin_stream_head, NULL },
	{ "allocq", "a pair of queues", { &queue_pair }, 0, begin_queue_pair, NULL },
	{ "anonmap_alloc", "a map of anonymous memory, and an array for it", { &anonmap }, SLOTS * sizeof(void *), begin_anonmap, NULL },
	{ "makepipe", "both ends of a pipe, each with a file", { &pipe_end, &pipe_end, &file, &file }, 0, begin_pipe, end_pipe },
	{ 0 },
};
