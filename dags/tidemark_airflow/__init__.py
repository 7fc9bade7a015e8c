"""What the DAGs are made of: the `tidemark` command as a task, tags, owners, the publication asset.

DAG file -> operators.py -> command.py -> the `tidemark` command of the Spark environment. Nothing here imports
`spark_jobs`: Airflow lives in an environment of its own.
"""
