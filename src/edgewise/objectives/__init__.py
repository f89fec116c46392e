"""Losses, returns and estimators as pure functions of tensors."""
