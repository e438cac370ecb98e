/*
 * C++ programs without a bug: containers, exceptions, threads, arrays that know their length, and objects that only interior
 * addresses lead to.
 */
#include "planted.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

/* A std::map in static data, which is full when the program ends. */
SILENT(map_in_static_data)
{
	static std::map<std::string, std::vector<int>> words;

	for (int i = 0; i < 500; i++)
		words["a longer text than fits in place " + std::to_string(i % 100)].push_back(i);
}

/* A std::map on the heap that nothing ever deletes. */
SILENT(map_that_is_never_deleted)
{
	static auto *never = new std::map<int, std::string>;

	for (int i = 0; i < 200; i++)
		(*never)[i] = std::string(i, 'x');
}

/* Keys are inserted and erased. */
SILENT(map_used_well)
{
	std::map<int, std::string> texts;
	std::unordered_map<std::string, int> numbers;

	for (int i = 0; i < 3000; i++) {
		texts[i * 7 % 311] += "text";
		if (i % 5 == 0)
			texts.erase(i * 3 % 311);
		numbers[std::to_string(i % 401)]++;
	}
	need(numbers.size() == 401, "a key is missing");
}

struct with_destructor {
	std::string name = "a name that is longer than fits in place";
	~with_destructor() { name.clear(); }
};

/* volatile: the compiler would leave out what nobody reads. */
static with_destructor *volatile kept_array;

/* An array that knows its length: the only pointer is 8 bytes behind its start. */
SILENT(array_with_a_length)
{
	kept_array = new with_destructor[10];
}

/* Such arrays are made and deleted. */
SILENT(arrays_deleted_well)
{
	for (unsigned i = 0; i < 100; i++) {
		with_destructor *array = new with_destructor[i];

		OPAQUE(array);
		delete[] array;
	}
}

struct shape {
	virtual ~shape() = default;
	long colour = 1;
};
struct named {
	virtual ~named() = default;
	std::string name = "a name that is longer than fits in place";
};
struct circle : shape, named {
	double radius[10] = {};
};

static named *volatile kept_base;

/* An object that is known by its second base only. */
SILENT(second_base)
{
	kept_base = new circle;
}

/* Objects are deleted by their bases, whose destructors are virtual. */
SILENT(virtual_destructors)
{
	for (unsigned i = 0; i < 100; i++) {
		named *one = new circle;
		shape *two = new circle;

		OPAQUE(one);
		OPAQUE(two);
		delete one;
		delete two;
	}
}

struct alignas(128) wide {
	char bytes[300];
};

/* Types with an alignment of their own, single and in arrays. */
SILENT(aligned_types)
{
	for (unsigned i = 1; i < 50; i++) {
		wide *one = new wide, *array = new wide[i];

		OPAQUE(one);
		OPAQUE(array);
		need((uintptr_t)one % 128 == 0 && (uintptr_t)array % 128 == 0, "not aligned");
		memset(one, 'w', sizeof(*one));
		memset(array, 'w', i * sizeof(*array));
		delete one;
		delete[] array;
	}
}

static int thrown(int depth)
{
	std::string local(100, 'x');

	if (depth == 0)
		throw std::string("a text that is longer than fits in place");
	return thrown(depth - 1) + (int)local.size();
}

/* Exceptions that carry memory, and bad_alloc. */
SILENT(exceptions)
{
	volatile size_t huge = SIZE_MAX / 4;
	int caught = 0;

	for (int i = 0; i < 20; i++) {
		try {
			thrown(i);
		} catch (const std::string &) {
			caught++;
		}
	}
	try {
		char *nothing = new char[huge];
		OPAQUE(nothing);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	char *none = new (std::nothrow) char[huge];
	OPAQUE(none);
	need(caught == 21 && !none, "an exception was not caught");
}

/* Threads share what shared_ptr owns. */
SILENT(shared_by_threads)
{
	auto numbers = std::make_shared<std::vector<int>>(1000);
	std::vector<std::thread> threads;
	std::mutex lock;
	std::map<int, std::string> results;

	std::iota(numbers->begin(), numbers->end(), 0);
	for (int i = 0; i < 4; i++)
		threads.emplace_back([numbers, i, &lock, &results] {
			for (int round = 0; round < 50; round++) {
				std::ostringstream text;

				text << "thread " << i << " has " << std::accumulate(numbers->begin(), numbers->end(), 0);
				std::lock_guard<std::mutex> guard(lock);
				results[round * 4 + i] = text.str();
			}
		});
	for (auto &thread : threads)
		thread.join();
	need(results.size() == 200, "a result is missing");
}

/* Vectors grow, are sorted, moved and swapped. */
SILENT(vectors_that_grow)
{
	std::vector<std::string> lines;

	for (int i = 0; i < 2000; i++)
		lines.push_back(std::to_string(i * 7919 % 2003) + " with a text behind it");
	std::sort(lines.begin(), lines.end());
	std::vector<std::string> moved = std::move(lines);
	moved.erase(moved.begin() + 10, moved.end() - 10);
	moved.shrink_to_fit();
	need(moved.size() == 20, "a line is missing");
}

/* operator new and delete by name, with sizes and alignments that fit. */
SILENT(operators_by_name)
{
	for (size_t size = 0; size < 5000; size = size * 2 + 1) {
		void *one = operator new(size), *two = operator new[](size), *three = operator new(size, std::align_val_t(64));

		memset(one, '1', size);
		memset(two, '2', size);
		memset(three, '3', size);
		operator delete(one, size);
		operator delete[](two, size);
		operator delete(three, size, std::align_val_t(64));
		operator delete(operator new(size, std::nothrow));
	}
}

static void *volatile operator_kept;

/* What is kept in a unique_ptr and a shared_ptr of static data. */
SILENT(owned_by_static_data)
{
	static std::unique_ptr<with_destructor> owned(new with_destructor);
	static std::shared_ptr<circle> shared = std::make_shared<circle>();
	static std::vector<std::unique_ptr<wide>> wides;

	for (int i = 0; i < 10; i++)
		wides.push_back(std::make_unique<wide>());
	operator_kept = operator new(40);
}
