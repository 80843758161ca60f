"""From files to events: lines of JSON, Parquet, headers; what is no event is told with its line."""
