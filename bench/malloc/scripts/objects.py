"""Python's own share of real work: parse, compile, serialise, count, sort. Run with PYTHONMALLOC=malloc, each object is a malloc."""

import ast
import collections
import difflib
import hashlib
import json
import random
import re

random.seed(4)
WORDS = ["".join(random.choices("etaoinshrdlu", k=random.randint(2, 11))) for _ in range(6000)]


def documents(count):
    """Nested records, as a web service has them."""
    return [
        {
            "id": number,
            "name": " ".join(random.choices(WORDS, k=4)),
            "tags": random.choices(WORDS, k=random.randint(1, 12)),
            "children": [{"key": random.choice(WORDS), "value": random.random()} for _ in range(random.randint(0, 9))],
        }
        for number in range(count)
    ]


def source(functions):
    """Python text with many functions."""
    body = "\n".join(f"    x{i} = [n * {i} for n in range(limit) if n % {i + 2}]\n    d['{WORDS[i]}'] = x{i}" for i in range(9))
    return "\n".join(f"def f{number}(limit, d):\n{body}\n    return d\n" for number in range(functions))


def main():
    digest = hashlib.sha256()
    kept = collections.deque(maxlen=3)
    for _ in range(5):
        text = json.dumps(documents(5000))
        parsed = json.loads(text)
        kept.append(parsed)
        digest.update(text.encode())
        index = collections.defaultdict(list)
        for document in parsed:
            for tag in document["tags"]:
                index[tag].append(document["name"])
        digest.update(repr(sorted((tag, len(names)) for tag, names in index.items())).encode())
    tree = ast.parse(source(220))
    digest.update(str(sum(1 for _ in ast.walk(tree))).encode())
    compile(tree, "generated", "exec")
    counted = collections.Counter(re.findall(r"[a-z]+", " ".join(WORDS * 40)))
    digest.update(repr(counted.most_common(50)).encode())
    left, right = (random.sample(WORDS, 900) for _ in range(2))
    digest.update("".join(difflib.unified_diff(left, right)).encode())
    print(digest.hexdigest())


main()
