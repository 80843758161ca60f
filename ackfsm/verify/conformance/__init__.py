"""Conformance: messages and pairs of messages held to the model, and the causes that their anomalies need."""
