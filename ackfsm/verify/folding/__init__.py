"""Histories larger than memory: chunks, their summaries, the passes over them, and streams."""
