"""Whether each message, and pairs of them, are runs of the model, and what explains those that are not."""
