"""Environments: batched graph problems of one anatomy, one folder each, named in `registry.py`."""
