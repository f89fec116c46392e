"""Graph multi-agent navigation: agents steer to their goals between obstacles and each other."""
