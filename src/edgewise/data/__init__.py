"""Collecting and storing experience: rollouts, replay and policies that need no model."""
