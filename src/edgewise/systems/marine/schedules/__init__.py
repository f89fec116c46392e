"""Schedule files: marine runs described by lists of stages, seeds and agents."""
