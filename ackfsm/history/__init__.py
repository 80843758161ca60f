"""A recorded history (format 1): read from its file, put in order, and indexed; nothing here judges it."""
