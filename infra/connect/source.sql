-- What the database must give Debezium; run by a superuser, or by the table's owner who may create roles.
-- `wal_level = logical` must be set in postgresql.conf, which takes a restart.
CREATE ROLE tidemark_connect LOGIN REPLICATION;
GRANT SELECT ON public.orders TO tidemark_connect;
-- Without it `before` holds the primary key only.
ALTER TABLE public.orders REPLICA IDENTITY FULL;
CREATE PUBLICATION tidemark_orders FOR TABLE public.orders;
