/*
 * The C++ header, under every policy: pmr containers, alignments and sizes beyond the heap's own, objects that stay constructed,
 * containers of nodes with caches of their own, from several threads, and nothing but std::bad_alloc where there is no memory.
 */
#include <slabyard/slabyard.hpp>

#include <list>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "check.h"

using slabyard::heap;

/* ---- memory_resource ------------------------------------------------------------------------------------------ */

/* Counts what is held of another resource. */
class counting : public std::pmr::memory_resource {
public:
	std::size_t held = 0, most = 0;

private:
	void *do_allocate(std::size_t bytes, std::size_t align) override
	{
		held += bytes;
		most = held > most ? held : most;
		return std::pmr::new_delete_resource()->allocate(bytes, align);
	}

	void do_deallocate(void *object, std::size_t bytes, std::size_t align) override
	{
		held -= bytes;
		std::pmr::new_delete_resource()->deallocate(object, bytes, align);
	}

	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}
};

static void containers(const heap &on)
{
	slabyard::memory_resource resource(on);
	std::pmr::unordered_map<std::pmr::string, std::pmr::vector<int>> table(&resource);
	std::size_t sum = 0;

	for (int i = 0; i < 2000; i++) {
		auto &row = table[std::pmr::string("a key that is too long to be kept inside ", &resource) + std::to_string(i % 500).c_str()];

		row.push_back(i);
	}
	for (const auto &[key, row] : table)
		sum += key.size() * row.size();
	CHECK_EQUAL(table.size(), 500);
	CHECK(sum > 2000 * 40);
	CHECK(resource.is_equal(resource));
	CHECK(!resource.is_equal(*std::pmr::new_delete_resource()));
}

static void every_size(const heap &on)
{
	counting upstream;
	slabyard::memory_resource resource(on, &upstream);

	for (std::size_t bytes = 0; bytes <= std::size_t(8) << 20; bytes = bytes * 3 + 1) {
		for (std::size_t align = 1; align <= 16384; align *= 2) {
			void *object = resource.allocate(bytes, align);

			CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(object) % align, 0);
			std::memset(object, 0x55, bytes);
			resource.deallocate(object, bytes, align);
		}
	}
	CHECK_EQUAL(upstream.held, 0);
	CHECK(upstream.most > std::size_t(4) << 20);
}

static bool refuses(slabyard::memory_resource &resource, std::size_t bytes, std::size_t align)
{
	try {
		resource.deallocate(resource.allocate(bytes, align), bytes, align);
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static void no_memory(const char *policy)
{
	sy_heap_options options = heap::usual();
	options.limit = std::size_t(16) << 20;
	heap small(policy, options);
	slabyard::memory_resource resource(small, std::pmr::null_memory_resource());
	std::vector<void *> objects;
	bool refused = false;

	while (!refused && objects.size() < 100) {
		try {
			objects.push_back(resource.allocate(std::size_t(1) << 20));
		} catch (const std::bad_alloc &) {
			refused = true;
		}
	}
	CHECK(refused);
	CHECK(objects.size() > 3);
	CHECK(refuses(resource, std::size_t(5) << 20, 8));
	CHECK(refuses(resource, SIZE_MAX, 8));
	CHECK(refuses(resource, SIZE_MAX - 100, 256));
	CHECK(refuses(resource, 8, std::size_t(1) << 40));
	for (void *object : objects)
		resource.deallocate(object, std::size_t(1) << 20);
	CHECK(!refuses(resource, 1000, 128));
}

/* ---- object_cache --------------------------------------------------------------------------------------------- */

static int constructed, destroyed;

struct connection {
	connection() noexcept
	{
		constructed++;
	}

	~connection()
	{
		destroyed++;
	}

	std::mutex lock;
	int uses = 0;
	char name[40] = "nobody";
};

struct forget {
	void operator()(connection &of) const noexcept
	{
		of.uses = 0;
		std::strcpy(of.name, "nobody");
	}
};

static void stay_constructed(const char *policy)
{
	constructed = destroyed = 0;
	{
		heap on(policy);
		slabyard::object_cache<connection, forget> cache(on, "connection");

		for (int round = 0; round < 1000; round++) {
			auto one = cache.make();
			connection *other = cache.allocate();
			std::lock_guard<std::mutex> hold(one->lock);

			CHECK_EQUAL(one->uses, 0);
			CHECK(!std::strcmp(other->name, "nobody"));
			one->uses = round + 1;
			std::strcpy(other->name, "somebody");
			cache.free(other);
		}
		CHECK_EQUAL(cache.count().objects_in_use, 0);
		CHECK(cache.try_make() != nullptr);
		cache.free(nullptr);
		cache.shrink();
	}
	CHECK(constructed > 0);
	CHECK_EQUAL(constructed, destroyed);
}

struct alignas(64) line {
	int value = 7;
};

static void aligned_objects(const heap &on)
{
	slabyard::object_cache<line> cache(on);
	std::vector<slabyard::object_cache<line>::handle> lines;

	for (int i = 0; i < 100; i++) {
		lines.push_back(cache.make());
		CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(lines.back().get()) % 64, 0);
		CHECK_EQUAL(lines.back()->value, 7);
	}
}

/* ---- cache_allocator ------------------------------------------------------------------------------------------ */

template <typename T> using allocator = slabyard::cache_allocator<T>;

struct tree { /* vectors and lists may be of a type that is not complete yet */
	explicit tree(slabyard::cache_pool &pool) : children(allocator<tree>(pool))
	{
	}

	std::list<tree, allocator<tree>> children;
};

static void nodes(const heap &on)
{
	slabyard::cache_pool pool(on), another(on);
	std::map<int, long, std::less<int>, allocator<std::pair<const int, long>>> map{ allocator<std::pair<const int, long>>(pool) };
	std::list<int, allocator<int>> list(allocator<int>(map.get_allocator())), moved(allocator<int>{ another });
	std::vector<line, allocator<line>> vector{ allocator<line>(pool) };
	tree root(pool);

	for (int i = 0; i < 3000; i++) {
		map[i * 7919 % 3000] = i;
		list.push_front(i);
		vector.emplace_back();
		CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(vector.data()) % 64, 0);
	}
	for (int i = 0; i < 3000; i += 2)
		map.erase(i);
	CHECK_EQUAL(map.size(), 1500);
	CHECK(list.get_allocator() == map.get_allocator());
	CHECK(list.get_allocator() != moved.get_allocator());
	moved = std::move(list);
	CHECK_EQUAL(moved.size(), 3000);
	CHECK(moved.get_allocator() == map.get_allocator());
	root.children.emplace_back(pool);
	root.children.back().children.emplace_back(pool);
	auto shared = std::allocate_shared<line>(allocator<line>(pool));
	CHECK_EQUAL(shared->value, 7);
}

static void fill_and_empty(slabyard::cache_pool *pool, int seed)
{
	for (int round = 0; round < 20; round++) {
		std::set<int, std::less<int>, allocator<int>> set{ allocator<int>(*pool) };
		std::list<long, allocator<long>> list{ allocator<long>(*pool) };

		for (int i = 0; i < 500; i++) {
			set.insert(i * seed % 501);
			list.push_back(i);
		}
		CHECK(set.size() > 100);
		CHECK_EQUAL(list.size(), 500);
	}
}

static void many_threads(const heap &on)
{
	slabyard::cache_pool pool(on);
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back(fill_and_empty, &pool, 2 * i + 1);
	for (auto &thread : threads)
		thread.join();
}

/* ---- heap ----------------------------------------------------------------------------------------------------- */

static void wrong_spec()
{
	bool refused = false;

	try {
		heap none("slubb");
	} catch (const std::bad_alloc &error) {
		refused = true;
		CHECK_TEXT(error.what(), "no allocator is named slubb: did you mean slub?");
	}
	CHECK(refused);
}

static void moves()
{
	heap first, second("slob");
	sy_heap *raw = first.get();

	heap third(std::move(first));
	CHECK(third.get() == raw);
	CHECK(first.get() == nullptr);
	second = std::move(third);
	CHECK(second.get() == raw);
}

/* What a heap holds. */
struct held {
	unsigned slabs, large;
};

static bool count_held(void *context, const sy_slab *slab)
{
	held *counts = static_cast<held *>(context);

	slab->large ? counts->large++ : counts->slabs++;
	return true;
}

static held held_by(heap &on)
{
	held counts = { 0, 0 };
	sy_visitor visitor = {};

	visitor.slab = count_held;
	visitor.part = [](void *, const sy_slab *, const sy_part *) { return true; };
	visitor.context = &counts;
	CHECK(sy_heap_walk(on.get(), &visitor));
	return counts;
}

int main()
{
	wrong_spec();
	moves();
	for (const sy_policy *const *at = sy_policies; *at; at++) {
		unsigned before = check_failures;
		sy_policy_description policy;

		sy_policy_describe(*at, &policy);
		{
			heap on(policy.name);

			containers(on);
			every_size(on);
			aligned_objects(on);
			nodes(on);
			many_threads(on);
			on.shrink();
			on.trim();
			CHECK_FINE(sy_heap_check(on.get()));
			if (policy.gives != SY_GIVES_NEVER)
				CHECK_EQUAL(held_by(on).slabs, 0);
			CHECK_EQUAL(held_by(on).large, 0);
		}
		no_memory(policy.name);
		stay_constructed(policy.name);
		if (check_failures != before)
			std::fprintf(stderr, "that was %s\n", policy.name);
	}
	return check_result();
}
