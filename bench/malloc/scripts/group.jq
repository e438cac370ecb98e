# Filters, sorts and groups records, and counts what their groups have in common.
map(select(.parts | length > 1) | { id, n: (.name | length), t: (.tags | sort) })
| group_by(.n)
| map([length, (map(.t) | add | unique | length)])
