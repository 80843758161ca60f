"""Programs of others under faults, judged by the tables: brokers (``conform``), consumers (``pytest_plugin``)."""
