"""From a config to a run and back: build, launch, load, evaluate and export."""
