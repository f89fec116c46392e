"""The policy over proof steps, its encoder, and how both are built."""
