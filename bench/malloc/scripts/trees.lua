-- Binary trees, built and dropped: the garbage collector's classic, an allocation for each node.
local function build(depth)
	if depth == 0 then return {} end
	return { build(depth - 1), build(depth - 1) }
end
local function count(tree)
	return tree[1] and 1 + count(tree[1]) + count(tree[2]) or 1
end
local kept, sum = build(17), 0
for depth = 4, 16, 2 do
	for _ = 1, 1 << (17 - depth) do sum = sum + count(build(depth)) end
end
local parts = {}
for i = 1, 60000 do parts[#parts + 1] = ("%d:%s"):format(i, ("x"):rep(i % 60)) end
print(sum, count(kept), #table.concat(parts, ","))
