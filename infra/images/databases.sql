-- Run once by the postgres image: the ledger's and Airflow's databases.
CREATE DATABASE ledger ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE airflow ENCODING 'UTF8' TEMPLATE template0;
