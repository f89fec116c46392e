"""Link prediction with proofs: candidates, beam search, fusion and explanations."""
