"""Evaluate policies on fixed instances, with statistics, ratings and recorded episodes."""
