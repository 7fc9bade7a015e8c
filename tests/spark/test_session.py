"""What the jars on the class path must hold."""

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_list_of_hives_functions_can_be_read(spark: SparkSession) -> None:
    """The Thrift server may read it when it closes a session: while another session opens the metastore's client."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.Class.forName("org.apache.hadoop.hive.ql.exec.FunctionRegistry")
