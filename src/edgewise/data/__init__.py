"""Collect and store experience: rollouts, replay buffer, demonstrations and policies without a model."""
