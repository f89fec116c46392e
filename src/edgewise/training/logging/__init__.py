"""Loggers of a run: metrics.csv, events.jsonl, TensorBoard and the progress bar."""
