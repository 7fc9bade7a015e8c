-- Run once by the postgres image: the ledger's and Airflow's databases.
CREATE DATABASE ledger;
CREATE DATABASE airflow;
