/* The states that a search has seen. Include it after struct state. Unused bytes of that must be the same in equal states. */
#ifndef MODEL_STATES_H
#define MODEL_STATES_H

static struct {
	struct state *states;
	uint32_t *places; /* hash table of indices + 1 */
	size_t count, room, size;
} seen;

static void forget(void)
{
	free(seen.states);
	free(seen.places);
	memset(&seen, 0, sizeof(seen));
}

static void *must(void *memory)
{
	if (!memory) {
		fputs("no memory for the states of the model\n", stderr);
		exit(2);
	}
	return memory;
}

static size_t place_of(const struct state *state)
{
	const unsigned char *bytes = (const unsigned char *)state;
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*state); i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	hash ^= hash >> 32;
	while (seen.places[hash % seen.size] && memcmp(&seen.states[seen.places[hash % seen.size] - 1], state, sizeof(*state)))
		hash++;
	return (size_t)(hash % seen.size);
}

static void grow(void)
{
	seen.room = seen.room ? seen.room * 2 : 1u << 16;
	seen.size = seen.room * 2;
	seen.states = must(realloc(seen.states, seen.room * sizeof(*seen.states)));
	free(seen.places);
	seen.places = must(calloc(seen.size, sizeof(*seen.places)));
	for (size_t i = 0; i < seen.count; i++)
		seen.places[place_of(&seen.states[i])] = (uint32_t)i + 1;
}

static void visit(const struct state *state)
{
	size_t place;

	if (seen.count == seen.room)
		grow();
	place = place_of(state);
	if (seen.places[place])
		return;
	seen.states[seen.count++] = *state;
	seen.places[place] = (uint32_t)seen.count;
}

#endif
