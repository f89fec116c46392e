"""Networks: instance files, generated networks, and many of them as padded tensors."""
