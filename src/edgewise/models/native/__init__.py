"""Loops in C for a CPU, compiled at first use; without a compiler, torch does the same with more memory."""
