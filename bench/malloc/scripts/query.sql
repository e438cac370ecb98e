-- A database in memory: rows, indexes, joins, groups, text and JSON functions, a window.
pragma journal_mode=off;
create table item(id integer primary key, name text, price real, grp int, data text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
insert into item select i, printf('item-%d-%s', i * 7919 % 60013, hex(i * 31)), (i * 37 % 1000) / 10.0, i % 997,
  json_object('k', i, 'tags', json_array('a' || i % 7, 'b' || i % 11)) from n;
create index by_name on item(name);
create index by_grp on item(grp, price);
select count(*), sum(length(name)), round(sum(price), 1) from item;
select grp, count(*) c, group_concat(substr(name, 1, 8)) g from item where grp < 40 group by grp order by c, g limit 3;
select sum(length(json_extract(data, '$.tags[1]'))) from item;
select count(*) from item a join item b on a.grp = b.grp and a.id < b.id and b.price > 99;
select max(r) from (select row_number() over (partition by grp order by price, id) r from item);
update item set name = upper(name) || '-' || id where id % 3 = 0;
delete from item where id % 5 = 0;
select count(distinct substr(name, 1, 9)), total(id) from item;
