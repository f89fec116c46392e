"""The run itself: trainer, checkpoints that survive a kill, logs, numerical health, curriculum."""
