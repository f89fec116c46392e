"""The policy over proof steps and its encoder."""
