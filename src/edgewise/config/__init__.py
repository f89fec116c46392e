"""The bottom layer: configuration models, loading and the errors a user can cause. Never imports torch."""
