"""What the DAGs are made of: the `tidemark` command as a task, tags, owners, the publication asset.

DAG file -> operators.py -> command.py -> the `tidemark` command of the Spark environment. Airflow lives in an
environment of its own; `spark_jobs.orchestration.interface` is all that it imports of the pipeline.
"""
