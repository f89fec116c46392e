"""The callbacks of every run: metrics.csv, timing.csv, events.jsonl, TensorBoard and the progress display."""
