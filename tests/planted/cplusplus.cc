/*
 * What only C++ has: new and delete of different kinds, sized delete, arrays that know their length, containers whose elements
 * move, pointers that own.
 */
#include "planted.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

template <typename T> static NO_INLINE T *new_allocate_it()
{
	T *object = new T;

	OPAQUE(object);
	return object;
}

template <typename T> static NO_INLINE T *new_array_allocate_it(size_t count)
{
	T *array = new T[count];

	OPAQUE(array);
	return array;
}

template <typename T> static NO_INLINE void delete_free_it(T *object)
{
	delete object;
	NOT_LAST();
}

template <typename T> static NO_INLINE void delete_array_free_it(T *array)
{
	delete[] array;
	NOT_LAST();
}

/* ---- Overflows -------------------------------------------------------------------------------------------------- */

/* The element behind the last of a new int[10]. */
BUG(new_array_by_one, PAST_END, "new_array_allocate_it")
{
	int *array = new_array_allocate_it<int>(10);

	expect(array + 10);
	damage_it((unsigned char *)(array + 10), 4);
	delete_array_free_it(array);
}

/* 1 byte into an object of no bytes. */
BUG(new_of_nothing, PAST_END, "new_of_nothing")
{
	char *object = (char *)operator new(0);

	OPAQUE(object);
	expect(object);
	damage_it((unsigned char *)object, 1);
	operator delete(object);
}

/* 1 byte past a new char[13]. */
BUG(new_char_array_by_1, PAST_END, "new_array_allocate_it")
{
	char *array = new_array_allocate_it<char>(13);

	expect(array + 13);
	damage_it((unsigned char *)(array + 13), 1);
	delete_array_free_it(array);
}

struct point {
	double x, y, z;
};

/* An object is used as one of a larger class. */
BUG(as_a_larger_class, PAST_END, "new_allocate_it")
{
	point *small = new_allocate_it<point>();

	expect(small + 1);
	damage_it((unsigned char *)(small + 1), 8);
	delete_free_it(small);
}

/* The element -1 of a new long[6]. */
BUG(new_array_before_the_first, BEFORE_START, "new_array_allocate_it")
{
	long *array = new_array_allocate_it<long>(6);

	expect(array - 1);
	damage_it((unsigned char *)(array - 1), 8);
	delete_array_free_it(array);
}

static NO_INLINE void allocate_it(std::vector<int> &elements, size_t count)
{
	elements.reserve(count);
	NOT_LAST();
}

static NO_INLINE void free_it(std::vector<int> &elements)
{
	std::vector<int>().swap(elements);
	NOT_LAST();
}

/* An element behind a vector's capacity. */
BUG(vector_behind_its_capacity, PAST_END, "allocate_it")
{
	std::vector<int> elements;

	allocate_it(elements, 20);
	int *last = elements.data() + elements.capacity();
	expect(last);
	damage_it((unsigned char *)last, 4);
	free_it(elements);
}

/* ---- Used after delete ------------------------------------------------------------------------------------------ */

static NO_INLINE void grow_and_free_it(std::vector<int> &elements)
{
	elements.resize(5000);
	NOT_LAST();
}

/* A reference to an element, after the vector has moved its elements. */
BUG(reference_into_a_moved_vector, AFTER_FREE, "allocate_it grow_and_free_it")
{
	std::vector<int> elements;

	allocate_it(elements, 24);
	elements.resize(24);
	int *kept = &elements[5];
	grow_and_free_it(elements);
	expect(kept);
	damage_it((unsigned char *)kept, 4);
	press(96, 300);
}

using dictionary = std::map<int, long>;

static NO_INLINE void allocate_it(dictionary &map, int key)
{
	map[key] = 1;
	NOT_LAST();
}

static NO_INLINE void free_it(dictionary &map, int key)
{
	map.erase(key);
	NOT_LAST();
}

/* A reference to a map's value, after its key was erased. */
BUG(reference_to_an_erased_key, AFTER_FREE, "allocate_it free_it")
{
	dictionary map;

	for (int key = 0; key < 10; key++)
		allocate_it(map, key);
	long *kept = &map[7];
	free_it(map, 7);
	expect(kept);
	damage_it((unsigned char *)kept, 8);
	for (int key = 10; key < 300; key++)
		allocate_it(map, key);
}

struct session {
	long id;
	char user[40];
};

/* A member is written by a function of an object that has deleted itself. */
BUG(member_of_a_deleted_object, AFTER_FREE, "new_allocate_it delete_free_it")
{
	session *current = new_allocate_it<session>();

	delete_free_it(current);
	expect(current->user);
	damage_it((unsigned char *)current->user, 8);
	for (int i = 0; i < 300; i++)
		delete_free_it(new_allocate_it<session>());
}

/* ---- Deleted twice ---------------------------------------------------------------------------------------------- */

/* delete twice. */
BUG(delete_twice, DOUBLE_FREE, "new_allocate_it delete_free_it")
{
	session *object = new_allocate_it<session>();

	delete_free_it(object);
	expect(object);
	delete_free_it(object);
}

/* delete[] twice, with another array between. */
BUG(delete_array_twice, DOUBLE_FREE, "new_array_allocate_it delete_array_free_it")
{
	int *array = new_array_allocate_it<int>(50), *other = new_array_allocate_it<int>(50);

	delete_array_free_it(array);
	delete_array_free_it(other);
	expect(array);
	delete_array_free_it(array);
}

struct owner {
	session *owned = new_allocate_it<session>();

	~owner() { delete_free_it(owned); }
};

/* A class with a destructor and no copy constructor is copied. */
BUG(copied_owner, DOUBLE_FREE, "new_allocate_it delete_free_it")
{
	owner one;
	owner two(one);

	session *first = two.owned;
	two.owned = new_allocate_it<session>();
	delete_free_it(two.owned);
	two.owned = first;
	expect(first);
}

/* Two unique_ptr own the same object. */
BUG(two_unique_pointers, DOUBLE_FREE, "new_allocate_it delete_free_it")
{
	struct by_free_it {
		void operator()(session *object) const { delete_free_it(object); }
	};
	session *object = new_allocate_it<session>();
	std::unique_ptr<session, by_free_it> one(object), two(object);

	expect(object);
}

/* ---- Frees of the wrong kind ------------------------------------------------------------------------------------ */

#define MISMATCH(id, allocator, freer) BUG(id, WRONG_CACHE, allocator " " freer)

/* An array of new[] is deleted as a single object. */
MISMATCH(delete_of_new_array, "new_array_allocate_it", "delete_free_it")
{
	int *array = new_array_allocate_it<int>(1);

	expect(array);
	delete_free_it(array);
}

/* A single object is deleted as an array. */
MISMATCH(delete_array_of_new, "new_allocate_it", "delete_array_free_it")
{
	int *object = new_allocate_it<int>();

	expect(object);
	delete_array_free_it(object);
}

static NO_INLINE void *aligned_allocate_it(size_t size, size_t align)
{
	void *object = operator new(size, std::align_val_t(align));

	OPAQUE(object);
	return object;
}

/* What new gave with an alignment is deleted without one. */
MISMATCH(delete_of_aligned_new, "aligned_allocate_it", "delete_of_aligned_new")
{
	void *object = aligned_allocate_it(100, 64);

	expect(object);
	operator delete(object);
	NOT_LAST();
}

/* And with another one. */
MISMATCH(delete_with_another_alignment, "aligned_allocate_it", "delete_with_another_alignment")
{
	void *object = aligned_allocate_it(100, 64);

	expect(object);
	operator delete(object, std::align_val_t(128));
	NOT_LAST();
}

/* What new gave is freed. */
MISMATCH(free_of_new, "new_allocate_it", "free_it")
{
	session *object = new_allocate_it<session>();

	expect(object);
	free_it(object);
}

/* What new[] gave is freed. */
MISMATCH(free_of_new_array, "new_array_allocate_it", "free_it")
{
	char *array = new_array_allocate_it<char>(100);

	expect(array);
	free_it(array);
}

/* What malloc gave is deleted. */
MISMATCH(delete_of_malloc, "allocate_it", "delete_free_it")
{
	session *object = (session *)allocate_it(sizeof(session));

	expect(object);
	delete_free_it(object);
}

/* What malloc gave is deleted as an array. */
MISMATCH(delete_array_of_malloc, "allocate_it", "delete_array_free_it")
{
	char *array = (char *)allocate_it(64);

	expect(array);
	delete_array_free_it(array);
}

/* What strdup gave is deleted. */
MISMATCH(delete_of_strdup, "strdup", "delete_free_it")
{
	char *copy = strdup("a string");

	OPAQUE(copy);
	expect(copy);
	delete_free_it(copy);
}

/* ---- Frees with a wrong size ------------------------------------------------------------------------------------ */

struct base {
	long number;
};

struct derived : base {
	char more[200];
};

/* A derived object is deleted as its base, which has no virtual destructor. */
BUG(derived_deleted_as_base, WRONG_SIZE, "new_allocate_it delete_free_it")
{
	base *object = new_allocate_it<derived>();

	expect(object);
	delete_free_it(object);
}

static NO_INLINE void sized_delete_free_it(void *object, size_t size)
{
	operator delete(object, size);
	NOT_LAST();
}

static NO_INLINE void sized_delete_array_free_it(void *array, size_t size)
{
	operator delete[](array, size);
	NOT_LAST();
}

/* operator delete with the size of the pointer. */
BUG(size_of_the_pointer, WRONG_SIZE, "new_allocate_it sized_delete_free_it")
{
	session *object = new_allocate_it<session>();

	expect(object);
	sized_delete_free_it(object, sizeof(object));
}

/* operator delete[] with half of the array. */
BUG(size_of_half_the_array, WRONG_SIZE, "new_array_allocate_it sized_delete_array_free_it")
{
	char *array = new_array_allocate_it<char>(4000);

	expect(array);
	sized_delete_array_free_it(array, 2000);
}

/* ---- Frees within an object ------------------------------------------------------------------------------------- */

struct first {
	long one[2];
};
struct second {
	long two[2];
};
struct both : first, second {};

/* An object is deleted as its second base, 16 bytes behind its start. */
BUG(deleted_as_its_second_base, INTERIOR, "new_allocate_it delete_free_it")
{
	second *object = new_allocate_it<both>();

	expect(object);
	delete_free_it(object);
}

/* delete of an array whose elements have destructors: 8 bytes behind its start. */
BUG(array_with_a_length_deleted_as_one, INTERIOR, "new_array_allocate_it delete_free_it")
{
	std::string *array = new_array_allocate_it<std::string>(4);

	expect(array);
	delete_free_it(array);
}

/* ---- Leaks ------------------------------------------------------------------------------------------------------ */

struct friendly {
	std::shared_ptr<friendly> other;
	long numbers[4];
};

static NO_INLINE std::shared_ptr<friendly> shared_allocate_it()
{
	std::shared_ptr<friendly> made = std::make_shared<friendly>();

	NOT_LAST();
	return made;
}

/* Two objects own each other by shared_ptr. */
BUG(shared_pointers_in_a_cycle, LEAK, "shared_allocate_it")
{
	const size_t counts = 16; /* before the object, in the same allocation */
	std::shared_ptr<friendly> one = shared_allocate_it(), two = shared_allocate_it();

	one->other = two;
	two->other = one;
	expect_leak((char *)one.get() - counts, sizeof(friendly) + counts);
	expect_leak((char *)two.get() - counts, sizeof(friendly) + counts);
}

/* A vector of pointers is cleared, and its objects are not deleted. */
BUG(pointers_of_a_cleared_vector, LEAK, "new_allocate_it")
{
	static std::vector<session *> sessions;

	for (int i = 0; i < 5; i++) {
		sessions.push_back(new_allocate_it<session>());
		expect_leak(sessions.back(), sizeof(session));
	}
	std::vector<session *>().swap(sessions);
}

/* What unique_ptr has released. */
BUG(released_unique_pointer, LEAK, "new_allocate_it")
{
	std::unique_ptr<session> owned(new_allocate_it<session>());

	expect_leak(owned.get(), sizeof(session));
	owned.release();
}
