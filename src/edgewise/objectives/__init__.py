"""The mathematics as pure functions of tensors: returns, policy gradients, value normalisation."""
