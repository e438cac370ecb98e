/*
 * Rings of elements (linux/kfifo.h). The counts of what came in and went out only grow, modulo 2^32, so all of the room is
 * used. One thread may put in while another takes out: each writes one of the counts, and reads the other before it touches
 * elements.
 */
#include <slabyard/kernel/linux/kfifo.h>

#include <string.h>

int sy__kfifo_init(struct sy__kfifo *ring, void *data, unsigned bytes, size_t element)
{
	unsigned elements = (unsigned)(bytes / element);

	elements = elements ? (unsigned)rounddown_pow_of_two(elements) : 0;
	*ring = (struct sy__kfifo) { .mask = elements ? elements - 1 : 0, .element = (unsigned)element, .data = data };
	return elements < 2 ? -EINVAL : 0;
}

int sy__kfifo_alloc(struct sy__kfifo *ring, unsigned elements, size_t element, gfp_t flags)
{
	*ring = (struct sy__kfifo) { .element = (unsigned)element };
	if (elements < 2 || elements > 1U << 31)
		return -EINVAL;
	elements = (unsigned)roundup_pow_of_two(elements);
	ring->data = kmalloc_array(elements, element, flags);
	if (!ring->data)
		return -ENOMEM;
	ring->mask = elements - 1;
	return 0;
}

void sy__kfifo_free(struct sy__kfifo *ring)
{
	kfree(ring->data);
	*ring = (struct sy__kfifo) { .element = ring->element };
}

/* Elements from a place on, and how many of them come before the end of the memory. */
static char *place(const struct sy__kfifo *ring, unsigned count, unsigned elements, size_t *before_end)
{
	unsigned at = count & ring->mask, rest = ring->mask + 1 - at;

	*before_end = (size_t)(elements < rest ? elements : rest) * ring->element;
	return (char *)ring->data + (size_t)at * ring->element;
}

unsigned sy__kfifo_in(struct sy__kfifo *ring, const void *from, unsigned elements)
{
	unsigned in = ring->in, room = ring->mask + 1 - (in - smp_load_acquire(&ring->out));
	size_t first, all;
	char *at;

	if (!ring->data)
		return 0;
	elements = min(elements, room);
	all = (size_t)elements * ring->element;
	at = place(ring, in, elements, &first);
	memcpy(at, from, first);
	memcpy(ring->data, (const char *)from + first, all - first);
	smp_store_release(&ring->in, in + elements);
	return elements;
}

unsigned sy__kfifo_peek(const struct sy__kfifo *ring, void *to, unsigned elements)
{
	unsigned out = ring->out, there = smp_load_acquire(&ring->in) - out;
	size_t first, all;
	const char *at;

	elements = min(elements, there);
	all = (size_t)elements * ring->element;
	if (!all)
		return 0;
	at = place(ring, out, elements, &first);
	memcpy(to, at, first);
	memcpy((char *)to + first, ring->data, all - first);
	return elements;
}

unsigned sy__kfifo_out(struct sy__kfifo *ring, void *to, unsigned elements)
{
	elements = sy__kfifo_peek(ring, to, elements);
	smp_store_release(&ring->out, ring->out + elements);
	return elements;
}
