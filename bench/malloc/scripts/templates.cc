// Templates of the standard library in many instances: what a C++ compiler spends its memory on.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Node {
	std::map<std::string, std::vector<std::tuple<int, double, Node<N - 1>>>> children;
	std::variant<int, std::string, std::unique_ptr<Node<N - 1>>> value;
	template <class F> auto visit(F f) const
	{
		int sum = N;
		for (const auto &child : children)
			for (const auto &entry : child.second)
				sum += std::get<2>(entry).visit(f) + std::get<0>(entry);
		return sum + f(N);
	}
};
template <> struct Node<0> {
	template <class F> int visit(F f) const { return f(0); }
};

int walk(const Node<6> &node)
{
	return node.visit([](int depth) { return depth * 2; });
}

bool match(const std::string &text)
{
	std::unordered_map<std::string, std::function<int(int)>> table{ { "a", [](int x) { return x; } } };
	std::vector<std::string> words{ text, text };
	std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
	return words.front() == text && table.size();
}
