#!/bin/busybox sh
# database FILE TRANSACTIONS: after TPC-B: each moves an amount to an account, its teller and its branch, and writes it down. Prints SQL.
# The first form (FILE alone) makes the tables.
if [ $# -eq 0 ]; then
	cat <<'END'
create table account (id integer primary key, branch integer, balance integer, filler text);
create table teller (id integer primary key, branch integer, balance integer);
create table branch (id integer primary key, balance integer);
create table history (teller integer, branch integer, account integer, delta integer);
begin;
END
	awk 'BEGIN {
		for (i = 1; i <= 2000; i++) printf "insert into account values (%d, %d, 0, \"%080d\");\n", i, i % 4 + 1, i
		for (i = 1; i <= 40; i++) printf "insert into teller values (%d, %d, 0);\n", i, i % 4 + 1
		for (i = 1; i <= 4; i++) printf "insert into branch values (%d, 0);\n", i
	}'
	echo 'commit;'
	exit
fi
awk -v count="$1" 'BEGIN {
	for (i = 1; i <= count; i++) {
		account = (i * 7919) % 2000 + 1; teller = (i * 31) % 40 + 1; branch = teller % 4 + 1; delta = (i * 613) % 1999 - 999
		printf "begin; update account set balance = balance + %d where id = %d; select balance from account where id = %d;\n", delta, account, account
		printf "update teller set balance = balance + %d where id = %d; update branch set balance = balance + %d where id = %d;\n", delta, teller, delta, branch
		printf "insert into history values (%d, %d, %d, %d); commit;\n", teller, branch, account, delta
	}
}'
