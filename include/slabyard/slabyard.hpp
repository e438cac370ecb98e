/*
 * slabyard for C++17: heaps, caches of constructed objects, and what standard containers take memory from.
 *
 *   slabyard::heap               a heap of threads, destroyed with its owner
 *   slabyard::memory_resource    a heap as std::pmr::memory_resource
 *   slabyard::object_cache<T>    a cache of objects that stay constructed while they are free (Bonwick 1994, section 2), with
 *                                std::unique_ptr as handle
 *   slabyard::cache_pool, slabyard::cache_allocator<T>
 *                                an allocator for containers that are made of nodes: the nodes of each type have a cache of
 *                                their own
 *
 * Everything is a thin cover of slabyard.h: no virtual function but those of memory_resource, no state but pointers. A heap
 * outlives what is made on it, and a cache the objects in it.
 *
 * Errors. Where there is no memory, std::bad_alloc is thrown, and nothing else ever. A spec that makes no sense is reported by
 * slabyard::bad_heap, which is a std::bad_alloc whose what() is the line for the user. Functions whose name begins with try_
 * return a null pointer. Compiled without exceptions (-fno-exceptions), the program is aborted where it would throw, with
 * what() on standard error.
 *
 * Thread safety. Any thread may use any of these at any time, as sy_heap_open says; making and destroying excepted. Cost: that
 * of sy_alloc, sy_free, sy_malloc and sy_mfree, and a comparison or two.
 */
#ifndef SLABYARD_HPP
#define SLABYARD_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "slabyard.h"

namespace slabyard {

namespace detail {

#ifdef __cpp_exceptions
template <typename Exception> [[noreturn]] void raise(const Exception &exception)
{
	throw exception;
}
#else
template <typename Exception> [[noreturn]] void raise(const Exception &exception)
{
	std::fprintf(stderr, "slabyard: %s\n", exception.what());
	std::abort();
}
#endif

} /* namespace detail */

/* A heap that could not be opened. */
class bad_heap : public std::bad_alloc {
public:
	explicit bad_heap(const char *why) noexcept
	{
		std::strncpy(text_, why, sizeof(text_) - 1);
	}

	const char *what() const noexcept override
	{
		return text_;
	}

private:
	char text_[sizeof(sy_fault)] = {};
};

/* ---- Heaps ---------------------------------------------------------------------------------------------------- */

class heap {
public:
	/* See sy_heap_open. Without options, general allocation is aligned for every type, as operator new's. */
	explicit heap(const char *spec = nullptr, const sy_heap_options &options = usual())
	{
		const char *error = nullptr;

		heap_ = sy_heap_open(spec, &options, &error);
		if (!heap_)
			detail::raise(bad_heap(error));
	}

	heap(heap &&other) noexcept : heap_(std::exchange(other.heap_, nullptr))
	{
	}

	heap &operator=(heap &&other) noexcept
	{
		std::swap(heap_, other.heap_);
		return *this;
	}

	heap(const heap &) = delete;
	heap &operator=(const heap &) = delete;

	~heap()
	{
		sy_heap_close(heap_);
	}

	static sy_heap_options usual() noexcept
	{
		sy_heap_options options{};

		options.sizing.align = alignof(std::max_align_t);
		return options;
	}

	sy_heap *get() const noexcept
	{
		return heap_;
	}

	/* Pages given back. */
	std::uint64_t shrink() noexcept
	{
		return sy_heap_shrink(heap_);
	}

	/* Bytes given back to the operating system. */
	std::uint64_t trim() noexcept
	{
		return sy_heap_trim(heap_);
	}

private:
	sy_heap *heap_ = nullptr;
};

/* ---- std::pmr ------------------------------------------------------------------------------------------------- */

/*
 * Requests that are too large for the heap (its largest block has 4 MiB, SY_MAX_ORDER) go upstream. With
 * std::pmr::null_memory_resource() as upstream they fail. For an alignment beyond the heap's own, the object is larger by that
 * alignment, and a pointer to its start stands before the aligned place.
 */
class memory_resource : public std::pmr::memory_resource {
public:
	explicit memory_resource(const heap &on, std::pmr::memory_resource *upstream = std::pmr::new_delete_resource()) noexcept
	    : memory_resource(on.get(), upstream)
	{
	}

	explicit memory_resource(sy_heap *on, std::pmr::memory_resource *upstream = std::pmr::new_delete_resource()) noexcept
	    : heap_(on), upstream_(upstream), align_(sy_heap_sizing(on)->align > least_align ? sy_heap_sizing(on)->align : least_align),
	      most_(sy_heap_sizing(on)->most && sy_heap_sizing(on)->most < largest ? sy_heap_sizing(on)->most : largest)
	{
	}

	sy_heap *get_heap() const noexcept
	{
		return heap_;
	}

private:
	static constexpr std::size_t least_align = 8;
	static constexpr std::size_t largest = SY_PAGE_SIZE << SY_MAX_ORDER;

	void *do_allocate(std::size_t bytes, std::size_t align) override
	{
		void *object;

		if (align <= align_ && bytes <= most_) {
			object = sy_malloc(heap_, bytes > align ? bytes : align, 0); /* sizing.small_less */
			if (!object)
				detail::raise(std::bad_alloc());
			return object;
		}
		return is_large(bytes, align) ? upstream_->allocate(bytes, align) : allocate_aligned(bytes, align);
	}

	void do_deallocate(void *object, std::size_t bytes, std::size_t align) override
	{
		if (align <= align_ && bytes <= most_)
			sy_mfree(heap_, object);
		else if (is_large(bytes, align))
			upstream_->deallocate(object, bytes, align);
		else
			sy_mfree(heap_, static_cast<void **>(object)[-1]);
	}

	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
	{
		return this == &other;
	}

	bool is_large(std::size_t bytes, std::size_t align) const noexcept
	{
		return align > align_ ? align > most_ || bytes > most_ - align : bytes > most_;
	}

	/* The object is aligned to a word at least, so there is room for the pointer before any larger alignment. */
	void *allocate_aligned(std::size_t bytes, std::size_t align)
	{
		void *object = sy_malloc(heap_, bytes + align, 0), **aligned;

		if (!object)
			detail::raise(std::bad_alloc());
		aligned = reinterpret_cast<void **>((reinterpret_cast<std::uintptr_t>(object) / align + 1) * align);
		aligned[-1] = object;
		return aligned;
	}

	sy_heap *heap_;
	std::pmr::memory_resource *upstream_;
	std::size_t align_, most_;
};

/* ---- Caches of constructed objects ---------------------------------------------------------------------------- */

/* The default of object_cache does nothing to a freed object: its holder has left it in the constructed state. */
struct leave_as_is {
	template <typename T> void operator()(T &) const noexcept
	{
	}
};

/*
 * Objects are constructed when their slab is made and destroyed when it goes, not at each allocation and free. So whoever frees an
 * object must leave it in the state that the constructor makes, or Reset(object) restores that state. T's constructor must not
 * throw. Neither constructor nor destructor may use any slabyard heap.
 */
template <typename T, typename Reset = leave_as_is> class object_cache {
	static_assert(std::is_nothrow_default_constructible_v<T>, "objects of a cache are constructed where nothing can be thrown: declare T() noexcept");
	static_assert(std::is_nothrow_destructible_v<T>, "objects of a cache are destroyed where nothing can be thrown");
	static_assert(std::is_nothrow_invocable_v<Reset, T &>, "objects are reset where nothing can be thrown");
	static_assert(alignof(T) <= SY_PAGE_SIZE, "no object is aligned to more than a page");

public:
	/* Gives an object back to its cache. */
	class deleter {
	public:
		explicit deleter(sy_cache *cache = nullptr) noexcept : cache_(cache)
		{
		}

		void operator()(T *object) const noexcept
		{
			Reset()(*object);
			sy_free(cache_, object);
		}

	private:
		sy_cache *cache_;
	};

	using handle = std::unique_ptr<T, deleter>;

	/* flags: enum sy_cache_flags. */
	explicit object_cache(const heap &on, const char *name = "object_cache", unsigned flags = 0) : object_cache(on.get(), name, flags)
	{
	}

	explicit object_cache(sy_heap *on, const char *name = "object_cache", unsigned flags = 0)
	{
		sy_cache_config config{};

		config.name = name;
		config.size = sizeof(T);
		config.align = alignof(T);
		config.flags = flags;
		config.constructor = construct;
		config.destructor = std::is_trivially_destructible_v<T> ? nullptr : destroy;
		cache_ = sy_cache_create(on, &config);
		if (!cache_)
			detail::raise(std::bad_alloc());
	}

	object_cache(const object_cache &) = delete;
	object_cache &operator=(const object_cache &) = delete;

	/* Objects that are still in use stay where they are until the heap ends, and are not destroyed. */
	~object_cache()
	{
		sy_cache_destroy(cache_, nullptr);
	}

	/* A constructed object. */
	T *allocate()
	{
		T *object = try_allocate();

		if (!object)
			detail::raise(std::bad_alloc());
		return object;
	}

	T *try_allocate() noexcept
	{
		return static_cast<T *>(sy_alloc(cache_, 0));
	}

	/* A null pointer does nothing. */
	void free(T *object) noexcept
	{
		if (object)
			deleter{ cache_ }(object);
	}

	/* The same, given back when the handle goes. */
	handle make()
	{
		return handle(allocate(), deleter(cache_));
	}

	handle try_make() noexcept
	{
		return handle(try_allocate(), deleter(cache_));
	}

	/* Pages given back. */
	std::uint64_t shrink() noexcept
	{
		return sy_cache_shrink(cache_);
	}

	sy_cache_counts count() const noexcept
	{
		sy_cache_counts counts{};

		sy_cache_count(cache_, &counts);
		return counts;
	}

	sy_cache *get() const noexcept
	{
		return cache_;
	}

private:
	static void construct(void *object, std::size_t) noexcept
	{
		::new (object) T();
	}

	static void destroy(void *object, std::size_t) noexcept
	{
		static_cast<T *>(object)->~T();
	}

	sy_cache *cache_;
};

/* ---- Containers ----------------------------------------------------------------------------------------------- */

/*
 * The caches behind cache_allocator: one for each size and alignment, made when it is first needed. Their list only grows, so it is
 * read without a lock. Making a cache takes the lock.
 */
class cache_pool {
public:
	/* upstream: for arrays that are too large for the heap, as memory_resource's. */
	explicit cache_pool(const heap &on, std::pmr::memory_resource *upstream = std::pmr::new_delete_resource()) noexcept
	    : cache_pool(on.get(), upstream)
	{
	}

	explicit cache_pool(sy_heap *on, std::pmr::memory_resource *upstream = std::pmr::new_delete_resource()) noexcept
	    : arrays_(on, upstream)
	{
	}

	cache_pool(const cache_pool &) = delete;
	cache_pool &operator=(const cache_pool &) = delete;

	/* All containers are gone. */
	~cache_pool()
	{
		for (entry *at = first_.load(), *next; at; at = next) {
			next = at->next;
			sy_cache_destroy(at->cache, nullptr);
			sy_mfree(arrays_.get_heap(), at);
		}
	}

	/* For objects other than single ones. */
	std::pmr::memory_resource &arrays() noexcept
	{
		return arrays_;
	}

	/* The cache for objects of this size and alignment. */
	sy_cache *cache(std::size_t size, std::size_t align)
	{
		entry *found = find(size, align);

		if (!found) {
			std::lock_guard<std::mutex> hold(making_);

			found = find(size, align);
			if (!found)
				found = make(size, align);
		}
		return found->cache;
	}

private:
	struct entry {
		entry *next;
		sy_cache *cache;
		std::size_t size, align;
	};

	entry *find(std::size_t size, std::size_t align) const noexcept
	{
		entry *at = first_.load(std::memory_order_acquire);

		while (at && (at->size != size || at->align != align))
			at = at->next;
		return at;
	}

	entry *make(std::size_t size, std::size_t align)
	{
		sy_heap *on = arrays_.get_heap();
		void *memory = sy_malloc(on, sizeof(entry), 0);
		sy_cache_config config{};
		entry *made;

		config.name = "cache_allocator";
		config.size = size;
		config.align = align;
		if (!memory)
			detail::raise(std::bad_alloc());
		made = ::new (memory) entry{ first_.load(std::memory_order_relaxed), sy_cache_create(on, &config), size, align };
		if (!made->cache) {
			sy_mfree(on, memory);
			detail::raise(std::bad_alloc());
		}
		first_.store(made, std::memory_order_release);
		return made;
	}

	std::atomic<entry *> first_{ nullptr };
	std::mutex making_;
	memory_resource arrays_;
};

/*
 * An allocator as the standard containers want one. Allocators on the same pool are equal; the pool outlives them. Single
 * objects of a page at most are from caches.
 */
template <typename T> class cache_allocator {
public:
	using value_type = T;
	using propagate_on_container_copy_assignment = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;
	using propagate_on_container_swap = std::true_type;

	explicit cache_allocator(cache_pool &pool) noexcept : pool_(&pool)
	{
	}

	/* The cache is looked for at the first allocation, as no conversion may throw. */
	template <typename U> cache_allocator(const cache_allocator<U> &other) noexcept : pool_(&other.pool())
	{
	}

	cache_pool &pool() const noexcept
	{
		return *pool_;
	}

	T *allocate(std::size_t count)
	{
		void *object;

		if (!is_from_cache(count))
			return allocate_array(count);
		if (!cache_)
			cache_ = pool_->cache(sizeof(T), alignof(T));
		object = sy_alloc(cache_, 0);
		if (!object)
			detail::raise(std::bad_alloc());
		return static_cast<T *>(object);
	}

	void deallocate(T *object, std::size_t count) noexcept
	{
		if (!is_from_cache(count)) {
			pool_->arrays().deallocate(object, count * sizeof(T), alignof(T));
			return;
		}
		if (!cache_) /* the pool has the cache, because there is an object from it. So nothing is made and nothing thrown. */
			cache_ = pool_->cache(sizeof(T), alignof(T));
		sy_free(cache_, object);
	}

	template <typename U> bool operator==(const cache_allocator<U> &other) const noexcept
	{
		return pool_ == &other.pool();
	}

	template <typename U> bool operator!=(const cache_allocator<U> &other) const noexcept
	{
		return !(*this == other);
	}

private:
	static constexpr bool is_from_cache(std::size_t count) noexcept
	{
		return count == 1 && sizeof(T) <= SY_PAGE_SIZE;
	}

	T *allocate_array(std::size_t count)
	{
		if (count > SIZE_MAX / sizeof(T))
			detail::raise(std::bad_array_new_length());
		return static_cast<T *>(pool_->arrays().allocate(count * sizeof(T), alignof(T)));
	}

	cache_pool *pool_;
	sy_cache *cache_ = nullptr;
};

} /* namespace slabyard */

#endif
