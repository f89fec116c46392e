"""Policies that choose sets of links: heads, and distributions over independent sets."""
