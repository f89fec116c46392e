"""The lowest package: config classes, config loading and user errors. Never imports torch."""
