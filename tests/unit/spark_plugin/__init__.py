"""The plugin in a Spark driver, compiled against stubs, with faults."""
