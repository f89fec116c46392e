"""Environments of other libraries as graph environments, and graph environments for other libraries."""
